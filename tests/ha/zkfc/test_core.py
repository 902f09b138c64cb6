"""The candidacy's rules as a table and as properties."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ha.health.core import Health
from ha.service.model import ServiceState
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.model import (
    AskAgainAfter,
    CedeAsked,
    CedeEnded,
    Decision,
    DemotionSpared,
    DemotionTried,
    Event,
    HandOverTo,
    HealthChanged,
    Join,
    Leave,
    RecheckDue,
    StatusReported,
    TakeBack,
    TakeoverFailed,
    TransitionBegun,
)
from ha.zkfc.candidacy.state import Active, BackOff, Candidacy, Joined, Out, StandingBy, StoodBack
from tests.ha.zkfc.elections import ABANDONED, ELECTED, LOCK_WON

NOW = 100.0
S = ServiceState
NEW = Candidacy()
WELL = replace(NEW, health=Health.HEALTHY, reported=S.STANDBY)
IN = replace(WELL, place=Joined())
STANDBY = replace(WELL, place=StandingBy())
ACTIVE = replace(WELL, place=Active(), reported=S.ACTIVE)
PAUSED = replace(WELL, place=Out("asked to cede", StoodBack(NOW + 3, "asked to cede")))

ILL = "our NameNode is unhealthy"
GONE = "our NameNode is not_responding"

CASES: dict[str, tuple[Candidacy, Event, tuple[Decision, ...]]] = {
    "healthy and reported: join": (
        replace(NEW, reported=S.STANDBY), HealthChanged(Health.HEALTHY), (Join(),)),
    "healthy, nothing reported yet: wait": (NEW, HealthChanged(Health.HEALTHY), ()),
    "healthy but initializing: wait": (
        replace(NEW, reported=S.INITIALIZING), HealthChanged(Health.HEALTHY), ()),
    "no longer initializing: join": (
        replace(WELL, reported=S.INITIALIZING), StatusReported(S.STANDBY), (Join(),)),
    "a report without health joins nobody": (NEW, StatusReported(S.STANDBY), ()),
    "already in": (IN, HealthChanged(Health.HEALTHY), ()),
    "ill while in: leave, keep the breadcrumb": (
        ACTIVE, HealthChanged(Health.UNHEALTHY), (Leave(True, ILL),)),
    "gone while in: leave, keep the breadcrumb": (
        STANDBY, HealthChanged(Health.NOT_RESPONDING), (Leave(True, GONE),)),
    "ill while out": (WELL, HealthChanged(Health.UNHEALTHY), ()),
    "a pause defers joining": (PAUSED, RecheckDue(), (AskAgainAfter(3.0),)),
    "a pause that is over": (
        replace(PAUSED, place=Out("", StoodBack(NOW, ""))), RecheckDue(), (Join(),)),
    "cede while in": (
        ACTIVE, CedeAsked(5.0, needs_fencing=False),
        (Leave(False, "asked to cede"), AskAgainAfter(5.0))),
    "cede unconfirmed": (
        ACTIVE, CedeAsked(5.0, needs_fencing=True),
        (Leave(True, "asked to cede"), AskAgainAfter(5.0))),
    "cede while out": (WELL, CedeAsked(5.0, needs_fencing=False), (AskAgainAfter(5.0),)),
    "cede ended": (PAUSED, CedeEnded(), (Join(),)),
    "cede ended while ill": (replace(PAUSED, health=Health.UNHEALTHY), CedeEnded(), ()),
    "failed takeover: back off": (IN, TakeoverFailed(), (AskAgainAfter(1.0),)),
    "failed again: twice as long": (
        replace(IN, failures=1), TakeoverFailed(), (AskAgainAfter(2.0),)),
    "failed often: the cap": (replace(IN, failures=40), TakeoverFailed(), (AskAgainAfter(30.0),)),
    "one wrong report is forgiven": (ACTIVE, StatusReported(S.STANDBY), ()),
    "a second one is not": (
        replace(ACTIVE, contradicted=True), StatusReported(S.STANDBY),
        (Leave(True, "our NameNode says that it is standby, not active"), AskAgainAfter(1.0))),
    "a standby that says it is active": (
        replace(STANDBY, contradicted=True), StatusReported(S.ACTIVE),
        (Leave(True, "our NameNode says that it is active, not standby"), AskAgainAfter(1.0))),
    "reports during a transition mean nothing": (
        replace(STANDBY, contradicted=True, in_transition=True), StatusReported(S.ACTIVE), ()),
    "reports before the first transition mean nothing": (
        replace(IN, contradicted=True), StatusReported(S.ACTIVE), ()),
    "an observer leaves": (
        STANDBY, StatusReported(S.OBSERVER), (Leave(True, "our NameNode is an observer"),)),
    "an observer does not come back": (
        replace(WELL, reported=S.OBSERVER), RecheckDue(), ()),
    "a former observer does": (
        replace(WELL, reported=S.OBSERVER), StatusReported(S.STANDBY),
        (Join(),)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_decisions(case: str) -> None:
    state, event, decisions = CASES[case]
    assert step(state, event, now=NOW).decisions == decisions


def test_a_right_report_clears_the_count() -> None:
    once = step(ACTIVE, StatusReported(S.STANDBY), now=NOW).state
    assert not step(once, StatusReported(S.ACTIVE), now=NOW).state.contradicted


def test_somebody_becoming_active_ends_the_back_off() -> None:
    failed = replace(IN, failures=3)
    assert step(failed, ELECTED, now=NOW).state.failures == 0
    assert step(failed, DemotionTried(), now=NOW).state.failures == 0


def test_a_takeover_that_succeeds_after_we_have_left_makes_us_nothing() -> None:
    """Make it unhealthy while it is promoted: the promotion's answer is on its way already."""
    left = step(step(IN, LOCK_WON, now=NOW).state, HealthChanged(Health.UNHEALTHY), now=NOW).state
    late = step(left, ELECTED, now=NOW).state
    assert (late.believed, late.holding, late.flapping) == (S.INITIALIZING, False, left.flapping)


