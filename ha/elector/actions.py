"""The actions that the core requests: of the ZooKeeper client, and of the application."""

from ha.elector.model import AttemptNumber, SessionNumber, Term
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Build a client for a new session and connect it."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close the session and drop its client."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class CreateLock:
    """Create the ephemeral lock with this data."""

    session: SessionNumber
    data: bytes


@dataclass(frozen=True, slots=True)
class WatchLock:
    """Read whether the lock exists and which session owns it, and set a watch."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class ReleaseLock:
    """Delete our lock, which releases it sooner than closing the session would."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class ReadBreadcrumb:
    """Read the breadcrumb's content and version."""

    session: SessionNumber
    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class WriteBreadcrumb:
    """Write our name into the breadcrumb: create it (version None), or replace that version."""

    session: SessionNumber
    attempt: AttemptNumber
    content: bytes
    version: int | None


@dataclass(frozen=True, slots=True)
class DeleteBreadcrumb:
    """Delete our breadcrumb if it still has the version that we wrote."""

    session: SessionNumber
    version: int


@dataclass(frozen=True, slots=True)
class RecordSettled:
    """Record that our NameNode became active under our breadcrumb with this content."""

    session: SessionNumber
    content: bytes


@dataclass(frozen=True, slots=True)
class RecordEnded:
    """Record that the described process, which was active in this term, has ended."""

    session: SessionNumber
    told: str


@dataclass(frozen=True, slots=True)
class FenceOldActive:
    """Fence the NameNode in this breadcrumb."""

    attempt: AttemptNumber
    content: bytes
    term: Term = Term.UNKNOWN


@dataclass(frozen=True, slots=True)
class ServeAsActive:
    """Make our NameNode active."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class ServeAsStandby:
    """Make our NameNode standby: another controller holds the lock."""


@dataclass(frozen=True, slots=True)
class EnterNeutral:
    """Record that the lock's owner is unknown."""


@dataclass(frozen=True, slots=True)
class AbandonTakeover:
    """Cancel fencing or promotion: the attempt has lost the lock or its session."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Report that the attempt failed; we have left the election until asked to join again."""

    attempt: AttemptNumber
    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Report that the election cannot go on without an operator."""

    reason: str


ZooKeeperAction = (
    OpenSession
    | CloseSession
    | CreateLock
    | WatchLock
    | ReleaseLock
    | ReadBreadcrumb
    | WriteBreadcrumb
    | DeleteBreadcrumb
    | RecordSettled
    | RecordEnded
)
ApplicationAction = (
    FenceOldActive
    | ServeAsActive
    | ServeAsStandby
    | EnterNeutral
    | AbandonTakeover
    | ReportFailure
    | GiveUp
)
Action = ZooKeeperAction | ApplicationAction
