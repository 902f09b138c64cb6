"""Decides whether to kill our own NameNode's process, which was active and hangs.

The bad schedule: the active's process hangs, another NameNode takes over, and the only fencing
method is ``journal-epoch``, which does not touch the process.  Clients with a connection to it wait
for its answer, for two minutes by Hadoop's defaults.

The process is killed only if another NameNode holds the lock and is active.  Then the JournalNodes
refuse its edits, and it would end by itself at its next one.

See docs/reference/zkfc.md#a-superseded-process-that-hangs.

Pure.
"""

from enum import Enum, auto
from typing import Final

from ha.record import dataclass

SILENT_IN_A_ROW: Final = 2
"""It must leave this number of requests in a row unanswered under an active successor."""


class Answer(Enum):
    """Our NameNode's answer, asked for after the successor was looked up."""

    STANDS_BY = auto()
    SERVES = auto()
    """It answers, and is not standby; it is demoted by the usual request."""
    SILENT = auto()
    """It did not answer within the deadline."""
    UNCLEAR = auto()
    """Nothing listens, the connection broke, or our own event loop was late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a process that was active under a lock that we have lost."""

    ours: bool
    """Our controller holds the lock again."""
    successor: str
    """The other NameNode that provably holds the lock and is active; empty if there is none."""
    answer: Answer


class Supersession(Enum):
    """What to do with the process."""

    LEAVE = auto()
    """Stop watching: it is harmless, or active in a new term."""
    LOOK_AGAIN = auto()
    END = auto()


def judge(silent: int, seen: Seen) -> tuple[int, Supersession]:
    """Return the number of silent looks in a row including this one, and what to do."""
    if seen.ours or seen.answer is Answer.STANDS_BY:
        return 0, Supersession.LEAVE
    if not seen.successor or seen.answer is Answer.SERVES:
        return 0, Supersession.LOOK_AGAIN
    if seen.answer is Answer.UNCLEAR:
        return silent, Supersession.LOOK_AGAIN
    silent += 1
    return silent, Supersession.END if silent >= SILENT_IN_A_ROW else Supersession.LOOK_AGAIN
