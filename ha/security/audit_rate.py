"""Which audit lines are written: a stranger who asks a million times must not fill a disk.  Pure.

Each caller has lines of its own, so that no caller's refusals hide another's; and of those some are
for refused control actions (what is audited where it is allowed, a transition for instance), so
that a caller's own noise hides none of these.
"""

from collections import Counter
from collections.abc import Hashable
from enum import Enum, auto
from typing import Final

from ha.record import dataclass, field

QUIET_SECONDS: Final = 60.0
MOST_OF_A_CALLER: Final = 20
"""Refusals in a quiet time, and again as many of control actions."""
MOST_GRANTED: Final = 60
"""Lines of what a mere client may ask for: the handlers refuse most of it."""
MOST_CALLERS: Final = 256
"""In a quiet time; those that come later share the lines of one."""
_OTHERS: Final = "others"


class Share(Enum):
    """Of a caller's lines."""

    COMMON = auto()
    CONTROL = auto()
    GRANTED = auto()


_MOST: Final = {
    Share.COMMON: MOST_OF_A_CALLER, Share.CONTROL: MOST_OF_A_CALLER, Share.GRANTED: MOST_GRANTED,
}  # fmt: skip


@dataclass(slots=True)
class _Kind:
    until: float
    silent: int = 0


@dataclass(slots=True)
class _Lines:
    """Those of one caller."""

    window_ends: float
    written: Counter[Share] = field(default_factory=Counter)
    kinds: dict[Hashable, _Kind] = field(default_factory=dict)


@dataclass(slots=True)
class RefusalRate:
    """The first refusal of a caller's kind is written, then one a minute with the number of others.

    One is for callers that are proven, and another for all the others, whose addresses are cheap.
    """

    _unsaid: int = 0
    _callers: dict[Hashable, _Lines] = field(default_factory=dict)

    def admit(
        self, caller: Hashable, kind: Hashable, now: float, share: Share = Share.COMMON
    ) -> int | None:
        """Return the number of silent ones before this one; None: this one is silent, too.

        ``kind`` None: each has a line, as long as there are any.
        """
        lines = self._lines_of(caller, now)
        known = lines.kinds.get(kind)
        if known is not None and now < known.until:
            known.silent += 1
            return None
        if lines.written[share] >= _MOST[share]:
            self._unsaid += 1
            return None
        lines.written[share] += 1
        if kind is not None:
            lines.kinds[kind] = _Kind(now + QUIET_SECONDS)
        return 0 if known is None else known.silent

    def take_unsaid(self, now: float) -> int:
        """Return how many refusals no line has counted, of kinds whose quiet time is over."""
        unsaid, self._unsaid = self._unsaid, 0
        for caller, lines in tuple(self._callers.items()):
            for kind, known in tuple(lines.kinds.items()):
                if now >= known.until:
                    unsaid += known.silent
                    del lines.kinds[kind]
            if not lines.kinds and now >= lines.window_ends:
                del self._callers[caller]
        return unsaid

    @property
    def is_silent(self) -> bool:
        """Whether there are refusals that no line has counted."""
        kinds = (kind for lines in self._callers.values() for kind in lines.kinds.values())
        return self._unsaid > 0 or any(kind.silent for kind in kinds)

    def _lines_of(self, caller: Hashable, now: float) -> _Lines:
        lines = self._callers.get(caller)
        if lines is None:
            if len(self._callers) >= MOST_CALLERS:
                self._unsaid = self.take_unsaid(now)
            if len(self._callers) >= MOST_CALLERS:
                caller = _OTHERS
            lines = self._callers.setdefault(caller, _Lines(now + QUIET_SECONDS))
        if now >= lines.window_ends:
            lines.window_ends = now + QUIET_SECONDS
            lines.written.clear()
            kept = {kind: one for kind, one in lines.kinds.items() if one.silent or now < one.until}
            lines.kinds = kept
        return lines
