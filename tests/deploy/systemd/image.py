"""The file system of a host: a small Debian, and nnha in /opt/nnha as docs/install.md says.

The Debian and the locked dependencies are made once for each machine and kept; the wheel is built
from the tree as it is, so that what is tried is what was just written.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from tests import ROOT
from tests.package.__main__ import build_wheel

SUITE: Final = "bookworm"
"""The Debian with systemd 252 and Python 3.11, the oldest that we run on."""
PACKAGES: Final = (
    "systemd", "systemd-sysv", "dbus", "python3", "python3-venv", "procps", "psmisc",
    "openssh-server", "openssh-client", "netcat-openbsd",
)  # fmt: skip
EXTRAS: Final = ("namenode", "ssh")
"""What the daemons of the tests need; each has a lock of its own."""
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
WHEELS: Final = "/opt/wheels"
"""In a host: of all that it needs, so that a second installation asks no index."""
TRUST: Final = Path("/etc/ssl/certs/ca-certificates.crt")
MAKE_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class Image:
    """Folders that lie over each other, the uppermost first; none is written to any more."""

    layers: tuple[Path, ...]


def installed(folder: Path) -> Image:
    """Return the image with a wheel of this tree, which is installed into a layer below ``folder``.

    Raises LocalClusterError where a part cannot be made, with what was said.
    """
    base = _kept("debian", [SUITE, *PACKAGES], _make_debian)
    locks = [ROOT / "deploy" / "locks" / f"{extra}.lock" for extra in EXTRAS]
    texts = [SUITE, *PACKAGES, VERSION, WHEELS, *(lock.read_text() for lock in locks)]
    needed = _kept("needed", texts, lambda made: _install_needed(made, base, locks))
    ours = folder / "image"
    ours.mkdir(parents=True)
    _install_ours(ours, (needed, base), build_wheel(folder / "wheel"))
    return Image((ours, needed, base))


def _make_debian(made: Path) -> None:
    packages = ",".join(PACKAGES)
    # Not `_apt`: the folder is root's alone, as everything in root's cache.
    _said("mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", SUITE, str(made))
    (made / "etc" / "machine-id").write_text("")  # each host gets its own, without a question
    (made / "etc" / "systemd" / "system" / "ssh.service").symlink_to("/dev/null")


def _install_needed(made: Path, base: Path, locks: Sequence[Path]) -> None:
    files = [word for lock in locks for word in ("-r", f"/locks/{lock.name}")]
    pinned, seen = ("--no-deps", "--require-hashes", *files), {locks[0].parent: "/locks"}
    with overlaid(made, (base,)) as root:
        _within(root, {}, "python3", "-m", "venv", f"/opt/nnha-{VERSION}")
        _within(root, {}, "ln", "-s", f"nnha-{VERSION}", "/opt/nnha")
        _pip(root, seen, "download", "--dest", WHEELS, *pinned)
        found = f"[global]\nno-index = true\nfind-links = {WHEELS}\n"
        (root / "etc" / "pip.conf").write_text(found)
        _pip(root, seen, "install", *pinned)


def _install_ours(made: Path, below: Sequence[Path], wheel: Path) -> None:
    with overlaid(made, below) as root:
        _pip(root, {wheel.parent: "/wheel"}, "install", "--no-deps", f"/wheel/{wheel.name}")


def _pip(root: Path, seen: dict[Path, str], *words: str) -> None:
    quietly = ("--quiet", "--disable-pip-version-check")
    _within(root, seen, "/opt/nnha/bin/pip", *quietly, *words)


def _within(root: Path, seen: dict[Path, str], *words: str) -> None:
    """Run one command in the file system, with this machine's network and trust, and no systemd."""
    trust = {TRUST: str(TRUST)} if TRUST.exists() else {}
    binds = [f"--bind-ro={here}:{there}" for here, there in {**seen, **trust}.items()]
    index = [f"--setenv={name}={text}" for name, text in os.environ.items() if name in _INDEX]
    start = ("systemd-nspawn", "-q", "-D", str(root), *UNMANAGED, "--console=pipe")
    _said(*start, "--resolv-conf=copy-host", *binds, *index, *words)


_INDEX: Final = (
    "PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
    "https_proxy", "http_proxy", "no_proxy",
)  # fmt: skip
"""The settings of pip for this machine's package index."""

UNMANAGED: Final = (
    ("--register=no",) if Path("/run/systemd/system").is_dir() else ("--register=no", "--keep-unit")
)
"""Where systemd does not run, nspawn cannot be given a unit of its own."""


@contextlib.contextmanager
def overlaid(upper: Path, below: Sequence[Path]) -> Iterator[Path]:
    """Mount the layers as one file system during a ``with``; ``upper`` gets all writes."""
    with tempfile.TemporaryDirectory(dir=upper.parent, prefix="overlay-") as name:
        work, root = Path(name) / "work", Path(name) / "root"
        work.mkdir()
        root.mkdir()
        _said("mount", "-t", "overlay", "overlay", "-o", overlay(upper, below, work), str(root))
        try:
            yield root
        finally:
            _said("umount", str(root))


def overlay(upper: Path, below: Sequence[Path], work: Path) -> str:
    """Return the options of such a mount; its end waits for no disk, which others keep busy."""
    return f"lowerdir={':'.join(map(str, below))},upperdir={upper},workdir={work},volatile"


def _kept(kind: str, texts: Sequence[str], make: Callable[[Path], None]) -> Path:
    """Return a folder in the cache, made once from these texts, by one process at a time."""
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / "nnha" / "systemd"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{kind}-{digest}"
    with (cache / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = cache / f"making-{kind}"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(folder)
    return folder


def _said(*words: str) -> str:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=MAKE_SECONDS,
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise LocalClusterError(f"Ran `{' '.join(words)}`; it ended with {done.returncode}: {said}")
    return done.stdout


if __name__ == "__main__":
    sys.stdout.write(f"{installed(Path(tempfile.mkdtemp()))}\n")
