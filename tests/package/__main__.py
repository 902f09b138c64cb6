"""``./run package``: build wheel and sdist twice, compare them, and list their parts."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from tests import ROOT
from tests.package.locks import LOCK, write_all

HATCHLING: Final = "hatchling==1.33.0"
CYCLONEDX: Final = "cyclonedx-bom==7.5.0"
LIMIT_SECONDS: Final = 300


class PackageFailed(Exception):
    """What was built is not what was asked for."""


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "var" / "package")
@click.option("--locks", is_flag=True, help="Only derive deploy/locks anew from requirements.lock.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, out: Path, locks: bool, as_json: bool) -> None:
    """Build from the last commit, twice; exit code 1 where the two differ."""
    if locks:
        write_all()
        return
    try:
        files = package(out)
    except (PackageFailed, subprocess.SubprocessError) as failure:
        raise click.ClickException(str(failure)) from failure
    for name, digest in files.items():
        click.echo(f"{digest}  {name}", err=as_json)
    if as_json:
        click.echo(json.dumps({"package": str(out), "sha256": files}))


def package(out: Path) -> dict[str, str]:
    """Build everything into ``out``; SHA-256 by file name.

    Raises:
        PackageFailed: two builds differ, or the wheel of the sdist is another one.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        tools = scratch / "tools"
        run(sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), HATCHLING)
        builds = [built(scratch / which, tools) for which in ("one", "two")]
        _same(*(_digests(build) for build in builds))
        again = _of_the_sdist(next(builds[0].glob("*.tar.gz")), scratch / "again", tools)
        wheel = next(builds[0].glob("*.whl"))
        _same(_digests(again), {wheel.name: _digest(wheel)})
        out.mkdir(parents=True, exist_ok=True)
        for old in out.iterdir():
            old.unlink()
        for file in builds[0].iterdir():
            file.rename(out / file.name)
        _list_parts(out / "sbom.cdx.json", scratch / "cyclonedx")
    digests = _digests(out)
    (out / "SHA256SUMS").write_text("".join(f"{d}  {n}\n" for n, d in sorted(digests.items())))
    return digests


def build_wheel(out: Path, version: str | None = None) -> Path:
    """Build a wheel of the tree as it is, for trials, as ``version``; commit or compare nothing."""
    with tempfile.TemporaryDirectory() as name:
        tools, source = Path(name) / "tools", ROOT
        run(sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), HATCHLING)
        if version is not None:
            source = Path(name) / "source"
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "var", "__pycache__"))
            project = source / "pyproject.toml"
            line = re.compile('^version = ".*"$', re.MULTILINE)
            project.write_text(line.sub(f'version = "{version}"', project.read_text(), count=1))
        return next(_hatch(source, out, tools, "wheel").glob("*.whl"))


def built(folder: Path, tools: Path) -> Path:
    """Build wheel and sdist of the last commit, from a copy of its files alone."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "HEAD"], check=True, capture_output=True,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    return _hatch(source, folder / "built", tools, "sdist", "wheel")


def _of_the_sdist(sdist: Path, folder: Path, tools: Path) -> Path:
    folder.mkdir()
    run("tar", "-x", "-C", str(folder), "-f", str(sdist))
    return _hatch(next(folder.iterdir()), folder / "built", tools, "wheel")


def _hatch(source: Path, out: Path, tools: Path, *targets: str) -> Path:
    words = [word for target in targets for word in ("-t", target)]
    run(
        *(sys.executable, "-m", "hatchling", "build", "-d", str(out), *words),
        cwd=source,
        environment={"PYTHONPATH": str(tools), "SOURCE_DATE_EPOCH": commit_time()},
    )
    return out


def commit_time(*paths: Path) -> str:
    """Return when the last commit was made, or the last that changed these files; seconds."""
    words = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct", "--", *map(str, paths)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _list_parts(out: Path, tools: Path) -> None:
    run(sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), CYCLONEDX)
    run(
        *(sys.executable, "-m", "cyclonedx_py", "requirements", str(LOCK), "--of", "JSON"),
        *("--sv", "1.6", "--output-reproducible", "-o", str(out)),
        environment={"PYTHONPATH": str(tools)},
    )


def run(*words: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Run a tool to its end; raise PackageFailed with what it said."""
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | (environment or {}), check=False, capture_output=True,
        text=True, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise PackageFailed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-2000:]}")


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: _digest(path) for path in sorted(folder.iterdir())}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _same(one: dict[str, str], two: dict[str, str]) -> None:
    if one != two:
        raise PackageFailed(f"two builds differ: {one} and {two}")


if __name__ == "__main__":
    main()
