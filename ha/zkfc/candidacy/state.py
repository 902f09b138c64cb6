"""The state of a candidacy: its place, and the facts that its decisions depend on.

The places exclude each other, and each has the fields that only it needs.
"""

from ha.health.core import Health, Trouble
from ha.record import dataclass, field
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import Standing
from ha.zkfc.candidacy.failback import FailBack
from ha.zkfc.candidacy.flapping import Flapping
from ha.zkfc.candidacy.model import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class BackOff:
    """The pause after failed takeovers: it doubles with each, up to a cap."""

    first_seconds: float = 1.0
    cap_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.first_seconds <= self.cap_seconds:
            raise ValueError("the first pause must be above 0 and at most the cap")

    def after(self, failures: int) -> float:
        """Return the pause in seconds after ``failures`` failures in a row (at least 1)."""
        return float(min(self.cap_seconds, self.first_seconds * 2 ** min(failures - 1, 30)))


@dataclass(frozen=True, slots=True)
class StoodBack:
    """We stay out until this time of the caller's monotonic clock, even if we are eligible."""

    until: float
    because: str


@dataclass(frozen=True, slots=True)
class Out:
    """Not in the election."""

    because: str = ""
    """Empty before the first decision."""
    stood_back: StoodBack | None = None
    """Kept while our NameNode is unhealthy, too; dropped at its time or at CedeEnded."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not in the election, only because a candidate of higher rank goes first."""

    because: str


@dataclass(frozen=True, slots=True)
class Joined:
    """In the election; our NameNode has no role yet, or its role is unknown."""


@dataclass(frozen=True, slots=True)
class StandingBy:
    """In the election; a peer has the lock, and our NameNode confirmed that it is standby."""


@dataclass(frozen=True, slots=True)
class TakingOver:
    """We have the lock, and are fencing the former active and promoting our NameNode."""

    believed: ServiceState
    """The state that we had given our NameNode before the takeover."""
    kept_because: str = ""
    """Why we keep the lock though we would leave otherwise; empty if we would not."""


@dataclass(frozen=True, slots=True)
class Active:
    """We have the lock, and our NameNode confirmed that it is active."""

    kept_because: str = ""
    """As in TakingOver."""
    handing_over: bool = False
    """Our NameNode is drained, and its successor was asked and has not answered yet."""


Place = Out | Waiting | Joined | StandingBy | TakingOver | Active


@dataclass(frozen=True, slots=True)
class DrainAttempt:
    """The outcome of the last hand-over of our drained active."""

    failure: str
    """Why the successor did not take over; empty if it did."""
    retry_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidacy:
    """The place, and the facts that do not depend on it."""

    back_off: BackOff = field(default_factory=BackOff)
    standing: Standing = field(default_factory=Standing)
    flapping: Flapping = field(default_factory=Flapping)
    fail_back: FailBack = field(default_factory=FailBack)
    place: Place = field(default_factory=Out)
    health: Health = Health.INITIALIZING
    trouble: Trouble = Trouble.NONE
    health_reason: str = ""
    reported: ServiceState | None = None
    """The HA state in our NameNode's last report; None before the first."""
    contradicted: bool = False
    """Its last report differs from ``believed``; it may have crossed a transition."""
    in_transition: bool = False
    """Our NameNode was asked to change its state and has not answered yet."""
    not_demoted: str = ""
    """Why our NameNode did not confirm that it is standby; empty after it reported that."""
    last_drain: DrainAttempt | None = None
    failures: int = 0
    """The failed takeovers since our NameNode last became active or standby."""

    @property
    def joined(self) -> bool:
        """Whether we are in the election, or have just decided to join it."""
        return not isinstance(self.place, Out | Waiting)

    @property
    def holding(self) -> bool:
        """Whether we hold the lock: our NameNode is active or becoming active."""
        return isinstance(self.place, TakingOver | Active)

    @property
    def waits(self) -> bool:
        """Whether we are out only because a candidate of higher rank goes first."""
        return isinstance(self.place, Waiting)

    @property
    def stood_back(self) -> StoodBack | None:
        """How long we stay out even if we are eligible, and why; None otherwise."""
        return self.place.stood_back if isinstance(self.place, Out) else None

    @property
    def out_because(self) -> str:
        """Why we are not in the election; empty if we are."""
        return self.place.because if isinstance(self.place, Out | Waiting) else ""

    @property
    def kept_because(self) -> str:
        """Why we keep the lock though we would leave otherwise; empty if we would not."""
        return self.place.kept_because if isinstance(self.place, TakingOver | Active) else ""

    @property
    def believed(self) -> ServiceState:
        """The state that we have given our NameNode; INITIALIZING while we are out."""
        match self.place:
            case Out() | Waiting() if self.reported is ServiceState.OBSERVER:
                return ServiceState.OBSERVER
            case Out() | Waiting() | Joined():
                return ServiceState.INITIALIZING
            case StandingBy():
                return ServiceState.STANDBY
            case TakingOver(believed=before):
                return before
            case Active():
                return ServiceState.ACTIVE


@dataclass(frozen=True, slots=True)
class Step:
    """The state after an event, and the decisions to carry out in this order."""

    state: Candidacy
    decisions: tuple[Decision, ...] = ()
