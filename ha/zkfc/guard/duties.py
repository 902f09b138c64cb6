"""Holds the signs of a controller's duties, for the guard's thread to read."""

from collections.abc import Callable
from functools import partial

from ha.zkfc.guard.core import Sign


class Duties:
    """The newest sign of each duty: written on the event loop, read by any thread."""

    def __init__(self) -> None:
        self._signs: dict[str, Sign] = {}

    def heartbeat_for(self, duty: str) -> Callable[[float], None]:
        """Return the function to call after each run of the duty, with the seconds to the next."""
        return partial(self._give, duty)

    def signs(self) -> tuple[Sign, ...]:
        """Return the newest sign of each duty that has given one."""
        # Atomic in CPython: the event loop cannot add a duty in between.
        return tuple(self._signs.values())

    def _give(self, duty: str, within_seconds: float) -> None:
        before = self._signs.get(duty)
        count = 1 if before is None else before.count + 1
        self._signs[duty] = Sign(duty, count, within_seconds)
