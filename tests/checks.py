"""Run everything that CI runs, stage by stage, and say at the end which stages hold."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tests import ROOT
from tests.pytest_report import SHOWN, Report, read_report

BIN = Path(sys.executable).parent
SLOWEST_FILES = 15


@dataclass(frozen=True, slots=True)
class Stage:
    """One check and the command that does it."""

    name: str
    command: tuple[str, ...]
    least_tests: int = 0
    marker: str = ""
    """That all its tests have: only their files are read, since to read all takes each of the
    processes 15 s."""
    aside: bool = False
    """It needs one core, and runs while the next stages go on: many tests wait."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a stage."""

    name: str
    passed: bool
    seconds: float
    report: Report | None = None
    """Of pytest, where the stage ran it."""


SIDE_BY_SIDE = ("--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0", "-n")
"""Files run in parallel in this number of processes, more than a small machine has cores: most
tests wait for processes, disks, deadlines.  Those that start JVMs or whole clusters do so less.
One that crashes is not replaced: with a replacement pytest-xdist 3.8 may wait for ever at the end
(pytest-dev/pytest-xdist, issue 1378).
"""

PYTEST = (sys.executable, "-m", "pytest", "-m")
UNIT = "not cluster and not interop and not long"

NO_CARETS = {"PYTHONNODEBUGRANGES": "1"}
"""Without it Python 3.11 parses the source of each line that a traceback shows, for its carets.  A
finalizer that fails while pytest parses the source of a failing test then ends the whole run
("AST constructor recursion depth mismatch", python/cpython issue 106905)."""

STAGES = (
    Stage("format", (str(BIN / "ruff"), "format", "--check", "--quiet", ".")),
    Stage("lint", (str(BIN / "ruff"), "check", "--quiet", ".")),
    Stage("types", (str(BIN / "mypy"),), aside=True),
    Stage("layers", (str(BIN / "lint-imports"),)),
    # Each of unit's processes would compile all tests anew where none has done so.
    Stage("collect", (*PYTEST, UNIT, "--collect-only", "-qq")),
    # The slow cluster tests come last, so that a plain mistake is reported in the first minute.
    Stage("unit", (*PYTEST, UNIT, *SIDE_BY_SIDE, "4"), least_tests=15000),
    Stage(
        "interop",
        (*PYTEST, "interop and not long", *SIDE_BY_SIDE, "3"),
        least_tests=340,
        marker="interop",
    ),
    # One of the three plays faults for minutes, and mostly waits.
    Stage(
        "cluster",
        (*PYTEST, "cluster and not interop and not long", *SIDE_BY_SIDE, "3"),
        least_tests=100,
        marker="cluster",
    ),
)
ON_REQUEST = (Stage("long", (*PYTEST, "long")),)
"""Played where they are named: CI has no time for them."""


def run_stage(stage: Stage) -> Outcome:
    sys.stderr.write(f"== {stage.name}\n")
    sys.stderr.flush()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [*stage.command, *_files_with(stage.marker)]
        if "pytest" in command:
            # The older family names the file of each test.
            command += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
        code = subprocess.run(command, cwd=ROOT, env=os.environ | NO_CARETS, check=False).returncode
        told = _judged(stage, read_report(report.read_text())) if report.exists() else None
    passed = code == 0 and not (told and told.failures)
    return Outcome(stage.name, passed, time.monotonic() - began, told)


def run_stages(stages: Sequence[Stage]) -> list[Outcome]:
    with ThreadPoolExecutor() as pool:
        begun = [pool.submit(run_stage, one) if one.aside else run_stage(one) for one in stages]
    return [one.result() if isinstance(one, Future) else one for one in begun]


def _files_with(marker: str) -> list[str]:
    """Return the files whose tests have the marker; none without one, which is all for pytest."""
    if not marker:
        return []
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file) for file in files if f"mark.{marker}" in file.read_text("utf-8")]


def _judged(stage: Stage, told: Report) -> Report:
    """Fail on fewer tests than there are, too: a typing error in a marker loses hundreds."""
    if told.tests >= stage.least_tests:
        return told
    few = (
        f"{stage.name}: {told.tests} tests were collected, fewer than {stage.least_tests}; look "
        "for a lost marker or folder, or lower least_tests where so many were removed"
    )
    return replace(told, failures=(*told.failures, few))


def summary_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what was tested, what it took, what stands behind it, and what was left out."""
    lines = []
    for one in outcomes:
        tests = f"{one.report.tests:6} tests" if one.report else ""
        verdict = "ok" if one.passed else "FAILED"
        lines.append(f"{one.name:10} {verdict:8} {one.seconds:7.1f} s {tests}".rstrip())
    reports = [one.report for one in outcomes if one.report is not None]
    if not reports:
        return lines
    shown = sum((Counter(report.shown) for report in reports), Counter())
    lines.append(", ".join(f"{shown[what]} {what}" for what in SHOWN))
    slowest = sum((Counter(report.seconds_by_file) for report in reports), Counter())
    lines.append("the files that took longest:")
    lines += [f"{took:7.1f} s  {file}" for file, took in slowest.most_common(SLOWEST_FILES)]
    reasons = Counter(reason for report in reports for reason in report.skips)
    lines.append(f"{reasons.total()} tests were skipped{':' if reasons else ''}")
    lines += [f"{count:7}    {reason}" for reason, count in reasons.most_common()]
    # Last of all: a reader of CI sees the last lines of its log first.
    return lines + [failure for report in reports for failure in report.failures]


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
    outcomes = run_stages(chosen)
    for line in summary_lines(outcomes):
        sys.stderr.write(f"{line}\n")
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        stages = [_facts(outcome) for outcome in outcomes]
        sys.stdout.write(json.dumps({"task": "test", "passed": passed, "stages": stages}) + "\n")
    return 0 if passed else 1


def _facts(outcome: Outcome) -> dict[str, object]:
    told = outcome.report or Report()
    return {
        "stage": outcome.name,
        "passed": outcome.passed,
        "seconds": round(outcome.seconds, 2),
        "tests": told.tests,
        "failures": list(told.failures),
        "skipped": dict(Counter(told.skips)),
        "shown": dict(told.shown),
        "slowest_files": dict(Counter(told.seconds_by_file).most_common(SLOWEST_FILES)),
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
