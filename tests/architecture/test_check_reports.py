"""A failing test is told at the end of a run, in one line, and its output does not hide it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.checks import Outcome, Stage, Told, read_report, run_stage, skip_lines
from tests.needs import GIT, NEEDS, Need, need_of

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
    fails, cannot_begin = outcome.failures
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
    assert read_report(report("<testcase name='a'/>")) == Told((), ())


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
    assert read_report(report(f"<testcase name='a'>{expected}</testcase>")) == Told((), ())


def test_a_run_that_only_skips_what_it_has_fails(tmp_path: Path) -> None:
    test = tmp_path / "test_made_to_skip.py"
    reason = GIT.reason("this test does not look")
    test.write_text(f"import pytest\n\ndef test_a():\n    pytest.skip({reason!r})\n")
    outcome = run_stage(Stage("unit", command(test)))
    assert outcome.skips == (reason,)
    assert not outcome.passed


def test_skips_are_counted_by_their_reason() -> None:
    rare, often = "needs gcc: not found", "needs sshd: not found"
    outcomes = [
        Outcome("unit", passed=True, seconds=1.0, skips=(often, rare)),
        Outcome("cluster", passed=True, seconds=1.0, skips=(often,)),
    ]
    assert skip_lines(outcomes) == ["3 tests were skipped:", f"     2  {often}", f"     1  {rare}"]
    assert skip_lines([]) == ["no test was skipped"]


@pytest.mark.parametrize("need", NEEDS.values(), ids=lambda need: need.name)
def test_each_need_is_known_by_its_own_reason(need: Need) -> None:
    assert need_of(need.reason("why")) is need


def report(cases: str) -> str:
    return f"<testsuites><testsuite>{cases}</testsuite></testsuites>"


def skipped(reason: str) -> str:
    return f'<skipped type="pytest.skip" message="{reason}"/>'
