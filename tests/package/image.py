"""``./run image``: the container image, from the last commit, the locks and Debian's packages.

No hub is asked.  The base is made by mmdebstrap, or is given; what lies above it comes from the
wheel and from what deploy/locks pins, so two builds have the same layers.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from packaging.requirements import Requirement

from tests import ROOT
from tests.package.__main__ import HATCHLING, PackageFailed, built, commit_time, run
from tests.package.locks import LOCK, derived, entries

FOLDER: Final = ROOT / "deploy" / "image"
OUT: Final = ROOT / "var" / "image"
EXTRAS: Final = ("namenode", "ssh", "tls")
"""What the image adds to the base: every daemon but the checkpoint service runs from it."""
PYTHON: Final = "3.11"
"""Debian 12's."""
SUITE: Final = "bookworm"
MIRROR: Final = "http://deb.debian.org/debian"
BASE: Final = "localhost/nnha-base:12"
LONG_SECONDS: Final = 1800
_LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


@click.command()
@click.option("--base", help=f"An image with Python {PYTHON}; made by mmdebstrap if not given.")
@click.option("--tag", default="localhost/nnha", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, base: str | None, tag: str, as_json: bool) -> None:
    """Build the image of the last commit into podman's storage."""
    try:
        image = build(base or made_base(), tag)
    except (PackageFailed, subprocess.SubprocessError) as failure:
        raise click.ClickException(str(failure)) from failure
    shown = {"image": image, "layers": layers(image)}
    click.echo(json.dumps(shown) if as_json else f"{image}: {len(layers(image))} layers")


def build(base: str, tag: str) -> str:
    """Build on that image; the new one's name with its version.

    Raises:
        PackageFailed: a tool that is needed is not here, or failed.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        context = scratch / "context"
        version = fill(context, scratch)
        image = f"{tag}:{version}"
        _tool(
            *("buildah", "bud", "--isolation", "chroot", "--layers=false", "--format", "oci"),
            *("--timestamp", commit_time(), "--build-arg", f"BASE={base}"),
            *("--build-arg", f"VERSION={version}", "--build-arg", f"COMMIT={_commit()}"),
            *("-f", str(FOLDER / "Containerfile"), "-t", image, str(context)),
        )
    return image


def fill(context: Path, scratch: Path) -> str:
    """Put into the context what the image is built from; return the version of nnha in it."""
    tools = scratch / "tools"
    run(sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), HATCHLING)
    (wheel,) = built(scratch / "build", tools).glob("*.whl")
    lock = scratch / "image.lock"
    lock.write_text(lock_of(EXTRAS))
    tree = context / "tree"
    install = (
        *(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"),
        *("--only-binary", ":all:", "--python-version", PYTHON, "--implementation", "cp"),
        *(word for one in platforms() for word in ("--platform", one)),
        *("--target", str(tree)),
    )
    run(*install, "--require-hashes", "-r", str(lock))
    run(*install, str(wheel))
    shutil.rmtree(tree / "bin", ignore_errors=True)  # scripts of this machine's Python
    _trim(tree)
    for name in ("nnha", "nnha.pth"):
        shutil.copy2(FOLDER / name, context / name)
    (context / "nnha").chmod(0o755)
    return wheel.name.split("-")[1]


def lock_of(extras: Sequence[str]) -> str:
    wanted: dict[str, str] = {}
    for extra in ("", *extras):
        wanted |= entries(derived(extra))
    return "".join(_for_the_image(wanted[name]) for name in sorted(wanted))


def _for_the_image(locked: str) -> str:
    """Return the versions that the image's Python needs: pip asks the one that it runs under."""
    found = ""
    for one in re.split(r"^(?=\S+==)", locked, flags=re.MULTILINE):
        head, _, hashes = one.partition(" \\\n")
        if not head:
            continue
        needed = Requirement(head)
        if needed.marker is None or needed.marker.evaluate(
            {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0"}
        ):
            found += f"{head.partition(';')[0].strip()} \\\n{hashes}"
    return found


def platforms() -> list[str]:
    """Return the wheels that Debian 12 (glibc 2.36) takes on this kind of processor."""
    machine = platform.machine()
    return [*(f"manylinux_2_{n}_{machine}" for n in range(36, 16, -1)), f"manylinux2014_{machine}"]


def _trim(tree: Path) -> None:
    """Leave out what nothing runs and what pip says of this one installation; equal rights."""
    for tests in [path for path in tree.rglob("tests") if path.is_dir()]:
        shutil.rmtree(tests, ignore_errors=True)  # numpy's are 15 MB with their bytecode
    for path in [*tree.rglob("*.pyi"), *tree.rglob("*.a")]:
        path.unlink()
    for record in tree.rglob("*.dist-info"):
        for name in ("direct_url.json", "REQUESTED", "INSTALLER", "RECORD"):
            (record / name).unlink(missing_ok=True)
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def made_base() -> str:
    """Build Debian's own packages as an image, kept as a tar for the next time."""
    tar = OUT / f"base-{SUITE}-{platform.machine()}.tar"
    if not tar.exists():
        debootstrap(tar)
    run("podman", "import", "-q", str(tar), BASE)
    return BASE


def debootstrap(tar: Path) -> None:
    """Install Debian 12 with Python and certificates, no manuals: 123 MB, in three minutes."""
    tar.parent.mkdir(parents=True, exist_ok=True)
    beside = tar.with_name(f"new-{tar.name}")  # mmdebstrap goes by the suffix
    left_out = [f"--dpkgopt=path-exclude={one}" for one in _LEFT_OUT]
    _tool(
        *("mmdebstrap", "--quiet", "--variant=minbase"),
        # Debian's default pulls usrmerge, and with it 47 MB of Perl.
        *("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=usr-is-merged"),
        *("--include=python3,ca-certificates", *left_out, SUITE, str(beside), MIRROR),
        environment={"SOURCE_DATE_EPOCH": commit_time(LOCK)},
    )
    beside.rename(tar)


def layers(image: str) -> list[str]:
    told = subprocess.run(
        ["podman", "image", "inspect", image], check=True, capture_output=True, text=True
    )
    return list(json.loads(told.stdout)[0]["RootFS"]["Layers"])


def _commit() -> str:
    words = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _tool(*words: str, environment: Mapping[str, str] | None = None) -> None:
    if shutil.which(words[0]) is None:
        raise PackageFailed(f"{words[0]} is not here; on Debian: apt-get install {words[0]}")
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, timeout=LONG_SECONDS,
        env=os.environ | dict(environment or {}),
    )  # fmt: skip
    if done.returncode:
        raise PackageFailed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-2000:]}")


if __name__ == "__main__":
    main()
