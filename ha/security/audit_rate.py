"""Which refusals are written: a stranger who asks a million times must not fill a disk.  Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

QUIET_SECONDS: Final = 60.0
MOST_KINDS: Final = 1024
MOST_IN_A_QUIET_TIME: Final = 120
"""Lines of all kinds together: 127.0.0.0/8 alone has sixteen million addresses to call from."""


@dataclass(slots=True)
class _Kind:
    until: float
    silent: int = 0


@dataclass(slots=True)
class RefusalRate:
    """The first refusal of each kind is written, then one a minute with the number of others."""

    _unsaid: int = 0
    _kinds: "OrderedDict[Hashable, _Kind]" = field(default_factory=OrderedDict)
    _window_ends: float = 0.0
    _written: int = 0

    def admit(self, kind: Hashable, now: float) -> int | None:
        """Return the number of silent ones before this one; None: this one is silent, too."""
        known = self._kinds.get(kind)
        if known is not None and now < known.until:
            known.silent += 1
            return None
        if now >= self._window_ends:
            self._window_ends, self._written = now + QUIET_SECONDS, 0
        if self._written >= MOST_IN_A_QUIET_TIME:
            self._unsaid += 1
            return None
        self._written += 1
        silent = 0 if known is None else known.silent
        self._kinds[kind] = _Kind(now + QUIET_SECONDS)
        self._kinds.move_to_end(kind)
        if len(self._kinds) > MOST_KINDS:
            _, oldest = self._kinds.popitem(last=False)
            self._unsaid += oldest.silent
        return silent

    def take_uncounted(self) -> int:
        """Return how many refusals no later line will count, since the last such question."""
        unsaid, self._unsaid = self._unsaid, 0
        return unsaid
