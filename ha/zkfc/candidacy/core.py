"""May our NameNode stand for election?  Health, notices, rank and reported state make the answer.

The rules: docs/reference/zkfc.md#electability and what follows there, and those of ``eligibility``
and ``flapping``.  Only bad health, a cede and a drain move the lock away from its holder.  The
NameNode's own report is believed against what we think it is only when it differs twice in a row:
one such report may have crossed a transition.
"""

from dataclasses import dataclass, field, replace
from typing import assert_never

from ha.health.core import Health, Trouble
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import (
    Standing,
    bar,
    drained,
    noticed,
    paused,
    reported,
    successor,
)
from ha.zkfc.candidacy.failback import FailBack, lock_seen, seconds_left, tried, weighed, why
from ha.zkfc.candidacy.flapping import Flapping, judged, keep_for, took_over
from ha.zkfc.candidacy.model import (
    AskAgainAfter,
    CedeAsked,
    CedeEnded,
    Decision,
    Demoted,
    DemotionUnconfirmed,
    DrainTried,
    Elected,
    Event,
    HandOverBegun,
    HandOverEnded,
    HandOverTo,
    HealthChanged,
    Join,
    Leave,
    LockWon,
    NoticesSeen,
    RecheckDue,
    StatusReported,
    TakeBack,
    TakeoverFailed,
    TransitionAbandoned,
    TransitionBegun,
)

MISMATCH_PAUSE_SECONDS = 1.0
"""Hadoop's pause before rejoining after an external change of the NameNode's state."""
DRAIN_RETRY_SECONDS = 5.0
"""Between attempts to hand over from a drained active."""


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
    standing: Standing = field(default_factory=Standing)
    flapping: Flapping = field(default_factory=Flapping)
    fail_back: FailBack = field(default_factory=FailBack)
    health: Health = Health.INITIALIZING
    trouble: Trouble = Trouble.NONE
    health_reason: str = ""
    reported: ServiceState | None = None
    """As the NameNode said last; None before its first report."""
    believed: ServiceState = ServiceState.INITIALIZING
    """What we have made of it; INITIALIZING whenever we are out of the election."""
    mismatches: int = 0
    in_transition: bool = False
    joined: bool = False
    taking_over: bool = False
    out_until: float = 0.0
    """Absolute, on the caller's monotonic clock."""
    stood_back_because: str = ""
    """Why we are out until then."""
    out_because: str = ""
    """Why we are not in the election; empty when we are."""
    waits: bool = False
    """Out only for somebody of higher rank, who is there."""
    kept_because: str = ""
    """Why we are in the election though we would leave it otherwise."""
    not_demoted: str = ""
    """Our NameNode should be standby, and would not say that it is; until it does."""
    handing_over: bool = False
    drain_failed: str = ""
    drain_retry_at: float = 0.0
    failures: int = 0
    """Failed takeovers since the last time that we or another became active."""

    @property
    def holding(self) -> bool:
        """Our NameNode is active under our lock, or is just becoming it."""
        return self.taking_over or self.believed is ServiceState.ACTIVE


@dataclass(frozen=True, slots=True)
class Step:
    """The state afterwards and what is to be done, in this order."""

    state: Candidacy
    decisions: tuple[Decision, ...] = ()


def step(state: Candidacy, event: Event, *, now: float) -> Step:  # noqa: C901, PLR0912 - flat
    """What becomes of the candidacy when this happens at this time."""
    match event:
        case HealthChanged():
            return _judged(state, event, now)
        case StatusReported():
            return _reported(_heard(state, event), event.state, now)
        case NoticesSeen(notices=notices):
            lock = lock_seen(state.fail_back, notices, state.flapping.settings, now)
            standing = noticed(state.standing, notices, now)
            return _recheck(replace(state, standing=standing, fail_back=lock), now)
        case TransitionBegun():
            return Step(replace(state, in_transition=True, mismatches=0))
        case TransitionAbandoned():
            return _recheck(replace(_idle(state), joined=state.joined), now)
        case LockWon() | Elected() | Demoted() if not state.joined:
            return Step(state)  # of an election that we have left meanwhile
        case LockWon():
            return Step(replace(state, taking_over=True))
        case Elected(planned=planned):
            flapping = state.flapping if planned else took_over(state.flapping, now)
            standing = replace(state.standing, may_return=False)
            elected = replace(state, flapping=flapping, standing=standing)
            return _recheck(_settled(elected, ServiceState.ACTIVE), now)
        case Demoted():
            return _recheck(_settled(state, ServiceState.STANDBY), now)
        case DemotionUnconfirmed(reason=reason):
            because = f"our NameNode did not confirm that it is standby: {reason}"
            return _out_for_a_moment(replace(state, not_demoted=because), because, now)
        case TakeoverFailed():
            return _failed(state, now)
        case CedeAsked():
            return _ceded(state, event, now)
        case CedeEnded():
            return _recheck(replace(state, out_until=now, stood_back_because=""), now)
        case HandOverBegun():
            return _recheck(_asked(state, 1), now)
        case HandOverEnded():
            return _recheck(_asked(state, -1), now)
        case DrainTried(failure=failure):
            again = now + DRAIN_RETRY_SECONDS
            tried = replace(state, handing_over=False, drain_failed=failure, drain_retry_at=again)
            return _recheck(tried, now)
        case RecheckDue():
            return _recheck(state, now)
    assert_never(event)


