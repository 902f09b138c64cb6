"""Decides when our NameNode is in the election, as ZKFailoverController.recheckElectability does.

The rules are in docs/reference/zkfc.md#electability and below, in ``eligibility`` and ``flapping``.
Only bad health, a cede or a drain takes the lock from its holder.  If the NameNode reports another
state than we gave it, it must do so twice in a row: one report may have crossed a transition.

    Out | Waiting --eligible--> Joined --another controller has the lock--> StandingBy
    Joined | StandingBy | Active --our elector won the lock--> TakingOver --promoted--> Active
    any --not eligible, asked to cede, takeover failed--> Out | Waiting
    TakingOver --lock or session lost--> Joined
"""

from dataclasses import replace
from typing import assert_never

from ha.elector.model import Role
from ha.health.core import Health, Trouble
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import (
    apply_notices,
    apply_own_lock,
    apply_report,
    describe_drain,
    describe_pause,
    find_bar,
    is_superseded,
    successor,
    take_lock,
)
from ha.zkfc.candidacy.failback import (
    count_lock_move,
    describe_cause,
    record_try,
    seconds_left,
    update_wait,
)
from ha.zkfc.candidacy.flapping import keep_seconds, record_health, record_takeover
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
"""The pause between two attempts to hand over from a drained active."""


def step(state: Candidacy, event: Event, *, now: float) -> Step:
    """Return the candidacy after an event, and the decisions; raise InvariantBroken for a bug."""
    return check(state, event, _step(state, event, now))


def _step(state: Candidacy, event: Event, now: float) -> Step:  # noqa: C901, PLR0912 - flat
    match event:
        case HealthChanged():
            return _handle_health(state, event, now)
        case StatusReported():
            return _compare_report(_note_status(state, event), event.state, now)
        case NoticesSeen(notices=notices):
            standing = apply_notices(state.standing, notices, now)
            known = standing.notices or notices
            lock = count_lock_move(state.fail_back, known, state.flapping.settings, now)
            return _recheck_electability(replace(state, standing=standing, fail_back=lock), now)
        case OwnLockSeen(made=made):
            return Step(replace(state, standing=apply_own_lock(state.standing, made)))
        case ElectionMoved():
            return _follow_election(state, event, now)
        case TransitionBegun():
            return Step(replace(state, in_transition=True, contradicted=False))
        case DemotionTried():
            return _handle_demotion(state, event.failure, now)
        case DemotionSpared():
            return _forget_role(state, now)
        case TakeoverFailed():
            return _back_off(state, now)
        case CedeAsked():
            return _cede(state, event, now)
        case CedeEnded():
            out = isinstance(state.place, Out)
            return _recheck_electability(replace(state, place=Out()) if out else state, now)
        case HandOverBegun():
            return _recheck_electability(_count_hand_overs(state, 1), now)
        case HandOverEnded():
            return _recheck_electability(_count_hand_overs(state, -1), now)
        case DrainTried(failure=failure):
            return _handle_drain(state, failure, now)
        case RecheckDue():
            return _recheck_electability(state, now)
    assert_never(event)


# -- the election, and our NameNode's role in it ---------------------------------------------


def _follow_election(state: Candidacy, moved: ElectionMoved, now: float) -> Step:
    match moved.before.role, moved.after.role:
        case Role.TAKING_OVER, Role.TAKING_OVER:
            return Step(state)
        case _, Role.TAKING_OVER:
            # Not joined: we left the election before this event arrived.
            return Step(_enter_takeover(state) if state.joined else state)
        case Role.TAKING_OVER, Role.ACTIVE:
            return _enter_active(state, now, planned=moved.planned) if state.joined else Step(state)
        case (Role.TAKING_OVER, _) | (Role.ACTIVE, Role.INIT):
            # The attempt was abandoned, or we left the election just before our elector won.
            return _forget_role(state, now)
        case _:
            return Step(state)


def _enter_takeover(state: Candidacy) -> Candidacy:
    place = TakingOver(state.believed, state.kept_because)
    return replace(state, place=place, standing=take_lock(state.standing))


def _enter_active(state: Candidacy, now: float, *, planned: bool) -> Step:
    flapping = state.flapping if planned else record_takeover(state.flapping, now)
    standing = replace(state.standing, may_return=False)
    elected = replace(state, flapping=flapping, standing=standing)
    return _recheck_electability(_enter_role(elected, Active()), now)


def _handle_demotion(state: Candidacy, failure: str, now: float) -> Step:
    if failure:
        because = f"our NameNode did not confirm that it is standby: {failure}"
        return _leave_and_rejoin(replace(state, not_demoted=because), because, now)
    if not state.joined:
        return Step(state)  # we left the election before this event arrived
    return _recheck_electability(_enter_role(state, StandingBy()), now)


