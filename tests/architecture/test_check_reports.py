"""A failing test is named at the end of a run, in one line, and its output does not hide it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.checks import Outcome, Stage, run_stage, run_stages, summary_lines
from tests.needs import GIT, NEEDS, Need, need_of
from tests.pytest_report import BUGS_FOUND, SEEDS_PLAYED, Report, read_report

_FAILS = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no fixture today")

@pytest.mark.parametrize("side", ["left"])
def test_fails(side):
    for line in range(1000):
        print(f"line {line} of the output")
    assert side == "right", "the wrong side"

def test_holds():
    pass

def test_cannot_begin(broken):
    pass
"""


def failing(folder: Path) -> Path:
    test = folder / "test_made_to_fail.py"
    test.write_text(_FAILS)
    (folder / "conftest.py").write_text("from tests.conftest import pytest_runtest_makereport\n")
    return test


def command(test: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={ROOT}",
            "-c", str(ROOT / "pyproject.toml"), str(test))  # fmt: skip


def test_failing_tests_are_named_with_their_reason(tmp_path: Path) -> None:
    outcome = run_stage(Stage("unit", command(failing(tmp_path))))
    assert not outcome.passed
    assert outcome.report is not None
    assert outcome.report.tests == 3
    fails, cannot_begin = outcome.report.failures
    assert "test_made_to_fail.py::test_fails[left]: AssertionError: the wrong side" in fails
    assert "::test_cannot_begin: " in cannot_begin
    assert "no fixture today" in cannot_begin


def test_a_long_output_is_cut_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        command(failing(tmp_path)), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "line 999 of the output" in done.stdout
    assert "line 960 of the output" in done.stdout
    assert "line 959 of the output" not in done.stdout
    assert "... 960 lines left out ..." in done.stdout
    assert "the wrong side" in done.stdout


def test_a_report_without_failures_names_nothing() -> None:
    told = read_report(report("<testcase name='a'/>"))
    assert (told.failures, told.skips) == ((), ())


ABSENT = "Hadoop's server jar"
SKIPS = {
    "what is absent may be skipped": (f"needs {ABSENT}: fetch it", ""),
    "what is here may not be skipped": ("needs a git checkout: not found", "although it is here"),
    "a reason that nobody knows is a failure": ("not today", "tests/needs.py does not know"),
    "a need that nobody knows is a failure": ("needs luck: none", "tests/needs.py does not know"),
}


