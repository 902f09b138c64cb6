"""The three ends of a ZooKeeper request: done, refused, or unknown; never a bare error."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.record import dataclass

T_co = TypeVar("T_co", covariant=True)


class Refusal(StrEnum):
    """Why ZooKeeper definitely did not do it."""

    NODE_EXISTS = "node exists"
    NO_NODE = "no node"
    BAD_VERSION = "version changed"
    NO_RIGHTS = "no rights"
    NOT_EMPTY = "not empty"
    EXPIRED = "session expired"
    OTHER = "other"


class Doubt(StrEnum):
    """Why it is not known whether ZooKeeper did it."""

    LOST = "connection lost"
    LATE = "deadline passed"


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """The request took effect, with this answer."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Refused:
    """The request had no effect."""

    why: Refusal
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have had its effect, or may still have it: kazoo goes on with what we gave up."""

    why: Doubt


Outcome = Done[T_co] | Refused | Unknown


@dataclass(frozen=True, slots=True)
class ZnodeFacts:
    """What a look at a znode shows."""

    version: int
    ours: bool
    """Its ephemeralOwner is the session that asked."""
    written_by: int = 0
    """The ZooKeeper transaction that wrote its bytes (mzxid); no two writes share one."""
    owner: int = 0
    """The session whose end deletes it (ephemeralOwner); 0 for a znode that stays."""
    written_at: float = 0.0
    """When its bytes were written (mtime), in seconds since 1970 by ZooKeeper's own clock."""


class SessionState(StrEnum):
    """What a session's connection reports."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    REFUSED = "refused"


_MEANINGS: Mapping[str, Refusal | Doubt] = {
    "NodeExistsError": Refusal.NODE_EXISTS,
    "NoNodeError": Refusal.NO_NODE,
    "BadVersionError": Refusal.BAD_VERSION,
    "NoAuthError": Refusal.NO_RIGHTS,
    "AuthFailedError": Refusal.NO_RIGHTS,
    "InvalidACLError": Refusal.NO_RIGHTS,
    "NotEmptyError": Refusal.NOT_EMPTY,
    "SessionExpiredError": Refusal.EXPIRED,
    "ConnectionLoss": Doubt.LOST,
    "ConnectionClosedError": Doubt.LOST,
    "OperationTimeoutError": Doubt.LOST,
    # Troubles of a server's that pass, while the connection may stay.  They are no reason to give
    # up, and none to believe that nothing was done: only a new session settles it.
    "SessionMovedError": Doubt.LATE,
    "RequestTimeoutError": Doubt.LATE,
    "ThrottledOpError": Doubt.LATE,
}


def meaning_of(error: str) -> Refusal | Doubt:
    """Look up the error's class; an unknown one is a refusal that no retry changes."""
    return _MEANINGS.get(error, Refusal.OTHER)


def value_of(outcome: Outcome[T_co], request: str) -> T_co:
    """Return the answer to a request; ``request`` completes "ZooKeeper refused to ...".

    Raises:
        ZooKeeperRefused: it had no effect.
        ZooKeeperUnavailable: whether it had an effect is unknown.
    """
    match outcome:
        case Done(value=value):
            return value
        case Refused(why=why, text=text):
            raise ZooKeeperRefused(f"ZooKeeper refused to {request}: {why} ({text})")
        case Unknown(why=doubt):
            raise ZooKeeperUnavailable(f"no answer to: {request} ({doubt}); it may have been done")