def _settled(state: Candidacy, believed: ServiceState) -> Candidacy:
    idle = replace(_idle(state), joined=state.joined, not_demoted="")
    return replace(idle, believed=believed, failures=0)


def _heard(state: Candidacy, said: StatusReported) -> Candidacy:
    standing = reported(state.standing, ready=said.ready, reason=said.not_ready_reason)
    unclear = "" if said.state is ServiceState.STANDBY else state.not_demoted
    return replace(state, reported=said.state, standing=standing, not_demoted=unclear)


def _asked(state: Candidacy, more: int) -> Candidacy:
    # Counted: two operators may ask at once, and the end of one is not that of the other.
    asked = state.standing.asked + more
    return replace(state, standing=replace(state.standing, asked=asked))


def _idle(state: Candidacy) -> Candidacy:
    """Out of the election, and nothing under way."""
    return replace(
        state,
        joined=False,
        believed=ServiceState.INITIALIZING,
        mismatches=0,
        in_transition=False,
        taking_over=False,
        handing_over=False,
        kept_because="",
        waits=False,
        fail_back=replace(state.fail_back, since=None),
    )


def _judged(state: Candidacy, event: HealthChanged, now: float) -> Step:
    well = event.health is Health.HEALTHY
    flapping = judged(state.flapping, now, well=well)
    return _recheck(
        replace(
            state,
            health=event.health,
            trouble=event.trouble,
            health_reason=event.reason,
            flapping=flapping,
        ),
        now,
    )


def _recheck(state: Candidacy, now: float) -> Step:
    match state.health:
        case Health.UNHEALTHY | Health.NOT_RESPONDING:
            return _unwell(state, now)
        case Health.MONITOR_FAILED:
            return _leave(state, _ill(state), needs_fencing=True)
        case Health.INITIALIZING:
            return _leave(state, "our NameNode was not probed yet", needs_fencing=False)
        case Health.HEALTHY:
            return _stand(state, now)
    assert_never(state.health)


def _unwell(state: Candidacy, now: float) -> Step:
    """The NameNode itself is told nothing: the next owner of the lock will see to it."""
    notices = state.standing.notices
    if state.joined and state.holding:
        if notices is not None and notices.pause is not None:
            return Step(replace(state, kept_because=f"{_ill(state)}, but {paused(notices.pause)}"))
        seconds = keep_for(state.flapping, state.trouble, now)
        if seconds > 0:
            because = f"{_ill(state)}, but the active has changed too often of late"
            return Step(replace(state, kept_because=because), (AskAgainAfter(seconds),))
    return _leave(state, _ill(state), needs_fencing=True)


def _ill(state: Candidacy) -> str:
    reason = f": {state.health_reason}" if state.health_reason else ""
    return f"our NameNode is {state.health.value}{reason}"


def _stand(state: Candidacy, now: float) -> Step:
    if state.reported not in (ServiceState.ACTIVE, ServiceState.STANDBY):
        # Starting, or an observer: its next report brings us back here.
        return Step(state if state.joined else replace(state, out_because=_not_a_candidate(state)))
    if now < state.out_until:
        out = replace(state, out_because=state.stood_back_because)
        return Step(out, (AskAgainAfter(state.out_until - now),))
    if state.joined and state.holding:
        return _drain(replace(state, kept_because=""), now)
    # Its report from before we demoted it is worth nothing.
    demoted = state.believed is ServiceState.STANDBY
    is_active = state.reported is ServiceState.ACTIVE and not demoted
    barred = bar(state.standing, now=now, joined=state.joined, is_active=is_active)
    if barred is not None:
        left = _leave(state, barred.because, needs_fencing=True)
        again = barred.again_after_seconds
        asks = () if again is None else (AskAgainAfter(again),)
        return Step(replace(left.state, waits=barred.waits), (*left.decisions, *asks))
    if state.joined:
        return _take_back(state, now)
    return Step(replace(state, joined=True, out_because="", waits=False), (Join(),))


def _take_back(state: Candidacy, now: float) -> Step:
    """We stand by: is it time to have the role back?  Every report of our NameNode asks that."""
    standing = state.standing
    stands_by = state.believed is ServiceState.STANDBY and not state.in_transition
    if not stands_by or state.reported is not ServiceState.STANDBY:
        return Step(replace(state, fail_back=replace(state.fail_back, since=None)))
    back = weighed(state.fail_back, standing, state.flapping.settings, now)
    left = seconds_left(back, standing, now)
    if left is None or left > 0 or not standing.ready:
        return Step(replace(state, fail_back=back))
    back = tried(back, standing, now)
    return Step(replace(state, fail_back=back), (TakeBack(why(standing)),))


