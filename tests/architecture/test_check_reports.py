"""A failing test is told at the end of a run, in one line, and its output does not hide it."""

import subprocess
import sys
from pathlib import Path

from tests import ROOT
from tests.checks import Stage, failing_tests, run_stage

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
    assert (
        failing_tests("<testsuites><testsuite><testcase name='a'/></testsuite></testsuites>") == []
    )
