"""The state of a candidacy, and what else is known: all that its decisions depend on.

The places exclude each other, and each carries what is true in it alone: a reason to be out is
there only while we are out, one to stay in only while our NameNode has the lock.
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
    """How long to stay out after failed takeovers: doubling, up to a cap."""

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
    """We are out until then (on the caller's monotonic clock), however well everything is."""

    until: float
    because: str


@dataclass(frozen=True, slots=True)
class Out:
    """Not in the election."""

    because: str = ""
    """Empty before anything was judged."""
    stood_back: StoodBack | None = None
    """Stays while our NameNode is ill, too; over with its time, or when we are let back."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not in the election, only because somebody of higher rank, who is there, goes first."""

    because: str


@dataclass(frozen=True, slots=True)
class Joined:
    """In the election; our NameNode was given no role in it yet, or its role is unknown."""


@dataclass(frozen=True, slots=True)
class StandingBy:
    """In the election; the lock is another's, and our NameNode confirmed that it is standby."""


@dataclass(frozen=True, slots=True)
class TakingOver:
    """The lock is ours; the former active is fenced, and our NameNode promoted."""

    believed: ServiceState
    """What we had made of our NameNode before; it counts until the takeover has ended."""
    kept_because: str = ""
    """Why we are in the election though we would leave it otherwise; or empty."""


@dataclass(frozen=True, slots=True)
class Active:
    """Our NameNode answered that it is active, and the lock is ours."""

    kept_because: str = ""
    """As in a takeover."""
    handing_over: bool = False
    """Drained; the successor that we asked has not answered yet."""


Place = Out | Waiting | Joined | StandingBy | TakingOver | Active


@dataclass(frozen=True, slots=True)
class DrainAttempt:
    """The last hand-over of a drained active has ended."""

    failure: str
    """Empty, or why the successor did not take over."""
    retry_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidacy:
    """The place, and facts that are independent of it and of each other."""

    back_off: BackOff = field(default_factory=BackOff)
    standing: Standing = field(default_factory=Standing)
    flapping: Flapping = field(default_factory=Flapping)
    fail_back: FailBack = field(default_factory=FailBack)
    place: Place = field(default_factory=Out)
    health: Health = Health.INITIALIZING
    trouble: Trouble = Trouble.NONE
    health_reason: str = ""
    reported: ServiceState | None = None
    """As the NameNode said last; None before its first report."""
    contradicted: bool = False
    """Its last report was not what we have made of it; it may have crossed a transition."""
    in_transition: bool = False
    """It was asked to change its role: its reports mean nothing until it has answered."""
    not_demoted: str = ""
    """Our NameNode should be standby, and would not say that it is; until it does."""
    last_drain: DrainAttempt | None = None
    failures: int = 0
    """Failed takeovers since the last time that we or another became active."""

    @property
    def joined(self) -> bool:
        """We are in the election, or have just decided to be."""
        return not isinstance(self.place, Out | Waiting)

    @property
    def holding(self) -> bool:
        """Our NameNode is active under our lock, or is just becoming it."""
        return isinstance(self.place, TakingOver | Active)

    @property
    def waits(self) -> bool:
        """Out only for somebody of higher rank: nothing is wrong."""
        return isinstance(self.place, Waiting)

    @property
    def stood_back(self) -> StoodBack | None:
        """Until when we are out in any case, and why."""
        return self.place.stood_back if isinstance(self.place, Out) else None

    @property
    def out_because(self) -> str:
        """Why we are not in the election; empty when we are."""
        return self.place.because if isinstance(self.place, Out | Waiting) else ""

    @property
    def kept_because(self) -> str:
        """Why we are in the election though we would leave it otherwise; empty elsewhere."""
        return self.place.kept_because if isinstance(self.place, TakingOver | Active) else ""

    @property
    def believed(self) -> ServiceState:
        """What we have made of our NameNode; nothing while we are out of the election."""
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
    """The state afterwards and what is to be done, in this order."""

    state: Candidacy
    decisions: tuple[Decision, ...] = ()