def _enter_role(state: Candidacy, place: Place) -> Candidacy:
    return replace(_move_to(state, place), not_demoted="", failures=0)


def _forget_role(state: Candidacy, now: float) -> Step:
    """Decide anew, with our NameNode's role unknown: a transition may have been requested."""
    return _recheck_electability(_move_to(state, Joined() if state.joined else state.place), now)


def _move_to(state: Candidacy, place: Place) -> Candidacy:
    """Return the candidacy at this place, with no transition and no wait for a fail-back."""
    return replace(
        state,
        place=place,
        contradicted=False,
        in_transition=False,
        fail_back=replace(state.fail_back, since=None),
    )


def _note_status(state: Candidacy, said: StatusReported) -> Candidacy:
    standing = apply_report(state.standing, ready=said.ready, reason=said.not_ready_reason)
    unclear = "" if said.state is ServiceState.STANDBY else state.not_demoted
    return replace(state, reported=said.state, standing=standing, not_demoted=unclear)


def _compare_report(state: Candidacy, said: ServiceState, now: float) -> Step:
    if said is ServiceState.OBSERVER:
        return _leave(state, "our NameNode is an observer", needs_fencing=True)
    if state.health is not Health.HEALTHY:
        return Step(state)
    settled = state.joined and not state.in_transition
    if not settled or state.believed in (ServiceState.INITIALIZING, said):
        return _recheck_electability(replace(state, contradicted=False), now)
    return _handle_mismatch(state, said, now)


def _handle_mismatch(state: Candidacy, said: ServiceState, now: float) -> Step:
    if not state.contradicted:
        return Step(replace(state, contradicted=True))
    because = f"our NameNode says that it is {said.value}, not {state.believed.value}"
    notices = state.standing.notices
    if state.holding and notices is not None and notices.pause is not None:
        return Step(_keep_lock(state, f"{because}; but {describe_pause(notices.pause)}"))
    return _leave_and_rejoin(state, because, now)


# -- hand-overs, cedes and failed takeovers --------------------------------------------------


def _count_hand_overs(state: Candidacy, more: int) -> Candidacy:
    # Two operators may request hand-overs at once; the other one goes on when the first ends.
    count = state.standing.hand_overs + more
    return replace(state, standing=replace(state.standing, hand_overs=count))


def _handle_drain(state: Candidacy, failure: str, now: float) -> Step:
    attempt = DrainAttempt(failure, now + DRAIN_RETRY_SECONDS)
    place = state.place
    if isinstance(place, Active):
        place = replace(place, handing_over=False)
    return _recheck_electability(replace(state, place=place, last_drain=attempt), now)


def _back_off(state: Candidacy, now: float) -> Step:
    """Stay out for a time that grows with each failed takeover; the elector has left already."""
    failures = state.failures + 1
    seconds = state.back_off.after(failures)
    because = "the last takeover failed"
    out = Out(because, _extend_stand_back(state, because, now + seconds))
    return Step(replace(_move_to(state, out), failures=failures), (AskAgainAfter(seconds),))


def _cede(state: Candidacy, asked: CedeAsked, now: float) -> Step:
    left = _leave(state, asked.because, needs_fencing=asked.needs_fencing)
    # In a pause or a drain no peer may take the lock that we release: we may take it back then,
    # unless another NameNode is already active under a newer lock.
    standing = state.standing
    may_return = (state.holding or standing.may_return) and not is_superseded(standing)
    back = _extend_stand_back(state, asked.because, now + asked.seconds)
    demoted = state.reported is ServiceState.ACTIVE and not asked.needs_fencing
    out = replace(
        left.state,
        place=Out(asked.because, back),
        standing=replace(standing, may_return=may_return),
        reported=ServiceState.STANDBY if demoted else state.reported,
    )
    return Step(out, (*left.decisions, AskAgainAfter(back.until - now)))


def _leave_and_rejoin(state: Candidacy, because: str, now: float) -> Step:
    """Leave, and join again after a pause: then the election gives our NameNode a known role."""
    left = _leave(state, because, needs_fencing=True)
    back = _extend_stand_back(state, because, now + MISMATCH_PAUSE_SECONDS)
    again = AskAgainAfter(MISMATCH_PAUSE_SECONDS)
    return Step(replace(left.state, place=Out(because, back)), (*left.decisions, again))


def _extend_stand_back(state: Candidacy, because: str, until: float) -> StoodBack:
    """Return how long to stay out: until ``until``, but no shorter than agreed before.

    A second, shorter request to cede must not end the time of the first: the hand-over that made
    it relies on that time until it releases us.
    """
    before = state.stood_back
    return StoodBack(until if before is None else max(until, before.until), because)


# -- electability ----------------------------------------------------------------------------


