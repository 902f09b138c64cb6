"""Run everything that CI runs, stage by stage, and say at the end which stages hold."""

import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT

_REASON_LETTERS = 200
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Stage:
    """One check and the command that does it."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a stage, and for each failing test its id and one line of the reason."""

    name: str
    passed: bool
    seconds: float
    failures: tuple[str, ...] = ()


SIDE_BY_SIDE = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")
"""Files side by side, one process each: most tests wait for processes, disks and deadlines."""

STAGES = (
    Stage("format", (str(BIN / "ruff"), "format", "--check", "--quiet", ".")),
    Stage("lint", (str(BIN / "ruff"), "check", "--quiet", ".")),
    Stage("types", (str(BIN / "mypy"),)),
    Stage("layers", (str(BIN / "lint-imports"),)),
    # The slow cluster tests come last, so that a plain mistake is told in the first minute.
    Stage("unit", (sys.executable, "-m", "pytest", "-m", "not cluster", *SIDE_BY_SIDE)),
    Stage("cluster", (sys.executable, "-m", "pytest", "-m", "cluster")),
)


def run_stage(stage: Stage) -> Outcome:
    """Run one stage with its output on ours."""
    sys.stderr.write(f"== {stage.name}\n")
    sys.stderr.flush()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = list(stage.command)
        if "pytest" in command:
            # The older family names the file of each test.
            command += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        failures = tuple(failing_tests(report.read_text())) if report.exists() else ()
    return Outcome(stage.name, code == 0, time.monotonic() - began, failures)


def failing_tests(junit_xml: str) -> list[str]:
    """The id of each failing test of a report, and the first line of its reason."""
    told = []
    for case in ET.fromstring(junit_xml).iter("testcase"):
        for kind in ("failure", "error"):
            if (found := case.find(kind)) is not None:
                file = case.get("file") or case.get("classname", "")
                reason = (found.get("message") or "no reason given").strip().splitlines()[0]
                told.append(f"{file}::{case.get('name')}: {reason[:_REASON_LETTERS]}")
                break
    return told


def main(arguments: Sequence[str]) -> int:
    """Run the stages that are named, or all, and return 0 only if every one holds."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"]
    unknown = sorted(set(names) - {stage.name for stage in STAGES})
    if unknown:
        known = ", ".join(stage.name for stage in STAGES)
        sys.stderr.write(f"there is no stage {', '.join(unknown)}; there are: {known}\n")
        return 2
    outcomes = [run_stage(stage) for stage in STAGES if not names or stage.name in names]
    for outcome in outcomes:
        verdict = "ok" if outcome.passed else "FAILED"
        sys.stderr.write(f"{outcome.name:10} {verdict:8} {outcome.seconds:7.1f} s\n")
    # Last of all: whoever reads CI sees the last lines of its log first.
    for outcome in outcomes:
        for failure in outcome.failures:
            sys.stderr.write(f"{failure}\n")
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        stages = [
            {
                "stage": o.name,
                "passed": o.passed,
                "seconds": round(o.seconds, 2),
                "failures": list(o.failures),
            }
            for o in outcomes
        ]
        sys.stdout.write(json.dumps({"task": "test", "passed": passed, "stages": stages}) + "\n")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
