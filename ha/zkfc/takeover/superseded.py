"""Whether the process of our own NameNode, which was active and now hangs, may be ended from here.

The bad schedule that this is for: the active's process hangs, another NameNode takes over, and the
only fencing method is ``journal-epoch``, which does nothing to the process.  The clients that have
a connection to it wait for an answer, for two minutes by Hadoop's defaults.

Silence alone never ends a process.  Another NameNode must hold the lock and be active: then the
journal refuses every edit of this one, and it would end by itself at the next that it tries.

See docs/reference/zkfc.md#a-superseded-process-that-hangs.

Pure.
"""

from enum import Enum, auto
from typing import Final

from ha.record import dataclass

SILENT_IN_A_ROW: Final = 2
"""So often it must give no answer after another NameNode has become active."""


class Answer(Enum):
    """What our NameNode said when it was asked, after the successor was looked for."""

    STANDS_BY = auto()
    SERVES = auto()
    """It answers, and is not standby: the controller that demotes it can reach it."""
    SILENT = auto()
    """It took longer than the deadline."""
    UNCLEAR = auto()
    """Nothing listens, the connection broke, or our own event loop was late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a process that served as active under a lock which we have lost."""

    ours: bool
    """The lock is our controller's again."""
    successor: str
    """Another NameNode that holds the lock and is active; empty where there is none, or no proof"""
    answer: Answer


class Supersession(Enum):
    """What becomes of the process."""

    LEAVE = auto()
    """It is harmless, or active in a new term; it is watched no more."""
    LOOK_AGAIN = auto()
    END = auto()


def judge(silent: int, seen: Seen) -> tuple[int, Supersession]:
    """Return the number of silent looks in a row up to this one, and what is to be done."""
    if seen.ours or seen.answer is Answer.STANDS_BY:
        return 0, Supersession.LEAVE
    if not seen.successor or seen.answer is Answer.SERVES:
        return 0, Supersession.LOOK_AGAIN
    if seen.answer is Answer.UNCLEAR:
        return silent, Supersession.LOOK_AGAIN
    silent += 1
    return silent, Supersession.END if silent >= SILENT_IN_A_ROW else Supersession.LOOK_AGAIN
