"""Fetches the jars of others' programs by Maven, once, into a folder outside of the checkout."""

import os
import shutil
import tempfile
from pathlib import Path

from tests.interop.hadoop_jars import JarsMissing, cache_directory, run_maven


def libraries(name: str) -> Path:
    """Return the folder of the jars of that name; it may not be there yet."""
    return cache_directory(os.environ) / name


def fetched(name: str, pom: str, marker: str) -> Path:
    """Return the folder of all jars that a pom.xml depends on; fetch them where they are not there.

    ``marker`` is a pattern that the name of one of the jars matches.  Raises JarsMissing where they
    may not, or cannot, be fetched.
    """
    folder = libraries(name)
    if any(folder.glob(marker)):
        return folder
    maven = shutil.which("mvn")
    if os.environ.get("NNHA_INTEROP") != "1" or maven is None:
        raise JarsMissing(
            f"no {marker} is in {folder}; with NNHA_INTEROP=1, and mvn on PATH, Maven fetches it"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as scratch:
        project, jars = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        project.write_text(pom)
        jars.mkdir()
        run_maven([maven, "-f", str(project), "dependency:copy-dependencies"], jars, name)
        # Whole, then named: another run may look at the same time.
        shutil.rmtree(folder, ignore_errors=True)
        jars.rename(folder)
    return folder
