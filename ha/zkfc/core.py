"""May our NameNode stand for election?  Health, cede and reported state make the answer.

Rules of hadoop-ha 3.5, 3.6 and 3.8.  The NameNode's own report is believed against what we think
it is only when it differs twice in a row: one such report may have crossed a transition.
"""

from dataclasses import dataclass, field, replace
from typing import assert_never

from ha.health.core import Health
from ha.service.model import ServiceState

MISMATCH_PAUSE_SECONDS = 1.0
"""Hadoop's pause before rejoining after an external change of the NameNode's state."""


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """The monitor has judged anew."""

    health: Health


@dataclass(frozen=True, slots=True)
class StatusReported:
    """The NameNode said what it is."""

    state: ServiceState


@dataclass(frozen=True, slots=True)
class TransitionBegun:
    """We have asked our NameNode to change; its reports mean nothing until it has answered."""


@dataclass(frozen=True, slots=True)
class TransitionAbandoned:
    """The change that we asked for lost its ground; what our NameNode made of it is unknown."""


@dataclass(frozen=True, slots=True)
class Elected:
    """Our NameNode answered that it is active, and the lock is ours."""


@dataclass(frozen=True, slots=True)
class Demoted:
    """The lock is another's; our NameNode was told to be standby."""


@dataclass(frozen=True, slots=True)
class TakeoverFailed:
    """We won the lock and could not take over; the election was left."""


@dataclass(frozen=True, slots=True)
class CedeAsked:
    """Somebody wants us out of the election for so long (greater than 0)."""

    seconds: float
    needs_fencing: bool
    """Our NameNode did not confirm that it is standby."""


@dataclass(frozen=True, slots=True)
class CedeEnded:
    """Somebody lets us back in now."""


@dataclass(frozen=True, slots=True)
class RecheckDue:
    """A pause that we announced may be over."""


Event = (
    HealthChanged
    | StatusReported
    | TransitionBegun
    | TransitionAbandoned
    | Elected
    | Demoted
    | TakeoverFailed
    | CedeAsked
    | CedeEnded
    | RecheckDue
)


@dataclass(frozen=True, slots=True)
class Join:
    """Be in the election."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Be out of the election."""

    needs_fencing: bool
    """Keep the breadcrumb: our NameNode may still be active."""
    because: str


@dataclass(frozen=True, slots=True)
class AskAgainAfter:
    """Come back with RecheckDue after so many seconds; replaces an earlier wish."""

    seconds: float


Decision = Join | Leave | AskAgainAfter


