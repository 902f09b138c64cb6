"""Finds or fetches the jar with Hadoop's own NameNode, DataNode, oiv and oev, and that of distcp.

``NNHA_INTEROP=1 python -m tests.interop.hadoop_jars`` fetches it and prints where it is.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.local.cluster.java import find_jars

SERVER, DISTCP = "hadoop-client-minicluster", "hadoop-distcp"
FETCH_SECONDS = 300.0
"""The server's jar has 56 MB; Maven may have to fetch its own plugin first."""

ADVICE = (
    "To fetch it once from Maven Central (Maven's own settings apply), run: "
    "NNHA_INTEROP=1 ./run test; or put the jar into the directory that NNHA_INTEROP_JARS names"
)


class JarsMissing(Exception):
    """A jar of Hadoop's cannot be had here; the message says why, and how to get it."""


def hadoop_version() -> str:
    """Return the version of PySpark's Hadoop client; the server's must be the same."""
    for jar in find_jars().glob("hadoop-client-api-*.jar"):
        if match := re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name):
            return match[1]
    raise JarsMissing(f"no hadoop-client-api-*.jar is in {find_jars()}")


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return where the jars are kept between runs, outside the checkout."""
    if given := environ.get("NNHA_INTEROP_JARS"):
        return Path(given)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nnha" / "interop"


def server_jar(environ: Mapping[str, str] | None = None) -> Path:
    """Return the server's jar; see ``jar_of``."""
    return jar_of(SERVER, environ)


def jar_of(artifact: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return a jar, from the cache; fetch it first where NNHA_INTEROP=1 asks for that.

    Raises:
        JarsMissing: when it is not there and may not, or cannot, be fetched.
    """
    environ = os.environ if environ is None else environ
    version = hadoop_version()
    jar = cache_directory(environ) / f"{artifact}-{version}.jar"
    if jar.is_file():
        return jar
    if environ.get("NNHA_INTEROP") != "1":
        raise JarsMissing(f"{jar} is not there. {ADVICE}")
    _fetch(
        jar,
        f"org.apache.hadoop:{artifact}:{version}",
        shutil.which("mvn", path=environ.get("PATH", "")),
    )
    return jar


def _fetch(jar: Path, wanted: str, maven: str | None) -> None:
    if maven is None:
        raise JarsMissing(f"{jar} is not there, and there is no mvn to fetch it. {ADVICE}")
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="fetching-") as name:
        scratch = Path(name)
        run_maven([maven, "dependency:copy", f"-Dartifact={wanted}"], scratch, wanted)
        fetched = scratch / jar.name
        if not fetched.is_file():
            raise JarsMissing(f"Maven fetched {wanted}, and there is no {jar.name}")
        # Whole, then named: a jar cut short would fail much later, inside the JVM.
        fetched.replace(jar)


def run_maven(command: Sequence[str], into: Path, wanted: str) -> None:
    """Have Maven copy jars into a folder.  Raises JarsMissing with what it says."""
    options = ("--quiet", "--batch-mode", f"-DoutputDirectory={into}")
    try:
        done = subprocess.run(
            [*command, *options], cwd=into, capture_output=True, text=True,
            timeout=FETCH_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"Maven did not deliver {wanted} within {FETCH_SECONDS:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["(no output)"]
        raise JarsMissing(f"Maven could not fetch {wanted}: {lines[0]}")


def main() -> int:
    """Have the jar in the cache; where that cannot be, say why and return 1."""
    try:
        sys.stdout.write(f"{server_jar()}\n")
    except JarsMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
