"""A suite of Hadoop's tests is well only if all of it ran."""

import pytest

from tests import ROOT
from tests.campaigns.soak.upstream import SUITES, Ended, ended

PASSED = '<testcase name="test_a"/>'
FAILED = '<testcase name="test_b"><failure message="assert 1 == 2">more</failure></testcase>'
BROKEN = '<testcase name="test_c"><error message="no cluster"/></testcase>'
SKIPPED = '<testcase name="test_d"><skipped message="no jars"/></testcase>'


@pytest.mark.parametrize(
    ("cases", "expected", "well"),
    [
        ((PASSED,), Ended(("test_a",), {}, {}), True),
        ((PASSED, FAILED), Ended(("test_a",), {"test_b": "assert 1 == 2"}, {}), False),
        ((PASSED, BROKEN), Ended(("test_a",), {"test_c": "no cluster"}, {}), False),
        ((PASSED, SKIPPED), Ended(("test_a",), {}, {"test_d": "no jars"}), False),
        ((), Ended((), {}, {}), False),
    ],
    ids=["all pass", "one fails", "one cannot begin", "one is skipped", "none ran"],
)
def test_a_suite_is_well_only_if_all_of_it_passed(
    cases: tuple[str, ...], expected: Ended, *, well: bool
) -> None:
    found = ended(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    assert found == expected
    assert found.well is well


@pytest.mark.parametrize("place", SUITES.values(), ids=SUITES)
def test_a_suite_names_tests_that_are_there(place: str) -> None:
    assert "def test_" in (ROOT / place).read_text()
