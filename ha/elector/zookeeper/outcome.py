"""The outcome of a ZooKeeper request: done, refused or unknown."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.record import dataclass

T_co = TypeVar("T_co", covariant=True)


class Refusal(StrEnum):
    """Why a request certainly had no effect."""

    NODE_EXISTS = "node exists"
    NO_NODE = "no node"
    BAD_VERSION = "version changed"
    NO_RIGHTS = "no rights"
    NOT_EMPTY = "not empty"
    EXPIRED = "session expired"
    OTHER = "other"


class Doubt(StrEnum):
    """Why it is unknown whether a request had an effect."""

    LOST = "connection lost"
    LATE = "deadline passed"


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """The request took effect; ``value`` is its answer."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Refused:
    """The request had no effect."""

    why: Refusal
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request may have had an effect, or may still have it: kazoo does not cancel requests."""

    why: Doubt


Outcome = Done[T_co] | Refused | Unknown


@dataclass(frozen=True, slots=True)
class ZnodeFacts:
    """A znode's Stat, as far as the elector needs it."""

    version: int
    ours: bool
    """Whether its ephemeralOwner is this session."""
    written_by: int = 0
    """The ZooKeeper transaction that last wrote its bytes (mzxid); each write has another one."""
    owner: int = 0
    """The session that owns it (ephemeralOwner); 0 for a persistent znode."""
    written_at: float = 0.0
    """When its bytes were written (mtime), in seconds since 1970 by the server's clock."""


class SessionState(StrEnum):
    """The states of a session; EXPIRED and REFUSED are final."""

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
    # Temporary errors of a server, after which the connection may stay.  The request may have had
    # an effect: only a new session shows that.
    "SessionMovedError": Doubt.LATE,
    "RequestTimeoutError": Doubt.LATE,
    "ThrottledOpError": Doubt.LATE,
}


def meaning_of(error: str) -> Refusal | Doubt:
    """Return the meaning of a kazoo error by its class name; OTHER, which no retry changes."""
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
