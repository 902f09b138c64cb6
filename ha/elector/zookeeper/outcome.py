"""The three ends of a ZooKeeper request: done, refused, or unknown; never a bare error."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

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
class NodeFacts:
    """What a look at a znode shows."""

    version: int
    ours: bool
    """Its ephemeralOwner is the session that asked."""
    written_by: int = 0
    """The ZooKeeper transaction that wrote its bytes (mzxid); no two writes share one."""
    owner: int = 0
    """The session whose end deletes it (ephemeralOwner); 0 for a znode that stays."""


class SessionState(StrEnum):
    """What a session's connection reports."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    REFUSED = "refused"
