"""The record of one takeover, and the request of a hand-over."""

from ha.elector.model import AttemptNumber
from ha.notices.model import FailoverKind, FencingAttempt, PhaseDuration
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class HandOverRequest:
    """A request to make our NameNode active: the user, the host, and the reason if given."""

    user: str
    host: str
    reason: str = ""
    by_itself: bool = False
    """True for a fail-back, which our own controller requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One finished takeover."""

    number: AttemptNumber
    succeeded: bool
    text: str
    """The failure; empty if it succeeded."""
    fenced: str
    """Describes what fencing did, or says that there was nothing to fence."""
    duration_seconds: float
    finished_at: str
    """ISO 8601 in UTC, for display only."""
    asked: HandOverRequest | None = None
    """None for an automatic failover."""
    previous: str = ""
    """The NameNode that was active before; empty if unknown."""
    unreadable: bool = False
    """The breadcrumb could not be decoded."""
    seen_ended: bool = False
    """The former active's own controller saw its process end."""
    witnessed: str = ""
    """The reason why our witness removed the former owner's lock; empty if it did not."""
    phases: tuple[PhaseDuration, ...] = ()
    fencing: tuple[FencingAttempt, ...] = ()

    @property
    def kind(self) -> FailoverKind:
        """SWITCHOVER if an operator requested it, else AUTO."""
        by_itself = self.asked is None or self.asked.by_itself
        return FailoverKind.AUTO if by_itself else FailoverKind.SWITCHOVER

    @property
    def actor(self) -> str | None:
        """The operator that requested it; None if none did."""
        return None if self.asked is None or self.asked.by_itself else self.asked.user
