"""What the elector asks for, in the imperative: of ZooKeeper's door, and of the application."""

from ha.elector.model import AttemptNumber, SessionNumber, Term
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Build a client for a new session and connect it."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close the session and throw its client away."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class CreateLock:
    """Create the ephemeral lock with this data."""

    session: SessionNumber
    data: bytes


@dataclass(frozen=True, slots=True)
class WatchLock:
    """Ask whether the lock exists and whose it is, and leave a watch."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class ReleaseLock:
    """Delete our lock, which hands it on sooner than closing the session would."""

    session: SessionNumber


@dataclass(frozen=True, slots=True)
class ReadBreadcrumb:
    """Read the breadcrumb's bytes and version."""

    session: SessionNumber
    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class WriteBreadcrumb:
    """Name us in the breadcrumb: create it (version None) or set it at the version read."""

    session: SessionNumber
    attempt: AttemptNumber
    content: bytes
    version: int | None


@dataclass(frozen=True, slots=True)
class DeleteBreadcrumb:
    """Delete our breadcrumb if it is still at the version that we wrote."""

    session: SessionNumber
    version: int


@dataclass(frozen=True, slots=True)
class RecordSettled:
    """Record next to our breadcrumb, which has these bytes, that our NameNode became active."""

    session: SessionNumber
    content: bytes


@dataclass(frozen=True, slots=True)
class RecordEnded:
    """Record that the process that was active in this term has ended, and which one it was."""

    session: SessionNumber
    told: str


@dataclass(frozen=True, slots=True)
class FenceOldActive:
    """Make the node that these breadcrumb bytes name harmless."""

    attempt: AttemptNumber
    content: bytes
    term: Term = Term.UNKNOWN


@dataclass(frozen=True, slots=True)
class ServeAsActive:
    """Order our NameNode to become active."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class ServeAsStandby:
    """Order our NameNode to be standby: another controller holds the lock."""


@dataclass(frozen=True, slots=True)
class EnterNeutral:
    """Note that the lock's owner cannot be determined at present."""


@dataclass(frozen=True, slots=True)
class AbandonTakeover:
    """Stop fencing or promoting: the ground on which the attempt stood is gone."""

    attempt: AttemptNumber


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Say that the attempt failed; we are out of the election until asked to join again."""

    attempt: AttemptNumber
    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Say that the election cannot go on without an operator."""

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