@pytest.mark.parametrize("case", SKIPS)
def test_a_skip_is_judged_by_what_the_machine_has(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNHA_INTEROP_JARS", str(tmp_path))  # an empty folder: no jar here
    monkeypatch.delenv("NNHA_INTEROP", raising=False)
    reason, wrong = SKIPS[case]
    told = read_report(report(f'<testcase name="a" file="f.py">{skipped(reason)}</testcase>'))
    assert told.skips == (reason,)
    if wrong:
        (failure,) = told.failures
        assert failure.startswith("f.py::a: ")
        assert wrong in failure
    else:
        assert told.failures == ()


def test_a_jar_that_was_asked_for_may_not_be_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNHA_INTEROP_JARS", str(tmp_path))
    monkeypatch.setenv("NNHA_INTEROP", "1")
    told = read_report(report(f"<testcase name='a'>{skipped(f'needs {ABSENT}: no')}</testcase>"))
    assert len(told.failures) == 1


def test_an_expected_failure_is_no_skip() -> None:
    expected = "<skipped type='pytest.xfail' message='known'/>"
    told = read_report(report(f"<testcase name='a'>{expected}</testcase>"))
    assert (told.failures, told.skips) == ((), ())


def test_a_run_that_only_skips_what_it_has_fails(tmp_path: Path) -> None:
    test = tmp_path / "test_made_to_skip.py"
    reason = GIT.reason("this test does not look")
    test.write_text(f"import pytest\n\ndef test_a():\n    pytest.skip({reason!r})\n")
    outcome = run_stage(Stage("unit", command(test)))
    assert outcome.report is not None
    assert outcome.report.skips == (reason,)
    assert not outcome.passed


def test_a_run_that_finds_fewer_tests_than_there_are_fails(tmp_path: Path) -> None:
    test = tmp_path / "test_made_to_hold.py"
    test.write_text("def test_a():\n    pass\n")
    assert run_stage(Stage("unit", command(test), least_tests=1)).passed
    outcome = run_stage(Stage("unit", command(test), least_tests=2))
    assert not outcome.passed
    assert outcome.report is not None
    (few,) = outcome.report.failures
    assert few.startswith("unit: 1 tests were collected, fewer than 2; look for ")


def test_a_stage_aside_runs_while_the_next_does_and_its_failure_counts(tmp_path: Path) -> None:
    """The first ends only once the second has begun, and the other way round."""
    meet = (
        "import sys, time, pathlib; here = pathlib.Path(sys.argv[1])\n"
        "(here / sys.argv[2]).touch(); end = time.monotonic() + 60\n"
        "while not (here / sys.argv[3]).exists() and time.monotonic() < end: time.sleep(0.01)\n"
        "sys.exit(sys.argv[4] == 'fails' or time.monotonic() > end)"
    )

    def met(own: str, other: str, ending: str) -> tuple[str, ...]:
        return (sys.executable, "-c", meet, str(tmp_path), own, other, ending)

    first = Stage("types", met("a", "b", "fails"), aside=True)
    outcomes = run_stages([first, Stage("unit", met("b", "a", "passes"))])
    assert [(one.name, one.passed) for one in outcomes] == [("types", False), ("unit", True)]


def test_what_tests_have_shown_is_added_up(tmp_path: Path) -> None:
    test = tmp_path / "test_made_to_tell.py"
    test.write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('seeds', [40, 2])\n"
        "def test_a(seeds, record_property):\n"
        f"    record_property({SEEDS_PLAYED!r}, seeds)\n"
        "    record_property('something else', 'x')\n"
    )
    outcome = run_stage(Stage("unit", command(test)))
    assert outcome.report is not None
    assert outcome.report.shown == {SEEDS_PLAYED: 42}
    assert "42 seeds played, 0 planted bugs found, 0 faults survived" in summary_lines([outcome])


def test_the_end_of_a_run_tells_what_was_tested_and_what_was_left_out() -> None:
    rare, often = "needs gcc: not found", "needs sshd: not found"
    of_unit = Report(
        900, skips=(often, rare), shown={BUGS_FOUND: 3}, seconds_by_file={"a.py": 2.0, "b.py": 71.5}
    )
    of_cluster = Report(30, ("c.py::d: lost",), (often,), seconds_by_file={"c.py": 9.0})
    assert summary_lines(
        [
            Outcome("lint", passed=True, seconds=1.0),
            Outcome("unit", passed=True, seconds=99.5, report=of_unit),
            Outcome("cluster", passed=False, seconds=10.0, report=of_cluster),
        ]
    ) == [
        "lint       ok           1.0 s",
        "unit       ok          99.5 s    900 tests",
        "cluster    FAILED      10.0 s     30 tests",
        "0 seeds played, 3 planted bugs found, 0 faults survived",
        "the files that took longest:",
        "   71.5 s  b.py",
        "    9.0 s  c.py",
        "    2.0 s  a.py",
        "3 tests were skipped:",
        f"      2    {often}",
        f"      1    {rare}",
        "c.py::d: lost",
    ]


@pytest.mark.parametrize("need", NEEDS.values(), ids=lambda need: need.name)
def test_each_need_is_known_by_its_own_reason(need: Need) -> None:
    assert need_of(need.reason("why")) is need


def report(cases: str) -> str:
    return f"<testsuites><testsuite>{cases}</testsuite></testsuites>"


def skipped(reason: str) -> str:
    return f'<skipped type="pytest.skip" message="{reason}"/>'
