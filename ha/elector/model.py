"""The election's words: sessions, takeover attempts, roles, the breadcrumb as it was read."""

from enum import StrEnum
from typing import NewType

from ha.record import dataclass

SessionNumber = NewType("SessionNumber", int)
"""Our own count of ZooKeeper sessions; it grows by one with each client we build."""

AttemptNumber = NewType("AttemptNumber", int)
"""Our own count of takeovers begun; a waiting hand-over compares these, never clocks."""

LOCK_ZNODE = "ActiveStandbyElectorLock"
BREADCRUMB_ZNODE = "ActiveBreadCrumb"
TERM_ZNODE = "NnhaActiveTerm"
"""Ours; see ``ha.elector.term``."""
COUNT_ZNODE = "NnhaLockCount"
"""Ours; see ``ha.elector.lock_keeper``."""


class Role(StrEnum):
    """Where this elector stands (Hadoop's ActiveStandbyElector.State, and TAKING_OVER).

    Winning the lock is not being active: fencing, the breadcrumb and the promotion lie between,
    and losing the session half-way must be an event like any other.
    """

    INIT = "init"
    STANDBY = "standby"
    TAKING_OVER = "taking_over"
    ACTIVE = "active"
    NEUTRAL = "neutral"


class Link(StrEnum):
    """What we last heard of the current session's connection."""

    CLOSED = "closed"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    SUSPENDED = "suspended"


class Stage(StrEnum):
    """Which answer a takeover waits for."""

    NONE = "none"
    READING = "reading"
    FENCING = "fencing"
    WRITING = "writing"
    PROMOTING = "promoting"


class Term(StrEnum):
    """What is known of the breadcrumb's owner apart from its name."""

    UNKNOWN = "unknown"
    SETTLED = "settled"
    """It became active, so the one before it had been fenced."""
    ENDED = "ended"
    """It was active, and its own controller saw its process end."""
    DOUBTED = "doubted"
    """Others than our controllers could have written the breadcrumb, so it may name anybody."""


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """The breadcrumb znode's bytes and the version they were read at."""

    content: bytes
    version: int
    term: Term = Term.UNKNOWN


class Removal(StrEnum):
    """What has come of removing another's lock."""

    REMOVED = "removed"
    NOT_THAT_LOCK = "that lock is not there any more"
    UNCOUNTED = "its controller does not count its locks"
    FORBIDDEN = "we have no right to it"
    TOO_LATE = "ZooKeeper answered too late, or a bar was seen meanwhile: nothing was asked of it"
    UNKNOWN = "ZooKeeper has not told"
