"""May our NameNode stand for election?  Health, notices, rank and reported state make the answer.

The rules: docs/reference/zkfc.md#electability and what follows there, and those of ``eligibility``
and ``flapping``.  Only bad health, a cede and a drain move the lock away from its holder.  The
NameNode's own report is believed against what we think it is only when it differs twice in a row:
one such report may have crossed a transition.

    Out | Waiting --fit--> Joined --the lock is another's--> StandingBy
    Joined | StandingBy | Active --the lock is ours--> TakingOver --promoted--> Active
    any --unfit, asked to cede, takeover failed--> Out | Waiting
    TakingOver --its ground is gone--> Joined
"""

from dataclasses import replace
from typing import assert_never

from ha.elector.model import Role
from ha.health.core import Health, Trouble
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import (
    bar,
    describe_drain,
    describe_pause,
    note_own_lock,
    replaced,
    successor,
    take_notices,
    take_report,
    with_lock,
)
from ha.zkfc.candidacy.failback import note_lock, note_try, seconds_left, weigh, why
from ha.zkfc.candidacy.flapping import keep_for, note_health, took_over
from ha.zkfc.candidacy.invariants import check
from ha.zkfc.candidacy.model import (
    AskAgainAfter,
    CedeAsked,
    CedeEnded,
    DemotionSpared,
    DemotionTried,
    DrainTried,
    ElectionMoved,
    Event,
    HandOverBegun,
    HandOverEnded,
    HandOverTo,
    HealthChanged,
    Join,
    Leave,
    NoticesSeen,
    OwnLockSeen,
    RecheckDue,
    StatusReported,
    TakeBack,
    TakeoverFailed,
    TransitionBegun,
)
from ha.zkfc.candidacy.state import (
    Active,
    Candidacy,
    DrainAttempt,
    Joined,
    Out,
    Place,
    StandingBy,
    Step,
    StoodBack,
    TakingOver,
    Waiting,
)

MISMATCH_PAUSE_SECONDS = 1.0
"""Hadoop's pause before rejoining after an external change of the NameNode's state."""
DRAIN_RETRY_SECONDS = 5.0
"""Between attempts to hand over from a drained active."""


def step(state: Candidacy, event: Event, *, now: float) -> Step:
    """Return the candidacy after an event at this time, and what was decided.

    Raises:
        InvariantBroken: if that must never be.
    """
    return check(state, event, _step(state, event, now))


def _step(state: Candidacy, event: Event, now: float) -> Step:  # noqa: C901, PLR0912 - flat
    match event:
        case HealthChanged():
            return _handle_health(state, event, now)
        case StatusReported():
            return _compare_report(_note_status(state, event), event.state, now)
        case NoticesSeen(notices=notices):
            standing = take_notices(state.standing, notices, now)
            known = standing.notices or notices
            lock = note_lock(state.fail_back, known, state.flapping.settings, now)
            return _recheck(replace(state, standing=standing, fail_back=lock), now)
        case OwnLockSeen(made=made):
            return Step(replace(state, standing=note_own_lock(state.standing, made)))
        case ElectionMoved():
            return _follow_election(state, event, now)
        case TransitionBegun():
            return Step(replace(state, in_transition=True, contradicted=False))
        case DemotionTried():
            return _handle_demotion(state, event.failure, now)
        case DemotionSpared():
            return _unknown(state, now)
        case TakeoverFailed():
            return _stay_out(state, now)
        case CedeAsked():
            return _cede(state, event, now)
        case CedeEnded():
            out = isinstance(state.place, Out)
            return _recheck(replace(state, place=Out()) if out else state, now)
        case HandOverBegun():
            return _recheck(_count_asked(state, 1), now)
        case HandOverEnded():
            return _recheck(_count_asked(state, -1), now)
        case DrainTried(failure=failure):
            return _handle_drain(state, failure, now)
        case RecheckDue():
            return _recheck(state, now)
    assert_never(event)


# -- what was heard of the election, and of our NameNode's role in it ------------------------


