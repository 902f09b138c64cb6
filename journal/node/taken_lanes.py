"""What the rest of a node knows of its write lanes."""

from typing import Protocol

from journal.lane import Offer


class TakenLanes(Protocol):
    """Where this process takes write lanes."""

    @property
    def offer(self) -> Offer:
        """What writers are offered: the port and the key."""

    def open_to(self, journal_id: str) -> int:
        """Return how many lanes a journal has."""
