"""The progress of a merge, as its stages report it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage has done ``done`` of ``total`` units; ``total`` is None while it is unknown."""

    stage: str
    done: int
    total: int | None
    unit: str


Tell = Callable[[Progress], None]


def tell_nobody(progress: Progress) -> None:
    """Ignore the progress, for callers that do not ask for it."""