def _handle_health(state: Candidacy, event: HealthChanged, now: float) -> Step:
    well = event.health is Health.HEALTHY
    flapping = record_health(state.flapping, now, well=well)
    found = replace(state, health=event.health, trouble=event.trouble, flapping=flapping)
    return _recheck_electability(replace(found, health_reason=event.reason), now)


def _recheck_electability(state: Candidacy, now: float) -> Step:
    back = state.stood_back
    if back is not None and now >= back.until:
        state = replace(state, place=Out())
    match state.health:
        case Health.UNHEALTHY | Health.NOT_RESPONDING | Health.INITIALIZING:
            return _judge_unwell(state, now)
        case Health.MONITOR_FAILED:
            return _leave(state, _describe_health(state), needs_fencing=True)
        case Health.HEALTHY:
            return _judge_healthy(state, now)
    assert_never(state.health)


def _judge_unwell(state: Candidacy, now: float) -> Step:
    """Leave, or keep the lock.  The next owner of the lock demotes or fences our NameNode."""
    notices = state.standing.notices
    if state.holding:
        if notices is not None and notices.pause is not None:
            because = f"{_describe_health(state)}, but {describe_pause(notices.pause)}"
            return Step(_keep_lock(state, because))
        # A NameNode that is starting is a new process: the one that was active has ended.
        starting = state.health is Health.INITIALIZING
        trouble = Trouble.GONE if starting else state.trouble
        seconds = keep_seconds(state.flapping, trouble, now)
        if seconds > 0:
            because = f"{_describe_health(state)}, but the active has changed too often of late"
            return Step(_keep_lock(state, because), (AskAgainAfter(seconds),))
    return _leave(state, _describe_health(state), needs_fencing=True)


def _describe_health(state: Candidacy) -> str:
    if state.health is Health.INITIALIZING and not state.health_reason:
        return "our NameNode was not probed yet"
    reason = f": {state.health_reason}" if state.health_reason else ""
    return f"our NameNode is {state.health.value}{reason}"


def _keep_lock(state: Candidacy, because: str) -> Candidacy:
    """Keep the lock, though we would leave for this reason; empty: there is no reason to leave."""
    place = state.place
    if isinstance(place, TakingOver | Active):
        return replace(state, place=replace(place, kept_because=because))
    return state


def _leave(state: Candidacy, because: str, *, needs_fencing: bool) -> Step:
    left = _move_to(state, Out(because, state.stood_back))
    return Step(left, (Leave(needs_fencing, because),) if state.joined else ())


def _judge_healthy(state: Candidacy, now: float) -> Step:
    back = state.stood_back
    if state.reported not in (ServiceState.ACTIVE, ServiceState.STANDBY):
        # It is starting, or an observer.  Its next report makes us decide again.
        place = state.place if state.joined else Out(_describe_role(state), back)
        return Step(replace(state, place=place))
    if back is not None:
        out = replace(state, place=Out(back.because, back))
        return Step(out, (AskAgainAfter(back.until - now),))
    if state.holding:
        return _drain(_keep_lock(state, ""), now)
    # A report of "active" from before the demotion does not count.
    demoted = isinstance(state.place, StandingBy)
    is_active = state.reported is ServiceState.ACTIVE and not demoted
    barred = find_bar(state.standing, now=now, joined=state.joined, is_active=is_active)
    if barred is not None:
        left = _leave(state, barred.because, needs_fencing=True)
        again = barred.again_after_seconds
        asks = () if again is None else (AskAgainAfter(again),)
        place = Waiting(barred.because) if barred.waits else left.state.place
        return Step(replace(left.state, place=place), (*left.decisions, *asks))
    if state.joined:
        return _fail_back(state, now)
    return Step(replace(state, place=Joined()), (Join(),))


def _fail_back(state: Candidacy, now: float) -> Step:
    """Request a fail-back if our NameNode stands by and its wait is over."""
    standing = state.standing
    stands_by = isinstance(state.place, StandingBy) and not state.in_transition
    if not stands_by or state.reported is not ServiceState.STANDBY:
        return Step(replace(state, fail_back=replace(state.fail_back, since=None)))
    back = update_wait(state.fail_back, standing, state.flapping.settings, now)
    left = seconds_left(back, standing, now)
    if left is None or left > 0 or not standing.ready:
        return Step(replace(state, fail_back=back))
    back = record_try(back, standing, now)
    return Step(replace(state, fail_back=back), (TakeBack(describe_cause(standing)),))


def _describe_role(state: Candidacy) -> str:
    if state.reported is ServiceState.OBSERVER:
        return "our NameNode is an observer"
    return f"our NameNode is {state.reported or 'still to say what it is'}"


def _drain(state: Candidacy, now: float) -> Step:
    """Hand over from our active NameNode if it is drained and a peer can take over."""
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