@pytest.mark.parametrize("event", [StatusReported(S.STANDBY), DemotionTried()])
def test_a_demotion_is_doubted_only_until_it_is_confirmed(event: Event) -> None:
    doubted = step(STANDBY, DemotionTried("late"), now=NOW).state
    assert "did not confirm" in doubted.not_demoted
    back = step(doubted, RecheckDue(), now=NOW + 1).state
    still = step(back, StatusReported(S.ACTIVE), now=NOW + 1).state
    assert still.not_demoted
    assert step(still, event, now=NOW + 2).state.not_demoted == ""


def test_a_demotion_in_doubt_ends_no_cede() -> None:
    """Found by a world of `./run soak failover`: back after a second, though four were agreed."""
    ceded = step(STANDBY, CedeAsked(4.0, needs_fencing=True), now=NOW).state
    doubted = step(ceded, DemotionTried("no"), now=NOW + 0.5).state
    assert step(doubted, RecheckDue(), now=NOW + 3.9).decisions[-1] != Join()
    assert step(doubted, RecheckDue(), now=NOW + 4.0).decisions[-1] == Join()


def test_a_shorter_cede_does_not_cut_a_longer_one() -> None:
    """Seed 110596: the shorter was asked for first, and a slow NameNode kept it."""
    longer = step(STANDBY, CedeAsked(4.0, needs_fencing=False), now=NOW).state
    both = step(longer, CedeAsked(0.3, needs_fencing=True), now=NOW + 0.5)
    assert both.decisions[-1] == AskAgainAfter(3.5)
    assert step(both.state, RecheckDue(), now=NOW + 3.9).decisions[-1] != Join()
    assert step(both.state, CedeEnded(), now=NOW + 1.0).decisions[-1] == Join()


@pytest.mark.parametrize("event", [ABANDONED, DemotionSpared()])
def test_an_abandoned_transition_leaves_us_not_knowing(event: Event) -> None:
    over = step(step(STANDBY, TransitionBegun(), now=NOW).state, event, now=NOW).state
    assert (over.in_transition, over.believed) == (False, S.INITIALIZING)


def test_a_back_off_must_make_sense() -> None:
    with pytest.raises(ValueError, match="pause"):
        BackOff(first_seconds=2.0, cap_seconds=1.0)


_events = st.one_of(
    st.builds(HealthChanged, st.sampled_from(Health)),
    st.builds(StatusReported, st.sampled_from(ServiceState)),
    st.builds(CedeAsked, st.floats(0.1, 50), needs_fencing=st.booleans()),
    st.sampled_from(
        [
            LOCK_WON, ELECTED, ABANDONED, TransitionBegun(), DemotionTried(), DemotionSpared(),
            TakeoverFailed(), CedeEnded(), RecheckDue(),
        ]
    ),
)  # fmt: skip


@pytest.mark.row("W24", "W27")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_events, st.floats(0.0, 20.0)), max_size=50))
def test_joins_and_leaves_alternate_only_the_fit_join_and_nobody_is_forgotten(
    history: list[tuple[Event, float]],
) -> None:
    run = _Run()
    for event, passed in history:
        run.pass_time(passed)
        run.feed(event)
        fit = run.state.health is Health.HEALTHY and run.state.reported in (S.ACTIVE, S.STANDBY)
        if fit and not run.inside:
            assert run.recheck_at is not None, f"out for ever after {event}"


@dataclass
class _Run:
    """A controller's timer and elector around the core, with a memory of its own."""

    state: Candidacy = field(default_factory=Candidacy)
    now: float = 0.0
    inside: bool = False
    recheck_at: float | None = None
    ceded_until: float = 0.0

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while self.recheck_at is not None and self.recheck_at <= until:
            self.now, self.recheck_at = max(self.now, self.recheck_at), None
            self.feed(RecheckDue())
        self.now = until

    def feed(self, event: Event) -> None:
        if isinstance(event, CedeAsked | CedeEnded):
            self.ceded_until = self.now + getattr(event, "seconds", 0.0)
        if isinstance(event, TakeoverFailed):
            self.inside = False  # the elector has left by itself
        result = step(self.state, event, now=self.now)
        self.state = result.state
        for decision in result.decisions:
            self._judge(decision)
        assert self.state.joined is self.inside

    def _judge(self, decision: Decision) -> None:
        match decision:
            case Join():
                assert not self.inside
                assert self.state.health is Health.HEALTHY
                assert self.state.reported in (S.ACTIVE, S.STANDBY)
                assert self.now >= self.ceded_until
                self.inside = True
            case Leave():
                assert self.inside
                self.inside = False
            case AskAgainAfter(seconds=seconds):
                assert seconds > 0
                self.recheck_at = self.now + seconds
            case HandOverTo():
                raise AssertionError("handed over without a drain")
            case TakeBack():
                raise AssertionError("took the role back, and nobody wanted that")