@dataclass(frozen=True, slots=True, kw_only=True)
class BackOff:
    """How long to stay out after failed takeovers: doubling, up to a cap."""

    first_seconds: float = 1.0
    cap_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.first_seconds <= self.cap_seconds:
            raise ValueError("the first pause must be above 0 and at most the cap")

    def after(self, failures: int) -> float:
        """The pause after so many failures in a row (at least 1), in seconds."""
        return float(min(self.cap_seconds, self.first_seconds * 2 ** min(failures - 1, 30)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidacy:
    """What the decision depends on."""

    back_off: BackOff = field(default_factory=BackOff)
    health: Health = Health.INITIALIZING
    reported: ServiceState | None = None
    """As the NameNode said last; None before its first report."""
    believed: ServiceState = ServiceState.INITIALIZING
    """What we have made of it; INITIALIZING whenever we are out of the election."""
    mismatches: int = 0
    in_transition: bool = False
    joined: bool = False
    out_until: float = 0.0
    """Absolute, on the caller's monotonic clock."""
    out_because: str = ""
    failures: int = 0
    """Failed takeovers since the last time that we or another became active."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state afterwards and what is to be done, in this order."""

    state: Candidacy
    decisions: tuple[Decision, ...] = ()


def step(state: Candidacy, event: Event, *, now: float) -> Step:  # noqa: C901 - flat dispatch
    """What becomes of the candidacy when this happens at this time."""
    match event:
        case HealthChanged(health=health):
            return _recheck(replace(state, health=health), now)
        case StatusReported(state=reported):
            return _reported(replace(state, reported=reported), reported, now)
        case TransitionBegun():
            return Step(replace(state, in_transition=True, mismatches=0))
        case TransitionAbandoned():
            unknown = replace(state, believed=ServiceState.INITIALIZING, in_transition=False)
            return Step(unknown)
        case Elected():
            return Step(_settled(state, ServiceState.ACTIVE))
        case Demoted():
            return Step(_settled(state, ServiceState.STANDBY))
        case TakeoverFailed():
            return _failed(state, now)
        case CedeAsked(seconds=seconds, needs_fencing=needs_fencing):
            return _ceded(state, seconds, now, needs_fencing=needs_fencing)
        case CedeEnded():
            return _recheck(replace(state, out_until=now, out_because=""), now)
        case RecheckDue():
            return _recheck(state, now)
    assert_never(event)


def _settled(state: Candidacy, believed: ServiceState) -> Candidacy:
    return replace(state, believed=believed, in_transition=False, mismatches=0, failures=0)


def _recheck(state: Candidacy, now: float) -> Step:
    match state.health:
        case Health.UNHEALTHY | Health.NOT_RESPONDING | Health.MONITOR_FAILED:
            # The NameNode itself is told nothing: the next owner of the lock will see to it.
            return _leave(state, f"our NameNode is {state.health.value}", needs_fencing=True)
        case Health.INITIALIZING:
            return _leave(state, "our NameNode was not probed yet", needs_fencing=False)
        case Health.HEALTHY:
            return _stand(state, now)
    assert_never(state.health)


def _stand(state: Candidacy, now: float) -> Step:
    if state.reported not in (ServiceState.ACTIVE, ServiceState.STANDBY):
        return Step(state)  # starting, or an observer: its next report brings us back here
    if now < state.out_until:
        return Step(state, (AskAgainAfter(state.out_until - now),))
    if state.joined:
        return Step(state)
    return Step(replace(state, joined=True, out_because=""), (Join(),))


def _leave(state: Candidacy, because: str, *, needs_fencing: bool) -> Step:
    left = replace(
        state,
        joined=False,
        believed=ServiceState.INITIALIZING,
        mismatches=0,
        in_transition=False,
    )
    if not state.joined:
        return Step(left)
    return Step(left, (Leave(needs_fencing, because),))


def _reported(state: Candidacy, reported: ServiceState, now: float) -> Step:
    if reported is ServiceState.OBSERVER:
        left = _leave(state, "our NameNode is an observer", needs_fencing=True)
        return Step(replace(left.state, believed=ServiceState.OBSERVER), left.decisions)
    if state.believed is ServiceState.OBSERVER:
        state = replace(state, believed=ServiceState.INITIALIZING)
    if not state.joined:
        return _recheck(state, now) if state.health is Health.HEALTHY else Step(state)
    if state.in_transition or state.believed in (ServiceState.INITIALIZING, reported):
        return Step(replace(state, mismatches=0))
    if state.mismatches == 0:
        return Step(replace(state, mismatches=1))
    because = f"our NameNode says that it is {reported.value}, not {state.believed.value}"
    left = _leave(state, because, needs_fencing=True)
    paused = replace(left.state, out_until=now + MISMATCH_PAUSE_SECONDS, out_because=because)
    return Step(paused, (*left.decisions, AskAgainAfter(MISMATCH_PAUSE_SECONDS)))


def _failed(state: Candidacy, now: float) -> Step:
    """The elector has left already; stay out for a while, longer with each failure."""
    failures = state.failures + 1
    pause = state.back_off.after(failures)
    failed = replace(
        state,
        joined=False,
        believed=ServiceState.INITIALIZING,
        in_transition=False,
        failures=failures,
        out_until=max(state.out_until, now + pause),
        out_because="the last takeover failed",
    )
    return Step(failed, (AskAgainAfter(pause),))


def _ceded(state: Candidacy, seconds: float, now: float, *, needs_fencing: bool) -> Step:
    left = _leave(state, "asked to cede", needs_fencing=needs_fencing)
    out = replace(left.state, out_until=now + seconds, out_because="asked to cede")
    return Step(out, (*left.decisions, AskAgainAfter(seconds)))