def _not_a_candidate(state: Candidacy) -> str:
    if state.reported is ServiceState.OBSERVER:
        return "our NameNode is an observer"
    return f"our NameNode is {state.reported or 'still to say what it is'}"


def _drain(state: Candidacy, now: float) -> Step:
    """We hold the lock: a drain has it handed over, if there is somebody to take it."""
    notices = state.standing.notices
    if notices is None or notices.drain is None:
        return Step(replace(state, drain_failed="", drain_retry_at=0.0))
    because = drained(notices.drain)
    if notices.pause is not None:
        return Step(replace(state, kept_because=f"{because}; but {paused(notices.pause)}"))
    if state.taking_over or state.handing_over:
        return Step(replace(state, kept_because=f"{because}; handing over"))
    to = successor(state.standing)
    if to is None:
        return Step(
            replace(state, kept_because=f"{because}; but no other NameNode is fit to take over")
        )
    if now < state.drain_retry_at:
        kept = replace(
            state, kept_because=f"{because}; but the last try failed: {state.drain_failed}"
        )
        return Step(kept, (AskAgainAfter(state.drain_retry_at - now),))
    handing = replace(
        state, handing_over=True, kept_because=f"{because}; handing over to {to.namenode}"
    )
    return Step(handing, (HandOverTo(to.namenode, to.zkfc_rpc),))


def _leave(state: Candidacy, because: str, *, needs_fencing: bool) -> Step:
    left = replace(_idle(state), out_because=because)
    if not state.joined:
        return Step(left)
    return Step(left, (Leave(needs_fencing, because),))


def _reported(state: Candidacy, said: ServiceState, now: float) -> Step:
    if said is ServiceState.OBSERVER:
        left = _leave(state, "our NameNode is an observer", needs_fencing=True)
        return Step(replace(left.state, believed=ServiceState.OBSERVER), left.decisions)
    if state.believed is ServiceState.OBSERVER:
        state = replace(state, believed=ServiceState.INITIALIZING)
    if not state.joined or state.health is not Health.HEALTHY:
        return _recheck(state, now) if state.health is Health.HEALTHY else Step(state)
    if state.in_transition or state.believed in (ServiceState.INITIALIZING, said):
        return _recheck(replace(state, mismatches=0), now)
    return _mismatch(state, said, now)


def _mismatch(state: Candidacy, said: ServiceState, now: float) -> Step:
    if state.mismatches == 0:
        return Step(replace(state, mismatches=1))
    because = f"our NameNode says that it is {said.value}, not {state.believed.value}"
    notices = state.standing.notices
    if state.holding and notices is not None and notices.pause is not None:
        return Step(replace(state, kept_because=f"{because}; but {paused(notices.pause)}"))
    return _out_for_a_moment(state, because, now)


def _out_for_a_moment(state: Candidacy, because: str, now: float) -> Step:
    """What our NameNode is, nobody knows: out, and in again, where it is told once more."""
    left = _leave(state, because, needs_fencing=True)
    # Not sooner than we have agreed to come back: a peer's hand-over may count on that.
    until = max(state.out_until, now + MISMATCH_PAUSE_SECONDS)
    out = replace(left.state, out_until=until, stood_back_because=because)
    return Step(out, (*left.decisions, AskAgainAfter(MISMATCH_PAUSE_SECONDS)))


def _failed(state: Candidacy, now: float) -> Step:
    """The elector has left already; stay out for a while, longer with each failure."""
    failures = state.failures + 1
    seconds = state.back_off.after(failures)
    because = "the last takeover failed"
    failed = replace(
        _idle(state),
        failures=failures,
        out_until=max(state.out_until, now + seconds),
        stood_back_because=because,
        out_because=because,
    )
    return Step(failed, (AskAgainAfter(seconds),))


def _ceded(state: Candidacy, asked: CedeAsked, now: float) -> Step:
    left = _leave(state, asked.because, needs_fencing=asked.needs_fencing)
    # The lock that we give away in a pause or a drain must not be left lying by everybody.
    may_return = state.holding or state.standing.may_return
    # Two may ask at once: who asked for less, and was kept by a slow NameNode, must not cut short
    # what the other was told meanwhile.  Only a release does.
    until = max(state.out_until, now + asked.seconds)
    out = replace(
        left.state,
        out_until=until,
        stood_back_because=asked.because,
        standing=replace(state.standing, may_return=may_return),
        reported=state.reported if asked.needs_fencing else _demoted(state.reported),
    )
    return Step(out, (*left.decisions, AskAgainAfter(until - now)))


def _demoted(said: ServiceState | None) -> ServiceState | None:
    """What a NameNode says from now on that has confirmed that it is not active."""
    return ServiceState.STANDBY if said is ServiceState.ACTIVE else said
