"""Run everything that CI runs, stage by stage, and say at the end which stages hold."""

import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT
from tests.needs import need_of

_REASON_LETTERS = 200
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Stage:
    """One check and the command that does it."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a stage: for each failing test its id and one line of the reason, and why
    tests were skipped.
    """

    name: str
    passed: bool
    seconds: float
    failures: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What pytest's report says of the tests that did not pass."""

    failures: tuple[str, ...]
    skips: tuple[str, ...]
    """One reason for each skipped test."""


SIDE_BY_SIDE = ("--dist", "loadfile", "--no-loadscope-reorder", "-n")
"""Files side by side in so many processes, more than a small machine has cores: most tests wait
for processes, disks and deadlines.  Those that start JVMs or whole clusters do so less."""

PYTEST = (sys.executable, "-m", "pytest", "-m")
UNIT = "not cluster and not interop and not long"

NO_CARETS = {"PYTHONNODEBUGRANGES": "1"}
"""Without it Python 3.11 parses the source of each line that a traceback shows, for its carets.  A
finalizer that fails while pytest parses the source of a failing test then ends the whole run
("AST constructor recursion depth mismatch", python/cpython issue 106905)."""

STAGES = (
    Stage("format", (str(BIN / "ruff"), "format", "--check", "--quiet", ".")),
    Stage("lint", (str(BIN / "ruff"), "check", "--quiet", ".")),
    Stage("types", (str(BIN / "mypy"),)),
    Stage("layers", (str(BIN / "lint-imports"),)),
    # The slow cluster tests come last, so that a plain mistake is told in the first minute.
    Stage("unit", (*PYTEST, UNIT, *SIDE_BY_SIDE, "3")),
    Stage("interop", (*PYTEST, "interop", *SIDE_BY_SIDE, "3")),
    # One of the three plays faults for minutes, and mostly waits.
    Stage("cluster", (*PYTEST, "cluster and not interop and not long", *SIDE_BY_SIDE, "3")),
)
ON_REQUEST = (Stage("long", (*PYTEST, "long")),)
"""Played where they are named: CI has no time for them."""


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
        code = subprocess.run(command, cwd=ROOT, env=os.environ | NO_CARETS, check=False).returncode
        told = read_report(report.read_text()) if report.exists() else Told((), ())
    passed = code == 0 and not told.failures
    seconds = time.monotonic() - began
    return Outcome(stage.name, passed, seconds, told.failures, told.skips)


def read_report(junit_xml: str) -> Told:
    """The failing tests of a report, and the skips.

    A skip is a failure where this machine has what the test needs, or where its reason names no
    need that ``tests/needs.py`` knows.
    """
    failures, skips = [], []
    for case in ET.fromstring(junit_xml).iter("testcase"):
        file = case.get("file") or case.get("classname", "")
        name = f"{file}::{case.get('name')}"
        for kind in ("failure", "error"):
            if (found := case.find(kind)) is not None:
                failures.append(f"{name}: {_reason(found)}")
                break
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("type") != "pytest.xfail":
            skips.append(_reason(skipped))
            if wrong := _wrong_with(_reason(skipped)):
                failures.append(f"{name}: {wrong}")
    return Told(tuple(failures), tuple(skips))


def _reason(element: ET.Element) -> str:
    text = (element.get("message") or "no reason given").strip()
    return text.splitlines()[0][:_REASON_LETTERS]


def _wrong_with(skip: str) -> str:
    """Why a skip counts as a failure; empty where it does not."""
    need = need_of(skip)
    if need is None:
        return f"skipped for a reason that tests/needs.py does not know: {skip}"
    return f"skipped ({skip}), although it is here" if need.here else ""


def skip_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """How many tests were skipped, and why, the most frequent reason first."""
    reasons = Counter(reason for outcome in outcomes for reason in outcome.skips)
    if not reasons:
        return ["no test was skipped"]
    return [
        f"{reasons.total()} tests were skipped:",
        *(f"{count:6}  {reason}" for reason, count in reasons.most_common()),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the stages that are named, or all, and return 0 only if every one holds."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"]
    every = (*STAGES, *ON_REQUEST)
    unknown = sorted(set(names) - {stage.name for stage in every})
    if unknown:
        known = ", ".join(stage.name for stage in every)
        sys.stderr.write(f"there is no stage {', '.join(unknown)}; there are: {known}\n")
        return 2
    chosen = [stage for stage in every if stage.name in names] if names else STAGES
    outcomes = [run_stage(stage) for stage in chosen]
    for outcome in outcomes:
        verdict = "ok" if outcome.passed else "FAILED"
        sys.stderr.write(f"{outcome.name:10} {verdict:8} {outcome.seconds:7.1f} s\n")
    for line in skip_lines(outcomes) if any("pytest" in s.command for s in chosen) else ():
        sys.stderr.write(f"{line}\n")
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
                "skipped": dict(Counter(o.skips)),
            }
            for o in outcomes
        ]
        sys.stdout.write(json.dumps({"task": "test", "passed": passed, "stages": stages}) + "\n")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