def _follow_election(state: Candidacy, moved: ElectionMoved, now: float) -> Step:
    match moved.before.role, moved.after.role:
        case Role.TAKING_OVER, Role.TAKING_OVER:
            return Step(state)
        case _, Role.TAKING_OVER:
            # Not joined: it is of an election that we have left in the meantime.
            return Step(_taking_over(state) if state.joined else state)
        case Role.TAKING_OVER, Role.ACTIVE:
            return _enter_active(state, now, planned=moved.planned) if state.joined else Step(state)
        case (Role.TAKING_OVER, _) | (Role.ACTIVE, Role.INIT):
            # An attempt lost its ground; or we decided to leave, and even to come back, just
            # before it won.
            return _unknown(state, now)
        case _:
            return Step(state)


def _taking_over(state: Candidacy) -> Candidacy:
    place = TakingOver(state.believed, state.kept_because)
    return replace(state, place=place, standing=with_lock(state.standing))


def _enter_active(state: Candidacy, now: float, *, planned: bool) -> Step:
    flapping = state.flapping if planned else took_over(state.flapping, now)
    standing = replace(state.standing, may_return=False)
    elected = replace(state, flapping=flapping, standing=standing)
    return _recheck(_settle(elected, Active()), now)


def _handle_demotion(state: Candidacy, failure: str, now: float) -> Step:
    if failure:
        because = f"our NameNode did not confirm that it is standby: {failure}"
        return _out_for_a_moment(replace(state, not_demoted=because), because, now)
    if not state.joined:
        return Step(state)  # of an election that we have left in the meantime
    return _recheck(_settle(state, StandingBy()), now)


def _settle(state: Candidacy, place: Place) -> Candidacy:
    return replace(_idle(state, place), not_demoted="", failures=0)


def _unknown(state: Candidacy, now: float) -> Step:
    """Decide anew: which state our NameNode has, if it was asked for any, is unknown."""
    return _recheck(_idle(state, Joined() if state.joined else state.place), now)


def _idle(state: Candidacy, place: Place) -> Candidacy:
    """Return the candidacy at this place, with nothing under way."""
    return replace(
        state,
        place=place,
        contradicted=False,
        in_transition=False,
        fail_back=replace(state.fail_back, since=None),
    )


def _note_status(state: Candidacy, said: StatusReported) -> Candidacy:
    standing = take_report(state.standing, ready=said.ready, reason=said.not_ready_reason)
    unclear = "" if said.state is ServiceState.STANDBY else state.not_demoted
    return replace(state, reported=said.state, standing=standing, not_demoted=unclear)


def _compare_report(state: Candidacy, said: ServiceState, now: float) -> Step:
    if said is ServiceState.OBSERVER:
        return _leave(state, "our NameNode is an observer", needs_fencing=True)
    if state.health is not Health.HEALTHY:
        return Step(state)
    settled = state.joined and not state.in_transition
    if not settled or state.believed in (ServiceState.INITIALIZING, said):
        return _recheck(replace(state, contradicted=False), now)
    return _mismatch(state, said, now)


def _mismatch(state: Candidacy, said: ServiceState, now: float) -> Step:
    if not state.contradicted:
        return Step(replace(state, contradicted=True))
    because = f"our NameNode says that it is {said.value}, not {state.believed.value}"
    notices = state.standing.notices
    if state.holding and notices is not None and notices.pause is not None:
        return Step(_keep_lock(state, f"{because}; but {describe_pause(notices.pause)}"))
    return _out_for_a_moment(state, because, now)


# -- what was asked, and what has come of it -------------------------------------------------


def _count_asked(state: Candidacy, more: int) -> Candidacy:
    # Counted: two operators may ask at once, and the end of one is not that of the other.
    asked = state.standing.asked + more
    return replace(state, standing=replace(state.standing, asked=asked))


def _handle_drain(state: Candidacy, failure: str, now: float) -> Step:
    attempt = DrainAttempt(failure, now + DRAIN_RETRY_SECONDS)
    place = state.place
    if isinstance(place, Active):
        place = replace(place, handing_over=False)
    return _recheck(replace(state, place=place, last_drain=attempt), now)


