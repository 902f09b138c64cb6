"""What ZooKeeper, the takeover and the controller report to the elector, in the past tense."""

from ha.elector.model import AttemptNumber, Breadcrumb, SessionNumber
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class JoinRequested:
    """The controller wants to be in the election with this application data."""

    data: bytes


@dataclass(frozen=True, slots=True)
class QuitRequested:
    """The controller wants out; the breadcrumb stays unless our NameNode is surely standby."""

    keep_breadcrumb: bool
    ended: str = ""
    """The process that was active in this term has ended: which one, and when it was seen."""


@dataclass(frozen=True, slots=True)
class LookDue:
    """A second has passed: lost watches must not blind us for longer than that."""


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The session is connected, for the first time or again."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class SessionSuspended:
    """The connection is gone; the session may live on at the servers."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The session is over, and its ephemeral znodes with it."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class SessionRefused:
    """ZooKeeper will never accept us as we are configured (authentication)."""

    session: SessionNumber
    reason: str


@dataclass(frozen=True, slots=True)
class LockCreated:
    """Our create of the lock succeeded in this session."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LockTaken:
    """The lock exists already; whose it is must be asked (it can be our own earlier try)."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LockSeen:
    """The lock exists, and its ephemeralOwner is or is not this session; a watch is set."""

    session: SessionNumber
    ours: bool
    made: int = 0
    """The ZooKeeper transaction that made this lock; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class LockGone:
    """There is no lock: seen by asking, or reported by the watch."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LockChanged:
    """The watch fired for something else than a deletion: look again."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class LookUnanswered:
    """A look at the lock brought no answer in time; nothing was changed by it."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """A request that matters got no answer before its deadline; it may still take effect."""

    session: SessionNumber
    request: str


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """ZooKeeper refused a request in a way that no retry will change (no parent, no rights)."""

    session: SessionNumber
    request: str
    reason: str


@dataclass(frozen=True, slots=True)
class BreadcrumbRead:
    """The breadcrumb as it stands; None when there is none."""

    session: SessionNumber
    attempt: AttemptNumber
    breadcrumb: Breadcrumb | None


@dataclass(frozen=True, slots=True)
class BreadcrumbWritten:
    """The breadcrumb names us, at this version."""

    session: SessionNumber
    attempt: AttemptNumber
    version: int


@dataclass(frozen=True, slots=True)
class OldActiveFenced:
    """The node named in the breadcrumb is harmless."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class Promoted:
    """Our NameNode answered that it is active."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class TakeoverFailed:
    """Reading, fencing, writing or promoting failed for good in this attempt."""

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
