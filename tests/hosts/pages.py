"""The pages that are carried out on the hosts of the lab, in this order."""

from collections.abc import Iterator
from typing import Final

from tests import ROOT
from tests.hosts.page import Step, steps

DOCS: Final = ROOT / "docs"
REST: Final = "\n### Every daemon, one after the other\n"
"""In the operator's guide: what comes then takes minutes."""
LOST: Final = "\n### A NameNode that has lost its disk\n"
BY_HAND: Final = "\n## Hand over\n"


def first_day() -> Iterator[Step]:
    """Yield what leads from nothing to a file read after a failover, and to a standby again."""
    return steps(_guide()[0])


def first_file() -> Iterator[Step]:
    """Yield what leads from nothing to a file, which one NameNode has written the edits of."""
    return steps(_guide()[0].partition("\nAnd the first failover")[0])


def every_day() -> Iterator[Step]:
    """Yield restarts, replacements and renewals."""
    return steps(_guide()[1].partition(BY_HAND)[0])


def by_hand() -> Iterator[Step]:
    """Yield hand-overs and questions, whose answers clients would change."""
    before, found, rest = _guide()[1].partition(BY_HAND)
    assert found, f"operations.md has no{BY_HAND}"
    return steps(_blank(before + found) + rest)


def lost_name_directory() -> Iterator[Step]:
    """Yield how the standby on host1 gets an image again."""
    _, found, rest = (DOCS / "operations.md").read_text().partition(LOST)
    assert found, f"operations.md has no{LOST}"
    return steps(rest.partition("\n### ")[0])


def page(name: str) -> Iterator[Step]:
    """Yield what is marked in a page of docs."""
    return steps((DOCS / name).read_text())


def _guide() -> tuple[str, str]:
    text = (DOCS / "operations.md").read_text()
    first, found, rest = text.partition(REST)
    assert found, f"operations.md has no{REST}"
    return first, _blank(first + found) + rest


def _blank(text: str) -> str:
    """Return as many lines, so that those behind it have the numbers of the page."""
    return "\n" * text.count("\n")
