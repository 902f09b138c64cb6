"""The types of the election: sessions, takeover attempts, roles, the breadcrumb."""

from enum import StrEnum
from typing import NewType

from ha.record import dataclass

SessionNumber = NewType("SessionNumber", int)
"""Our own number of a ZooKeeper session; each new client gets the next one."""

AttemptNumber = NewType("AttemptNumber", int)
"""Our own number of a takeover; a waiting hand-over compares these, not clocks."""

LOCK_ZNODE = "ActiveStandbyElectorLock"
BREADCRUMB_ZNODE = "ActiveBreadCrumb"
TERM_ZNODE = "NnhaActiveTerm"
"""Not in Hadoop; see ``ha.elector.term``."""
COUNT_ZNODE = "NnhaLockCount"
"""Not in Hadoop; see ``ha.elector.lock_keeper``."""


class Role(StrEnum):
    """The role of this elector: Hadoop's ActiveStandbyElector.State, and TAKING_OVER.

    TAKING_OVER is the time between winning the lock and being active, in which the former active is
    fenced, the breadcrumb is written, our NameNode is promoted, and the session may be lost.
    """

    INIT = "init"
    STANDBY = "standby"
    TAKING_OVER = "taking_over"
    ACTIVE = "active"
    NEUTRAL = "neutral"


class Link(StrEnum):
    """The last known state of the current session's connection."""

    CLOSED = "closed"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    SUSPENDED = "suspended"


class Stage(StrEnum):
    """The answer that a takeover waits for."""

    NONE = "none"
    READING = "reading"
    FENCING = "fencing"
    WRITING = "writing"
    PROMOTING = "promoting"


class Term(StrEnum):
    """What is known of the NameNode in the breadcrumb apart from its name."""

    UNKNOWN = "unknown"
    SETTLED = "settled"
    """It became active, so its predecessor was fenced."""
    ENDED = "ended"
    """It was active, and its own controller saw its process end."""
    DOUBTED = "doubted"
    """Other clients than controllers could have written the breadcrumb, so it may be forged."""


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """The content and version of the breadcrumb znode."""

    content: bytes
    version: int
    term: Term = Term.UNKNOWN


class Removal(StrEnum):
    """The outcome of removing a peer's lock."""

    REMOVED = "removed"
    NOT_THAT_LOCK = "that lock is not there any more"
    UNCOUNTED = "its controller does not count its locks"
    FORBIDDEN = "we have no right to it"
    TOO_LATE = "ZooKeeper answered too late, or a bar was seen meanwhile: nothing was asked of it"
    UNKNOWN = "ZooKeeper has not told"
