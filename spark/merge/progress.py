"""How far a merge is, as its stages tell it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage has done ``done`` of ``total`` units; ``total`` is None while nobody knows."""

    stage: str
    done: int
    total: int | None
    unit: str


Tell = Callable[[Progress], None]


def tell_nobody(progress: Progress) -> None:
    """For those who do not ask."""
