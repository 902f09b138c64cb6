"""What nnha web counts and times."""

from enum import StrEnum
from typing import Final

from prometheus_client import Counter, Gauge, Histogram


class Look(StrEnum):
    """How a look at the cluster ended; a cluster without any answer was looked at, too."""

    FINISHED = "finished"
    FAILED = "failed"


class Refusal(StrEnum):
    """Why somebody got nothing."""

    NAME = "name"
    """It was asked under a name that is not its own."""
    FULL = "full"
    """As many watch already as may."""


LOOKS: Final = Counter("nnha_web_looks", "Looks at the cluster by how they ended", ["result"])
LOOK_SECONDS: Final = Histogram(
    "nnha_web_look_seconds",
    "How long a look at the cluster took, whether or not anybody answered",
    buckets=(0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0),
)
VIEWERS: Final = Gauge("nnha_web_viewers", "Browsers and programs that follow the cluster now")
REFUSED: Final = Counter("nnha_web_refused", "Requests that got nothing, by the reason", ["reason"])

# An increase from nothing is none: each series begins at 0.
for _result in Look:
    LOOKS.labels(_result.value)
for _reason in Refusal:
    REFUSED.labels(_reason.value)
