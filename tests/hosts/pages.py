"""The pages that are carried out on the hosts of the lab, in this order."""

from collections.abc import Iterator
from typing import Final

from tests import ROOT
from tests.hosts.page import Step, steps

DOCS: Final = ROOT / "docs"
REST: Final = "\n### Every daemon, one after the other\n"
"""In the operator's guide: what comes then takes minutes."""


def first_day() -> Iterator[Step]:
    """Yield what leads from nothing to a file read after a failover, and to a standby again."""
    return steps(_guide()[0])


def every_day() -> Iterator[Step]:
    """Yield restarts, replacements and renewals."""
    return steps(_guide()[1])


def page(name: str) -> Iterator[Step]:
    """Yield what is marked in a page of docs."""
    return steps((DOCS / name).read_text())


def _guide() -> tuple[str, str]:
    text = (DOCS / "operations.md").read_text()
    first, found, rest = text.partition(REST)
    assert found, f"operations.md has no{REST}"
    # So that a line's number is the page's.
    return first, "\n" * (first.count("\n") + 1) + rest
