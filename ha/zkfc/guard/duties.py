"""The signs that a controller's duties give, for a thread apart from the event loop to read."""

from collections.abc import Callable
from functools import partial

from ha.zkfc.guard.core import Sign


class Duties:
    """The newest sign of each duty.  Signs are given on the event loop, and read by any thread."""

    def __init__(self) -> None:
        self._signs: dict[str, Sign] = {}

    def heartbeat_for(self, duty: str) -> Callable[[float], None]:
        """Return what this duty calls each time: with the time within which it will call again."""
        return partial(self._give, duty)

    def signs(self) -> tuple[Sign, ...]:
        """Return the newest sign of each duty that has given one."""
        # One step of the interpreter: the event loop cannot add a duty in the middle of it.
        return tuple(self._signs.values())

    def _give(self, duty: str, within_seconds: float) -> None:
        before = self._signs.get(duty)
        count = 1 if before is None else before.count + 1
        self._signs[duty] = Sign(duty, count, within_seconds)