def _stay_out(state: Candidacy, now: float) -> Step:
    """Stay out for a while, longer with each failure; the elector has left already."""
    failures = state.failures + 1
    seconds = state.back_off.after(failures)
    because = "the last takeover failed"
    out = Out(because, _stand_back_until(state, because, now + seconds))
    return Step(replace(_idle(state, out), failures=failures), (AskAgainAfter(seconds),))


def _cede(state: Candidacy, asked: CedeAsked, now: float) -> Step:
    left = _leave(state, asked.because, needs_fencing=asked.needs_fencing)
    # The lock that we give away in a pause or a drain must not be left lying by everybody.  If it
    # had gone unheard, and its next holder is active, we give none away.
    standing = state.standing
    may_return = (state.holding or standing.may_return) and not replaced(standing)
    back = _stand_back_until(state, asked.because, now + asked.seconds)
    demoted = state.reported is ServiceState.ACTIVE and not asked.needs_fencing
    out = replace(
        left.state,
        place=Out(asked.because, back),
        standing=replace(standing, may_return=may_return),
        reported=ServiceState.STANDBY if demoted else state.reported,
    )
    return Step(out, (*left.decisions, AskAgainAfter(back.until - now)))


def _out_for_a_moment(state: Candidacy, because: str, now: float) -> Step:
    """Leave, and join again, which gives our NameNode of unknown state its role once more."""
    left = _leave(state, because, needs_fencing=True)
    back = _stand_back_until(state, because, now + MISMATCH_PAUSE_SECONDS)
    again = AskAgainAfter(MISMATCH_PAUSE_SECONDS)
    return Step(replace(left.state, place=Out(because, back)), (*left.decisions, again))


def _stand_back_until(state: Candidacy, because: str, until: float) -> StoodBack:
    """Stand back until then, but never shorter than was agreed before.

    Two may ask at once: the one that asked for less, and was kept by a slow NameNode, must not cut
    the other's time short, as a peer's hand-over may count on it.  Only a release does.
    """
    before = state.stood_back
    return StoodBack(until if before is None else max(until, before.until), because)


# -- may we stand? ---------------------------------------------------------------------------


def _handle_health(state: Candidacy, event: HealthChanged, now: float) -> Step:
    well = event.health is Health.HEALTHY
    flapping = note_health(state.flapping, now, well=well)
    found = replace(state, health=event.health, trouble=event.trouble, flapping=flapping)
    return _recheck(replace(found, health_reason=event.reason), now)


def _recheck(state: Candidacy, now: float) -> Step:
    back = state.stood_back
    if back is not None and now >= back.until:
        state = replace(state, place=Out())
    match state.health:
        case Health.UNHEALTHY | Health.NOT_RESPONDING | Health.INITIALIZING:
            return _unwell(state, now)
        case Health.MONITOR_FAILED:
            return _leave(state, _ill(state), needs_fencing=True)
        case Health.HEALTHY:
            return _stand(state, now)
    assert_never(state.health)


def _unwell(state: Candidacy, now: float) -> Step:
    """Leave, or keep the lock; the NameNode gets no order: the lock's next owner will see to it."""
    notices = state.standing.notices
    if state.holding:
        if notices is not None and notices.pause is not None:
            return Step(_keep_lock(state, f"{_ill(state)}, but {describe_pause(notices.pause)}"))
        # One that loads its image is another process than the one that was active: that is gone.
        starting = state.health is Health.INITIALIZING
        trouble = Trouble.GONE if starting else state.trouble
        seconds = keep_for(state.flapping, trouble, now)
        if seconds > 0:
            because = f"{_ill(state)}, but the active has changed too often of late"
            return Step(_keep_lock(state, because), (AskAgainAfter(seconds),))
    return _leave(state, _ill(state), needs_fencing=True)


