"""Hadoop's own journal and observer tests, run against nnha's JournalNodes.

The stand-in for ``MiniJournalCluster`` and its runner lie with the test data; Maven fetches
Hadoop's test jars once, where NNHA_INTEROP=1 asks for that.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests import ROOT, TESTDATA
from tests.interop.hadoop_jars import FETCH_SECONDS, cache_directory

TOOLS: Final = TESTDATA.parent / "tools" / "upstream" / "journal"
_TEST_JAR: Final = "hadoop-hdfs-*-tests.jar"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ran, as ``Class.method``, and which of these did not pass, with the reason."""

    ran: frozenset[str]
    failed: dict[str, str]


def lacking() -> str:
    """Return why the tests cannot run here; empty where they can."""
    if not (TOOLS / "run.sh").is_file():
        return f"{TOOLS} is not there (NNHA_TESTDATA names the folder next to it)"
    if any(_libraries().glob(_TEST_JAR)):
        return ""
    if os.environ.get("NNHA_INTEROP") != "1" or shutil.which("mvn") is None:
        return f"no {_TEST_JAR} in {_libraries()} (NNHA_INTEROP=1 lets Maven fetch it)"
    return ""


def run(folder: Path, selectors: Sequence[str], *, seconds: float, test_seconds: int) -> Outcome:
    """Run the selected tests in one JVM; raises TimeoutExpired after ``seconds``."""
    tools = folder / "tools"
    shutil.copytree(TOOLS, tools)
    environ = {
        **os.environ, "LIB": str(_fetched(folder)), "NNHA": str(ROOT),
        "UPSTREAM_WORK": str(folder), "TEST_LIMIT": str(test_seconds),
        "JOPT": f"-Dnnha.python={sys.executable}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'deploy' / 'python'}",
    }  # fmt: skip
    command = ["bash", str(tools / "run.sh"), "nnha", str(folder / "out"), *selectors]
    with (folder / "console.txt").open("wb") as out:
        subprocess.run(command, env=environ, stdout=out, stderr=out, timeout=seconds, check=False)
    ran, failed = set[str](), dict[str, str]()
    for report in (folder / "out" / "reports").glob("TEST-*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}"
            name = name.removesuffix("()")
            ran.add(name)
            for kind in ("failure", "error"):
                if (why := case.find(kind)) is not None:
                    failed[name] = why.get("message") or kind
    return Outcome(frozenset(ran), failed)


def _libraries() -> Path:
    return cache_directory(os.environ) / "upstream-journal"


def _fetched(folder: Path) -> Path:
    """Return the folder of the jars; fetch them where they are not there."""
    libraries = _libraries()
    if not any(libraries.glob(_TEST_JAR)):
        project, scratch = folder / "project", libraries.with_name(f"fetching-{os.getpid()}")
        project.mkdir()
        shutil.copy(TOOLS / "pom.xml", project)
        command = [
            "mvn",
            "-q",
            "-B",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={scratch}",
        ]
        subprocess.run(command, cwd=project, timeout=FETCH_SECONDS, check=True)
        # Whole, then named: another run may look at the same time.
        shutil.rmtree(libraries, ignore_errors=True)
        scratch.rename(libraries)
    return libraries
