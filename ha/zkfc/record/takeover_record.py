"""What a controller remembers of one takeover."""

from ha.elector.model import AttemptNumber
from ha.notices.model import FailoverKind, FencingAttempt, PhaseDuration
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """The operator who asked for a hand-over, the host, and the reason if given."""

    user: str
    host: str
    reason: str = ""
    """In the words of whoever asked; empty where none were given."""
    by_itself: bool = False
    """No operator asked: our own controller took the role back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One finished takeover."""

    number: AttemptNumber
    succeeded: bool
    text: str
    """Empty, or why it failed."""
    fenced: str
    """What fencing did, or that there was nothing to fence."""
    duration_seconds: float
    finished_at: str
    """ISO 8601, UTC; for people, never compared."""
    asked: Asked | None = None
    """None without a request: an automatic failover."""
    previous: str = ""
    """The NameNode that was active before, where that is known."""
    unreadable: bool = False
    """There is a breadcrumb, and it names no NameNode."""
    seen_ended: bool = False
    """The former active's own controller saw its process end."""
    witnessed: str = ""
    """Why we removed the former owner's lock before its session had ended; or empty."""
    phases: tuple[PhaseDuration, ...] = ()
    fencing: tuple[FencingAttempt, ...] = ()

    @property
    def kind(self) -> FailoverKind:
        """Automatic, or asked for."""
        by_itself = self.asked is None or self.asked.by_itself
        return FailoverKind.AUTO if by_itself else FailoverKind.SWITCHOVER

    @property
    def actor(self) -> str | None:
        """The operator that asked; None when none did."""
        return None if self.asked is None or self.asked.by_itself else self.asked.user
