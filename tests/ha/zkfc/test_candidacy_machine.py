"""The candidacy core under any order of events: when it may never join, and when it always rejoins.

The machine keeps a memory of its own; it never asks the core what it has done.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ha.health.core import Health, Trouble
from ha.notices.model import Drain, Member, Pause
from ha.notices.seen import FREE, Notices
from ha.service.model import ServiceState
from ha.zkfc.candidacy import model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.eligibility import Rank, Standing
from ha.zkfc.candidacy.flapping import Flapping, FlapSettings
from ha.zkfc.candidacy.model import CedeAsked
from ha.zkfc.candidacy.state import Candidacy
from tests.ha.zkfc.elections import ABANDONED, ELECTED, ELECTED_AS_PLANNED, LOCK_WON
from tests.ha.zkfc.test_standing import DRAIN, PAUSE, PEER

S = ServiceState
SICK = (
    model.HealthChanged(Health.UNHEALTHY, Trouble.ILL, "disk"),
    model.HealthChanged(Health.NOT_RESPONDING, Trouble.SLOW, "late"),
    model.HealthChanged(Health.NOT_RESPONDING, Trouble.GONE, "refused"),
)
LONG = 200.0
"""Longer than every pause, back-off and delay of the settings below."""


class CandidacyMachine(RuleBasedStateMachine):
    """A controller's timer and elector around the core."""

    def __init__(self) -> None:
        super().__init__()
        standing = Standing(
            namenode="nn1",
            rank=Rank(priority=100, failback_after_seconds=5.0),
            notices=None,
            no_ready_peer_since=None,
        )
        flapping = Flapping(settings=FlapSettings(failovers=2, delay_seconds=30.0))
        self.state = Candidacy(standing=standing, flapping=flapping)
        self.now = 1000.0
        self.due: float | None = None
        self.inside = False
        self.taking_over = False
        self.active = False
        self.health = Health.INITIALIZING
        self.gone = False
        self.said: ServiceState | None = None
        self.notices: Notices | None = None
        self.asked = 0
        self.ceded_until = 0.0
        self.gave_away = False
        self.lock = 1
        """The transaction that made the newest lock, whoever had it."""
        self.own_lock = 0
        self.cause: model.Event | None = None

    # -- the world ---------------------------------------------------------------------------

    @rule(event=st.sampled_from(SICK))
    def falls_ill(self, event: model.HealthChanged) -> None:
        self.health, self.gone = event.health, event.trouble is Trouble.GONE
        self.feed(event)

    @rule(said=st.sampled_from([S.ACTIVE, S.STANDBY]), ready=st.booleans())
    def is_well(self, said: ServiceState, ready: bool) -> None:
        self.reports(said, ready)
        self.health, self.gone = Health.HEALTHY, False
        self.feed(model.HealthChanged(Health.HEALTHY, Trouble.NONE))

    @rule(said=st.sampled_from(S), ready=st.booleans())
    def reports(self, said: ServiceState, ready: bool) -> None:
        self.said = said
        self.feed(model.StatusReported(said, ready, "" if ready else "safe mode"))

    @rule(
        pause=st.sampled_from([None, PAUSE]),
        drain=st.sampled_from([None, DRAIN]),
        priority=st.sampled_from([50, 100, 200]),
        state=st.sampled_from(["active", "standby"]),
        health=st.sampled_from(["healthy", "unhealthy"]),
        there=st.booleans(),
        holder=st.sampled_from([None, FREE, "nn1", "nn2"]),
        late=st.booleans(),
    )
    def notices_change(
        self, *, there: bool, holder: str | None, late: bool, **drawn: object
    ) -> None:
        """Show notices of now, or if ``late``, notices of before our own win."""
        names = ("priority", "state", "health")
        peer: Member = replace(PEER, **{name: drawn[name] for name in names})  # type: ignore[arg-type] # drawn
        self.notices = Notices(
            pause=PAUSE if drawn["pause"] else None,
            drain=DRAIN if drawn["drain"] else None,
            members=(peer,) if there else (),
            lock_holder=holder,
            lock_made=self._lock_of(holder, late=late),
        )
        if self._replaced():
            self.gave_away = False
        self.feed(model.NoticesSeen(self.notices))

    def _lock_of(self, holder: str | None, *, late: bool) -> int:
        if holder in (None, FREE):
            return 0
        if holder == "nn1":
            return self.own_lock
        if not (late and self.own_lock):
            self.lock += 2
            return self.lock
        return self.own_lock - 1

    def _replaced(self) -> bool:
        """Return whether the notices show that another has become active since we last won."""
        notices = self.notices
        if notices is None or notices.lock_holder != "nn2" or notices.lock_made < self.own_lock:
            return False
        return not notices.members or notices.members[0].state == "active"

    @rule(seconds=st.floats(0.01, 100.0))
    def time_passes(self, seconds: float) -> None:
        until = self.now + seconds
        while self.due is not None and self.due <= until:
            # A timer is never quite exact; without this, rounding could stop the clock.
            self.now, self.due = max(self.now, self.due) + 1e-6, None
            self.feed(model.RecheckDue())
        self.now = max(self.now, until)

    # -- operators ---------------------------------------------------------------------------

    @rule(seconds=st.floats(0.1, 50.0), needs_fencing=st.booleans())
    def is_asked_to_cede(self, seconds: float, needs_fencing: bool) -> None:
        self.feed(model.TransitionBegun())
        held = self.active or self.taking_over
        self.gave_away = (self.gave_away or held) and not self._replaced()
        if not needs_fencing and self.said is S.ACTIVE:
            self.said = S.STANDBY
        self.ceded_until = self.now + seconds
        self.feed(CedeAsked(seconds, needs_fencing=needs_fencing))

    @rule()
    def is_let_back(self) -> None:
        self.ceded_until = self.now
        self.feed(model.CedeEnded())

    @rule()
    def is_to_take_over(self) -> None:
        self.asked += 1
        self.feed(model.HandOverBegun())

    @precondition(lambda self: self.asked > 0)
    @rule()
    def that_has_ended(self) -> None:
        self.asked -= 1
        self.feed(model.HandOverEnded())

    @rule(failure=st.sampled_from(["", "refused"]))
    def the_successor_answers(self, failure: str) -> None:
        self.feed(model.DrainTried(failure))

    # -- the elector -------------------------------------------------------------------------

    @precondition(lambda self: self.inside and not self.taking_over and not self.active)
    @rule()
    def wins(self) -> None:
        self.taking_over = True
        self.lock += 2
        self.own_lock = self.lock
        self.feed(LOCK_WON)
        self.feed(model.OwnLockSeen(self.own_lock))

    @precondition(lambda self: self.taking_over)
    @rule(planned=st.booleans())
    def becomes_active(self, planned: bool) -> None:
        self.feed(model.TransitionBegun())
        if self.taking_over:
            self.taking_over, self.active, self.gave_away = False, True, False
            self.said = S.ACTIVE
            self.feed(model.StatusReported(S.ACTIVE))
            self.feed(ELECTED_AS_PLANNED if planned else ELECTED)

    @precondition(lambda self: self.taking_over)
    @rule()
    def loses_its_ground(self) -> None:
        self.taking_over = False
        self.feed(ABANDONED)

    @precondition(lambda self: self.taking_over)
    @rule()
    def fails(self) -> None:
        self.taking_over = self.inside = False
        self.feed(model.TakeoverFailed())

    @precondition(lambda self: self.inside and not self.taking_over)
    @rule()
    def sees_the_lock_taken(self) -> None:
        self.active = False
        self.feed(model.DemotionTried())

    @precondition(lambda self: not self.inside)
    @rule(event=st.sampled_from([LOCK_WON, ELECTED, model.DemotionTried()]))
    def hears_of_an_election_that_it_has_left(self, event: model.Event) -> None:
        self.feed(event)

    # -- what must hold ----------------------------------------------------------------------

    @invariant()
    def the_elector_is_where_the_core_thinks(self) -> None:
        assert self.state.joined is self.inside

    @invariant()
    def only_a_holder_or_an_excused_one_is_in_a_paused_or_drained_election(self) -> None:
        notices = self.notices
        if not self.inside or self.active or self.taking_over or self.health is not Health.HEALTHY:
            return
        if self.said in (S.INITIALIZING, S.OBSERVER):
            return  # judged at its next report
        assert notices is not None
        if notices.pause is not None:
            assert self.asked or self._excused()
        if notices.drain is not None:
            assert self._excused()

    @invariant()
    def the_ill_are_out_unless_they_hold_the_lock(self) -> None:
        if self.inside and self.health is not Health.HEALTHY:
            assert self.active or self.taking_over
            paused = self.notices is not None and self.notices.pause is not None
            assert paused or not self.gone, "a dead active is kept"
            assert self.state.kept_because

    @invariant()
    def whoever_is_out_holds_nothing(self) -> None:
        assert self.inside or not self.state.holding

    @invariant()
    def whoever_is_out_says_why(self) -> None:
        if not self.inside and self.cause is not None and self.health is not Health.INITIALIZING:
            assert self.state.out_because
            assert not self.state.kept_because

    @rule()
    def in_calm_weather_it_always_stands(self) -> None:
        made = self._lock_of("nn2", late=self.active or self.taking_over)
        self.notices = Notices(
            lock_holder="nn2", lock_made=made, members=(replace(PEER, state="active"),)
        )
        if self._replaced():
            self.gave_away = False
        self.feed(model.NoticesSeen(self.notices))
        while self.asked:
            self.that_has_ended()
        self.is_let_back()
        said = S.ACTIVE if self.active else S.STANDBY
        self.is_well(said, True)
        if self.taking_over:
            self.becomes_active(False)
        self.time_passes(LONG)
        assert self.inside

    @precondition(lambda self: self.gave_away)
    @rule(
        pause=st.sampled_from([None, PAUSE]),
        drain=st.sampled_from([None, DRAIN]),
        holder=st.sampled_from([None, FREE, "nn1", "nn2"]),
    )
    def who_gave_the_lock_away_may_have_it_back(
        self, pause: Pause | None, drain: Drain | None, holder: str | None
    ) -> None:
        """Let it back, whatever was asked since: else there is no active until the pause ends."""
        members = (replace(PEER, state="standby"),)
        made = self._lock_of(holder, late=False)
        self.notices = Notices(
            pause=pause, drain=drain, members=members, lock_holder=holder, lock_made=made
        )
        self.feed(model.NoticesSeen(self.notices))
        self.is_let_back()
        self.is_well(S.STANDBY, True)
        self.time_passes(LONG)
        assert self.inside

    # -- one step ----------------------------------------------------------------------------

    def feed(self, event: model.Event) -> None:
        self.cause = event
        result = step(self.state, event, now=self.now)
        self.state = result.state
        for decision in result.decisions:
            match decision:
                case model.Join():
                    self._may_join()
                    self.inside = True
                case model.Leave():
                    self._may_leave(event)
                    self.inside = self.taking_over = self.active = False
                case model.HandOverTo(namenode=namenode):
                    self._may_hand_over(namenode)
                case model.TakeBack():
                    self._may_take_back()
                case model.AskAgainAfter(seconds=seconds):
                    assert seconds > 0
                    self.due = self.now + seconds

    def _may_join(self) -> None:
        assert not self.inside
        assert self.health is Health.HEALTHY
        assert self.said in (S.ACTIVE, S.STANDBY)
        assert self.now >= self.ceded_until
        assert self.notices is not None

    def _may_leave(self, event: model.Event) -> None:
        assert self.inside
        paused = self.notices is not None and self.notices.pause is not None
        if paused and (self.active or self.taking_over):
            observer = self.said is S.OBSERVER
            assert isinstance(event, CedeAsked) or observer, f"a role change in a pause: {event}"

    def _may_hand_over(self, namenode: str) -> None:
        notices = self.notices
        assert self.active
        assert notices is not None
        assert notices.drain is not None
        assert notices.pause is None
        (peer,) = notices.members
        assert (peer.namenode, peer.state, peer.health) == (namenode, "standby", "healthy")

    def _may_take_back(self) -> None:
        notices = self.notices
        assert self.inside
        assert not self.active
        assert not self.taking_over
        assert not self.asked
        assert self.health is Health.HEALTHY
        assert self.said is S.STANDBY
        assert notices is not None
        assert notices.pause is None
        assert notices.drain is None
        (peer,) = notices.members
        assert notices.lock_holder == peer.namenode
        assert (peer.state, peer.health, peer.priority) == ("active", "healthy", 50)

    def _excused(self) -> bool:
        notices = self.notices
        free = (
            notices is None
            or notices.lock_holder in (None, FREE, "nn1")
            or notices.lock_made < self.own_lock
        )
        return self.gave_away or (self.said is S.ACTIVE and free)


TestCandidacy = CandidacyMachine.TestCase
TestCandidacy.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