def _ill(state: Candidacy) -> str:
    if state.health is Health.INITIALIZING and not state.health_reason:
        return "our NameNode was not probed yet"
    reason = f": {state.health_reason}" if state.health_reason else ""
    return f"our NameNode is {state.health.value}{reason}"


def _keep_lock(state: Candidacy, because: str) -> Candidacy:
    """Keep the lock that our NameNode has, for this reason; empty: there is none to leave."""
    place = state.place
    if isinstance(place, TakingOver | Active):
        return replace(state, place=replace(place, kept_because=because))
    return state


def _leave(state: Candidacy, because: str, *, needs_fencing: bool) -> Step:
    left = _idle(state, Out(because, state.stood_back))
    return Step(left, (Leave(needs_fencing, because),) if state.joined else ())


def _stand(state: Candidacy, now: float) -> Step:
    back = state.stood_back
    if state.reported not in (ServiceState.ACTIVE, ServiceState.STANDBY):
        # Starting, or an observer: its next report brings us back here.
        place = state.place if state.joined else Out(_not_a_candidate(state), back)
        return Step(replace(state, place=place))
    if back is not None:
        out = replace(state, place=Out(back.because, back))
        return Step(out, (AskAgainAfter(back.until - now),))
    if state.holding:
        return _drain(_keep_lock(state, ""), now)
    # Its report from before we demoted it is worth nothing.
    demoted = isinstance(state.place, StandingBy)
    is_active = state.reported is ServiceState.ACTIVE and not demoted
    barred = bar(state.standing, now=now, joined=state.joined, is_active=is_active)
    if barred is not None:
        left = _leave(state, barred.because, needs_fencing=True)
        again = barred.again_after_seconds
        asks = () if again is None else (AskAgainAfter(again),)
        place = Waiting(barred.because) if barred.waits else left.state.place
        return Step(replace(left.state, place=place), (*left.decisions, *asks))
    if state.joined:
        return _take_back(state, now)
    return Step(replace(state, place=Joined()), (Join(),))


def _take_back(state: Candidacy, now: float) -> Step:
    """Take the role back if we stand by and it is time; each report of our NameNode asks that."""
    standing = state.standing
    stands_by = isinstance(state.place, StandingBy) and not state.in_transition
    if not stands_by or state.reported is not ServiceState.STANDBY:
        return Step(replace(state, fail_back=replace(state.fail_back, since=None)))
    back = weigh(state.fail_back, standing, state.flapping.settings, now)
    left = seconds_left(back, standing, now)
    if left is None or left > 0 or not standing.ready:
        return Step(replace(state, fail_back=back))
    back = note_try(back, standing, now)
    return Step(replace(state, fail_back=back), (TakeBack(why(standing)),))


def _not_a_candidate(state: Candidacy) -> str:
    if state.reported is ServiceState.OBSERVER:
        return "our NameNode is an observer"
    return f"our NameNode is {state.reported or 'still to say what it is'}"


def _drain(state: Candidacy, now: float) -> Step:
    """Hand the lock that we hold over, if we are drained and a peer can take it."""
    notices, place, last = state.standing.notices, state.place, state.last_drain
    if notices is None or notices.drain is None:
        return Step(replace(state, last_drain=None))
    because = describe_drain(notices.drain)
    if notices.pause is not None:
        return Step(_keep_lock(state, f"{because}; but {describe_pause(notices.pause)}"))
    if not isinstance(place, Active) or place.handing_over:
        return Step(_keep_lock(state, f"{because}; handing over"))
    to = successor(state.standing)
    if to is None:
        return Step(_keep_lock(state, f"{because}; but no other NameNode is fit to take over"))
    if last is not None and now < last.retry_at:
        kept = _keep_lock(state, f"{because}; but the last try failed: {last.failure}")
        return Step(kept, (AskAgainAfter(last.retry_at - now),))
    handing = Active(f"{because}; handing over to {to.namenode}", handing_over=True)
    return Step(replace(state, place=handing), (HandOverTo(to.namenode, to.zkfc_rpc),))
