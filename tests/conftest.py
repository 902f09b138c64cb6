"""Keeps the report of a failing test short: its reason must stand in the tail of a CI log."""

from collections.abc import Generator
from typing import Any

import pytest

KEPT_LINES = 40


def tail(text: str, kept: int = KEPT_LINES) -> str:
    """The last lines of a captured output, and how many were left out before them."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= kept:
        return text
    return f"... {len(lines) - kept} lines left out ...\n" + "".join(lines[-kept:])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, Any, pytest.TestReport]:
    """Trim what a failing test printed and logged, not its traceback."""
    report: pytest.TestReport = yield
    if report.failed:
        report.sections = [(name, tail(text)) for name, text in report.sections]
    return report
