"""Pause, drain, rank and flapping as tables: which NameNode joins the election, or why not."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ha.health.core import Health, Trouble
from ha.notices.model import Drain, Member, Pause
from ha.notices.seen import FREE, Notices
from ha.service.model import ServiceState
from ha.zkfc.candidacy import model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.eligibility import Rank, Standing
from ha.zkfc.candidacy.flapping import Flapping, FlapSettings
from ha.zkfc.candidacy.model import AskAgainAfter, CedeAsked, Join, Leave, NoticesSeen, RecheckDue
from ha.zkfc.candidacy.state import Active, Candidacy, StandingBy, TakingOver
from tests.ha.zkfc.elections import ELECTED, ELECTED_AS_PLANNED, LOCK_WON

NOW = 1000.0
S = ServiceState
SINCE = datetime(2026, 1, 31, 12, tzinfo=UTC)
UNTIL = datetime(2026, 1, 31, 14, tzinfo=UTC)
PAUSE = Pause(owner="ann@host", reason="new switch", since=SINCE, until=None)
DRAIN = Drain(owner="bob@host", reason="new disk", since=SINCE, until=UNTIL)
PAUSED = "paused by ann@host: new switch"
NAMESAKE = "another zkfc of nn1 runs: process 7 on h2"
DRAINED = "drained by bob@host until 2026-01-31T14:00:00.000Z: new disk"

PEER = Member(
    namenode="nn2", zkfc_http="", zkfc_rpc="there:8019", pid=1, started=SINCE, health="healthy",
    state="standby", ready=True, not_ready_reason="", nofailover=False, priority=100,
    in_election=True, out_because="", version="1",
)  # fmt: skip
BETTER = replace(PEER, priority=200)
BACK = replace(PEER, state="active", lock_of_earlier_process=True)
TAKES = "nn2 is active; its controller was killed and takes its lock again"
HELD = Notices(lock_holder="nn2")
OPEN = Notices(lock_holder=FREE)


def candidacy(
    notices: Notices | None = HELD, *, rank: Rank | None = None, ready: bool = True
) -> Candidacy:
    """Return a healthy standby outside the election; what is known was known long ago."""
    peers = notices is not None and any(one.ready for one in notices.members)
    standing = Standing(
        namenode="nn1", rank=rank or Rank(), notices=notices, ready=ready,
        not_ready_reason="" if ready else "safe mode", unready_in_a_row=0 if ready else 9,
        free_since=NOW - 1.0 if notices is not None and notices.lock_holder == FREE else None,
        no_ready_peer_since=None if peers else NOW - 1.0,
    )  # fmt: skip
    return Candidacy(health=Health.HEALTHY, reported=S.STANDBY, standing=standing)


def inside(one: Candidacy, believed: ServiceState = S.STANDBY) -> Candidacy:
    place = Active() if believed is S.ACTIVE else StandingBy()
    return replace(one, place=place, reported=believed)


def long_free(notices: Notices) -> Candidacy:
    """Free the lock for longer than any candidate is waited for."""
    one = candidacy(notices)
    return replace(one, standing=replace(one.standing, free_since=NOW - 60.0))


def sees(one: Candidacy, **notices: object) -> Candidacy:
    present = one.standing.notices
    assert present is not None
    now = replace(present, **notices)  # type: ignore[arg-type] # a table's shorthand
    return replace(one, standing=replace(one.standing, notices=now))


WELL = candidacy()
STANDBY, ACTIVE = inside(WELL), inside(WELL, S.ACTIVE)
PAUSED_OUT = sees(WELL, pause=PAUSE)
PAUSED_ACTIVE = sees(ACTIVE, pause=PAUSE, lock_holder="nn1")
DRAINED_ACTIVE = sees(ACTIVE, drain=DRAIN, lock_holder="nn1")
LOW = Rank(priority=50)
OUTRANKED = "nn2 has the higher rank: priority 200"
UNREADY = "our NameNode is not ready to become active: safe mode"
TWO = Notices(members=(BETTER,), lock_holder="nn3")
ILL = model.HealthChanged(Health.UNHEALTHY, Trouble.ILL, "disk")
GONE = model.HealthChanged(Health.NOT_RESPONDING, Trouble.GONE, "refused")

CASES: dict[str, tuple[Candidacy, model.Event, tuple[model.Decision, ...]]] = {
    "nothing is read yet: wait": (candidacy(None), RecheckDue(), ()),
    "read: stand": (candidacy(None), NoticesSeen(HELD), (Join(),)),
    # -- an active whose controller was killed and is back before its old session has ended
    "a standby leaves the lock to it": (
        STANDBY, NoticesSeen(Notices(members=(BACK,), lock_holder="nn2")), (Leave(True, TAKES),)),
    "and waits a while when the lock is free": (
        candidacy(replace(OPEN, members=(BACK,))), RecheckDue(), (AskAgainAfter(1.0),)),
    "but not for ever": (
        long_free(replace(OPEN, members=(BACK,))), RecheckDue(), (Join(),)),
    "and not for one that is ill": (
        candidacy(replace(OPEN, members=(replace(BACK, health="unhealthy"),))),
        RecheckDue(), (Join(),)),
    "an active under its own lock is nobody to wait for": (
        candidacy(replace(OPEN, members=(replace(BACK, lock_of_earlier_process=False),))),
        RecheckDue(), (Join(),)),
    # -- another controller of the same NameNode
    "a namesake keeps it out": (sees(WELL, namesake=NAMESAKE), RecheckDue(), ()),
    "also of a free lock": (candidacy(replace(OPEN, namesake=NAMESAKE)), RecheckDue(), ()),
    "also where our NameNode is active, which is the namesake's doing": (
        replace(sees(WELL, namesake=NAMESAKE, lock_holder="nn1"), reported=S.ACTIVE),
        RecheckDue(), ()),
    "also when an operator wants it": (sees(WELL, namesake=NAMESAKE), model.HandOverBegun(), ()),
    "a namesake sends a standby out": (
        STANDBY, NoticesSeen(replace(HELD, namesake=NAMESAKE)), (Leave(True, NAMESAKE),)),
    "a namesake leaves the active": (
        ACTIVE, NoticesSeen(replace(HELD, namesake=NAMESAKE, lock_holder="nn1")), ()),
    "the namesake's end lets it in": (sees(WELL, namesake=NAMESAKE), NoticesSeen(HELD), (Join(),)),
    # -- pause
    "a pause keeps standbys out": (PAUSED_OUT, RecheckDue(), ()),
    "a pause sends standbys out": (
        STANDBY, NoticesSeen(replace(HELD, pause=PAUSE)), (Leave(True, PAUSED),)),
    "a pause leaves the active": (
        ACTIVE, NoticesSeen(replace(HELD, pause=PAUSE, lock_holder="nn1")), ()),
    "a pause leaves a takeover that has begun": (
        replace(STANDBY, place=TakingOver(S.STANDBY)), NoticesSeen(replace(HELD, pause=PAUSE)), ()),
    "a paused active may be ill": (PAUSED_ACTIVE, ILL, ()),
    "a paused active may be gone": (PAUSED_ACTIVE, GONE, ()),
    "a paused active may say that it is standby": (
        replace(PAUSED_ACTIVE, contradicted=True), model.StatusReported(S.STANDBY), ()),
    "the end of a pause sends an ill active out": (
        replace(PAUSED_ACTIVE, health=Health.UNHEALTHY), NoticesSeen(HELD),
        (Leave(True, "our NameNode is unhealthy"),)),
    "the end of a pause lets standbys in": (PAUSED_OUT, NoticesSeen(HELD), (Join(),)),
    "an operator may hand over in a pause": (PAUSED_OUT, model.HandOverBegun(), (Join(),)),
    "when that has come to nothing, the pause holds": (
        replace(inside(PAUSED_OUT), standing=replace(PAUSED_OUT.standing, hand_overs=1)),
        model.HandOverEnded(), (Leave(True, PAUSED),)),
    "and out again only with the last of two": (
        replace(inside(PAUSED_OUT), standing=replace(PAUSED_OUT.standing, hand_overs=2)),
        model.HandOverEnded(), ()),
    "an active whose zkfc was restarted takes its free lock": (
        replace(sees(PAUSED_OUT, lock_holder=FREE), reported=S.ACTIVE), RecheckDue(), (Join(),)),
    "one that an operator made active beside another's lock does not": (
        replace(PAUSED_OUT, reported=S.ACTIVE), RecheckDue(), ()),
    # -- drain
    "a drain keeps a standby out": (sees(WELL, drain=DRAIN), RecheckDue(), ()),
    "a drain sends a standby out": (
        STANDBY, NoticesSeen(replace(HELD, drain=DRAIN)), (Leave(True, DRAINED),)),
    "an operator's hand-over does not end a drain": (
        sees(WELL, drain=DRAIN), model.HandOverBegun(), ()),
    "a drained active hands over": (
        ACTIVE, NoticesSeen(Notices(drain=DRAIN, members=(PEER,), lock_holder="nn1")),
        (model.HandOverTo("nn2", "there:8019"),)),
    "to the best": (
        sees(DRAINED_ACTIVE, members=(PEER, replace(BETTER, namenode="nn3", zkfc_rpc="far:1"))),
        RecheckDue(), (model.HandOverTo("nn3", "far:1"),)),
    "to the first by name of equal ones": (
        sees(DRAINED_ACTIVE, members=(replace(PEER, namenode="nn3"), PEER)),
        RecheckDue(), (model.HandOverTo("nn2", "there:8019"),)),
    "not to one that is not ready": (
        sees(DRAINED_ACTIVE, members=(replace(PEER, ready=False),)), RecheckDue(), ()),
    "not while it is handing over": (
        replace(sees(DRAINED_ACTIVE, members=(PEER,)), place=Active(handing_over=True)),
        RecheckDue(), ()),
    "it stays when nobody is there": (DRAINED_ACTIVE, RecheckDue(), ()),
    "it tries again later": (
        replace(sees(DRAINED_ACTIVE, members=(PEER,)), place=Active(handing_over=True)),
        model.DrainTried("refused"), (AskAgainAfter(5.0),)),
    "not in a pause": (
        sees(DRAINED_ACTIVE, members=(PEER,), pause=PAUSE), RecheckDue(), ()),
    "a drained active that is ill leaves": (
        sees(DRAINED_ACTIVE, members=(PEER,)), ILL,
        (Leave(True, "our NameNode is unhealthy: disk"),)),
    # -- nofailover, readiness, priority
    "nofailover never stands": (
        candidacy(OPEN, rank=Rank(nofailover=True)), RecheckDue(), ()),
    "but an operator may want it": (
        candidacy(HELD, rank=Rank(nofailover=True)), model.HandOverBegun(), (Join(),)),
    "unready, and a ready one is there": (candidacy(TWO, ready=False), RecheckDue(), ()),
    "unready, and nobody else for too short a time": (
        candidacy(HELD, ready=False), RecheckDue(), (AskAgainAfter(4.0),)),
    "unready, and nobody else for long": (
        candidacy(HELD, ready=False, rank=Rank(unready_delay_seconds=1.0)), RecheckDue(),
        (Join(),)),
    "unready, and the ready one leaves the lock lying": (
        candidacy(replace(TWO, lock_holder=FREE), ready=False, rank=Rank(unready_delay_seconds=1.0,
        priority_delay_seconds=1.0)), RecheckDue(), (Join(),)),
    "a lower rank waits for a better one": (candidacy(TWO, rank=LOW), RecheckDue(), ()),
    "a lower rank leaves for a better one": (
        inside(candidacy(HELD, rank=LOW)), NoticesSeen(TWO), (Leave(True, OUTRANKED),)),
    "but not when it is active": (
        inside(candidacy(HELD, rank=LOW), S.ACTIVE), NoticesSeen(replace(TWO, lock_holder="nn1")),
        ()),
    "equal ranks wait for nobody": (candidacy(Notices(members=(PEER,))), RecheckDue(), (Join(),)),
    "a better one that is ill is not waited for": (
        candidacy(Notices(members=(replace(BETTER, health="unhealthy"),)), rank=LOW),
        RecheckDue(), (Join(),)),
    "a better one that is active is not waited for: it may have just died": (
        candidacy(Notices(members=(replace(BETTER, state="active"),)), rank=LOW),
        RecheckDue(), (Join(),)),
    "a better one that is out is not waited for": (
        candidacy(Notices(members=(replace(BETTER, in_election=False, out_because="ceded"),)),
        rank=LOW), RecheckDue(), (Join(),)),
    "a better one that is just coming is": (
        candidacy(Notices(members=(replace(BETTER, in_election=False),)), rank=LOW),
        RecheckDue(), ()),
    "a better one that must not is not": (
        candidacy(Notices(members=(replace(BETTER, nofailover=True),)), rank=LOW),
        RecheckDue(), (Join(),)),
    "a free lock is left to a better one for a while": (
        candidacy(replace(TWO, lock_holder=FREE), rank=LOW), RecheckDue(), (AskAgainAfter(1.0),)),
    "not longer": (
        candidacy(replace(TWO, lock_holder=FREE), rank=replace(LOW, priority_delay_seconds=1.0)),
        RecheckDue(), (Join(),)),
    "a ready one of low priority stands before an unready one of high": (
        candidacy(Notices(members=(replace(BETTER, ready=False),)), rank=LOW), RecheckDue(),
        (Join(),)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_who_stands(case: str) -> None:
    state, event, decisions = CASES[case]
    assert step(state, event, now=NOW).decisions == decisions


WORDS: dict[str, tuple[Candidacy, model.Event, str, str]] = {
    "paused": (WELL, NoticesSeen(replace(HELD, pause=PAUSE)), PAUSED, ""),
    "namesake": (WELL, NoticesSeen(replace(HELD, namesake=NAMESAKE)), NAMESAKE, ""),
    "drained": (WELL, NoticesSeen(replace(HELD, drain=DRAIN)), DRAINED, ""),
    "outranked": (candidacy(TWO, rank=LOW), RecheckDue(), OUTRANKED, ""),
    "outranked by equal ones": (
        candidacy(replace(TWO, members=(replace(BETTER, namenode="nn3"), BETTER)), rank=LOW),
        RecheckDue(), OUTRANKED, ""),
    "outranked by a ready one": (
        candidacy(TWO, rank=LOW, ready=False), RecheckDue(), UNREADY, ""),
    "ill": (STANDBY, ILL, "our NameNode is unhealthy: disk", ""),
    "ill out of the election": (WELL, ILL, "our NameNode is unhealthy: disk", ""),
    "observer": (STANDBY, model.StatusReported(S.OBSERVER), "our NameNode is an observer", ""),
    "in": (WELL, RecheckDue(), "", ""),
    "paused and ill": (
        PAUSED_ACTIVE, ILL, "", f"our NameNode is unhealthy: disk, but {PAUSED}"),
    "drained, nobody there": (
        DRAINED_ACTIVE, RecheckDue(), "", f"{DRAINED}; but no other NameNode is fit to take over"),
    "drained, handing over": (
        sees(DRAINED_ACTIVE, members=(PEER,)), RecheckDue(), "", f"{DRAINED}; handing over to nn2"),
    "drained, the last try failed": (
        sees(DRAINED_ACTIVE, members=(PEER,)), model.DrainTried("no"), "",
        f"{DRAINED}; but the last try failed: no"),
    "drained and paused": (
        sees(DRAINED_ACTIVE, pause=PAUSE), RecheckDue(), "", f"{DRAINED}; but {PAUSED}"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS)
def test_status_says_why_not_a_candidate_or_why_still_one(case: str) -> None:
    state, event, out_because, kept_because = WORDS[case]
    after = step(state, event, now=NOW).state
    assert (after.out_because, after.kept_because) == (out_because, kept_because)


def test_a_lower_rank_is_no_trouble_and_a_drain_is() -> None:
    assert step(candidacy(TWO, rank=LOW), RecheckDue(), now=NOW).state.waits
    assert not step(sees(WELL, drain=DRAIN), RecheckDue(), now=NOW).state.waits


@pytest.mark.row("W2")
def test_w2_one_report_of_being_unready_does_not_cost_a_standby_its_place() -> None:
    standby = inside(candidacy(Notices(members=(PEER,))))
    unready = model.StatusReported(S.STANDBY, ready=False, not_ready_reason="safe mode")
    once = step(standby, unready, now=NOW)
    twice = step(once.state, unready, now=NOW + 1)
    assert (once.decisions, twice.decisions) == ((), (Leave(True, UNREADY),))


def test_who_gave_the_lock_away_in_a_pause_takes_it_back_if_nobody_has() -> None:
    """Fail the hand-over: without this, there would be no active until the pause ends."""
    ceded = step(PAUSED_ACTIVE, CedeAsked(10.0, needs_fencing=False), now=NOW).state
    back = step(ceded, model.CedeEnded(), now=NOW + 1)
    assert back.decisions == (Join(),)
    beaten = step(back.state, model.DemotionTried(), now=NOW + 2)
    assert beaten.decisions == (), "who has the lock may still fail to become active"
    active = Notices(pause=PAUSE, lock_holder="nn2", members=(replace(PEER, state="active"),))
    assert step(beaten.state, NoticesSeen(active), now=NOW + 3).decisions == (Leave(True, PAUSED),)
    taken = step(ceded, NoticesSeen(active), now=NOW + 1).state
    assert step(taken, model.CedeEnded(), now=NOW + 2).decisions == ()


def test_the_lock_in_the_hands_of_one_that_is_not_active_yet_does_not_end_the_way_back() -> None:
    ceded = step(PAUSED_ACTIVE, CedeAsked(10.0, needs_fencing=False), now=NOW).state
    trying = Notices(pause=PAUSE, lock_holder="nn2", members=(PEER,))
    tried = step(ceded, NoticesSeen(trying), now=NOW + 1).state
    assert step(tried, model.CedeEnded(), now=NOW + 2).decisions == (Join(),)


def _flapping(count: int) -> Candidacy:
    state = replace(STANDBY, flapping=Flapping(settings=FlapSettings(failovers=3)))
    for number in range(count):
        for event in (LOCK_WON, ELECTED, model.DemotionTried()):
            state = step(state, event, now=NOW + number).state
    return step(step(state, LOCK_WON, now=NOW).state, ELECTED_AS_PLANNED, now=NOW).state


@pytest.mark.row("W16")
def test_w16_after_repeated_failovers_a_slow_active_is_kept_for_a_while() -> None:
    state = _flapping(3)
    slow = model.HealthChanged(Health.NOT_RESPONDING, Trouble.SLOW, "late")
    kept = step(state, slow, now=NOW + 10)
    assert kept.decisions == (AskAgainAfter(60.0),)
    assert "changed too often" in kept.state.kept_because
    later = step(kept.state, RecheckDue(), now=NOW + 70)
    assert later.decisions == (Leave(True, "our NameNode is not_responding: late"),)


@pytest.mark.row("W16")
def test_w16_recovery_in_time_costs_nothing_and_counts_anew() -> None:
    ill = step(_flapping(3), ILL, now=NOW + 10).state
    well = step(ill, model.HealthChanged(Health.HEALTHY), now=NOW + 50)
    assert (well.decisions, well.state.kept_because) == ((), "")
    assert step(well.state, ILL, now=NOW + 55).decisions == (AskAgainAfter(60.0),)


@pytest.mark.row("W16")
@pytest.mark.parametrize(("count", "event"), [(3, GONE), (2, ILL)], ids=["gone", "below the limit"])
def test_w16_a_dead_active_or_a_rare_failover_waits_for_nothing(
    count: int, event: model.Event
) -> None:
    decisions = step(_flapping(count), event, now=NOW + 10).decisions
    assert [type(one) for one in decisions] == [Leave]


@pytest.mark.row("W16")
def test_w16_old_failovers_are_forgotten() -> None:
    decisions = step(_flapping(3), ILL, now=NOW + 700).decisions
    assert [type(one) for one in decisions] == [Leave]


@pytest.mark.row("W16")
def test_w16_a_slow_active_that_dies_while_it_is_kept_is_left_at_once() -> None:
    kept = step(_flapping(3), ILL, now=NOW + 10).state
    assert [type(one) for one in step(kept, GONE, now=NOW + 11).decisions] == [Leave]


@pytest.mark.row("W25")
@pytest.mark.parametrize("joined", [True, False])
def test_w25_an_observer_is_never_a_candidate_whoever_asks(*, joined: bool) -> None:
    before = STANDBY if joined else WELL
    state = step(before, model.StatusReported(S.OBSERVER), now=NOW).state
    assert state.believed is S.OBSERVER
    for event in (model.CedeEnded(), model.HandOverBegun(), RecheckDue(), NoticesSeen(OPEN)):
        assert step(state, event, now=NOW).decisions == ()


@pytest.mark.parametrize(
    "bad",
    [
        {"priority_delay_seconds": -1.0},
        {"unready_delay_seconds": -1.0},
        {"failback_after_seconds": -1.0},
    ],
)
def test_a_rank_must_make_sense(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="delays"):
        Rank(**bad)  # type: ignore[arg-type] # a table's shorthand


@pytest.mark.parametrize("bad", [{"failovers": -1}, {"window_seconds": 0.0}])
def test_flap_limits_must_make_sense(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="flap"):
        FlapSettings(**bad)  # type: ignore[arg-type] # a table's shorthand
