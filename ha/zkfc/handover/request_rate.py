"""How often one caller may ask a controller to change roles."""

from collections import OrderedDict, deque
from typing import Final

WINDOW_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 256
"""Callers, of whom the one that has been quiet longest is forgotten; all of them are admins."""


class RequestRate:
    """Counts requests by caller and kind over the last minute; ``most`` 0: as many as come."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def admit(self, caller: str, kind: str, now: float) -> float:
        """Return 0 if this one may be; else the seconds until the next may, without counting it."""
        if not self._most:
            return 0.0
        asked = self._asked.setdefault((caller, kind), deque())
        self._asked.move_to_end((caller, kind))
        while asked and asked[0] <= now - WINDOW_SECONDS:
            asked.popleft()
        if len(asked) >= self._most:
            return asked[0] + WINDOW_SECONDS - now
        asked.append(now)
        if len(self._asked) > MOST_REMEMBERED:
            self._asked.popitem(last=False)
        return 0.0
