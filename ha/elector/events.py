"""The events that ZooKeeper, the takeover and the controller report to the elector."""

from ha.elector.model import AttemptNumber, Breadcrumb, SessionNumber
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class JoinRequested:
    """The controller requests to join the election with this lock content."""

    data: bytes


@dataclass(frozen=True, slots=True)
class QuitRequested:
    """The controller requests to leave; the breadcrumb stays unless our NameNode is standby."""

    keep_breadcrumb: bool
    ended: str = ""
    """Describes the process that was active in this term, if it has ended."""


@dataclass(frozen=True, slots=True)
class LookDue:
    """The interval is over after which the lock is read again, in case a watch was lost."""


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The session is connected, for the first time or again."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class SessionSuspended:
    """The connection is lost; the session may still live at the servers."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The session has expired, and its ephemeral znodes are deleted."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class SessionRefused:
    """ZooKeeper refuses our configured credentials."""

    session: SessionNumber
    reason: str


@dataclass(frozen=True, slots=True)
class LockCreated:
    """Our create of the lock succeeded in this session."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LockTaken:
    """The lock exists already; its owner is unknown, and may be our own earlier create."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LockSeen:
    """The lock exists, and its ephemeralOwner is or is not this session; a watch is set."""

    session: SessionNumber
    ours: bool
    made: int = 0
    """The ZooKeeper transaction that created this lock; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class LockGone:
    """There is no lock, by a read or by the watch."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LockChanged:
    """The watch fired, but not for a deletion."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LookUnanswered:
    """A read of the lock got no answer in time."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """A write got no answer before its deadline; it may still take effect."""

    session: SessionNumber
    request: str


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """ZooKeeper refused a request for good, for instance without the parent or the rights."""

    session: SessionNumber
    request: str
    reason: str


@dataclass(frozen=True, slots=True)
class BreadcrumbRead:
    """The breadcrumb was read; None if there is none."""

    session: SessionNumber
    attempt: AttemptNumber
    breadcrumb: Breadcrumb | None


@dataclass(frozen=True, slots=True)
class BreadcrumbWritten:
    """Our breadcrumb was written, and has this version."""

    session: SessionNumber
    attempt: AttemptNumber
    version: int


@dataclass(frozen=True, slots=True)
class OldActiveFenced:
    """The NameNode in the breadcrumb was fenced."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class Promoted:
    """Our NameNode answered that it is active."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class TakeoverFailed:
    """The attempt failed while it read, fenced, wrote or promoted."""

    attempt: AttemptNumber
    reason: str


Event = (
    JoinRequested
    | QuitRequested
    | LookDue
    | SessionOpened
    | SessionSuspended
    | SessionExpired
    | SessionRefused
    | LockCreated
    | LockTaken
    | LockSeen
    | LockGone
    | LockChanged
    | LookUnanswered
    | OutcomeUnknown
    | RequestRefused
    | BreadcrumbRead
    | BreadcrumbWritten
    | OldActiveFenced
    | Promoted
    | TakeoverFailed
)
