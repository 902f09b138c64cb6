"""What docs/metrics.md says: each daemon's metrics with type and labels."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from tests import ROOT

DOCUMENT: Final = ROOT / "docs" / "metrics.md"
ALL_DAEMONS: Final = "All daemons"
DAEMONS: Final = ("NameNode", "ZKFC", "JournalNode", "Web")
CHECKPOINT_SERVICE: Final = "Checkpoint service"
CERTIFICATES: Final = "Daemons with certificates"
_ROW: Final = re.compile(r"\| `(nnha_\w+)` \| (\w+) \| ([\w, -]+) \| (.+) \|")


@dataclass(frozen=True, slots=True)
class Documented:
    """One row of a daemon's table."""

    name: str
    kind: str
    labels: frozenset[str]


@cache
def section(title: str) -> str:
    """Return the text below a heading of the second level."""
    text = DOCUMENT.read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, f"{DOCUMENT} has no section {title}"
    return rest.partition("\n## ")[0]


def metrics_of(daemon: str) -> dict[str, Documented]:
    rows = [*_ROW.findall(section(ALL_DAEMONS)), *_ROW.findall(section(daemon))]
    return {
        name: Documented(name, kind, frozenset(labels.replace("-", "").replace(",", " ").split()))
        for name, kind, labels, _ in rows
    }


def all_metrics() -> dict[str, Documented]:
    found: dict[str, Documented] = {}
    for daemon in (*DAEMONS, CHECKPOINT_SERVICE, CERTIFICATES):
        found |= metrics_of(daemon)
    return found
