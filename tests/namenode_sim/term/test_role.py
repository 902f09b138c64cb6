"""The role core: every legal way between standby and active, and what never happens."""

from hypothesis import given
from hypothesis import strategies as st

from journal.model import Epoch, TxId
from namenode_sim.term.role import (
    TAKING_OVER,
    AbandonTakeover,
    ActiveRequested,
    CatchUp,
    CaughtUp,
    CloseLog,
    Event,
    FollowJournal,
    Grant,
    JournalRecovered,
    JournalRefused,
    LogClosed,
    LogOpened,
    OpenLog,
    RecoverJournal,
    Refuse,
    Role,
    RoleState,
    StandbyRequested,
    StopProcess,
    TakeoverFailed,
    Ticket,
    state_name,
    step,
)

ONE, TWO = Ticket(1), Ticket(2)


def after(*events: Event, state: RoleState | None = None) -> RoleState:
    current = state or RoleState()
    for event in events:
        current = step(current, event).state
    return current


ACTIVE = after(
    ActiveRequested(ONE),
    JournalRecovered(1, Epoch(7), TxId(41)),
    CaughtUp(1),
    LogOpened(1),
)


def test_a_takeover_recovers_then_catches_up_then_opens_behind_the_last_edit() -> None:
    asked = step(RoleState(), ActiveRequested(ONE))
    assert asked.actions == (RecoverJournal(1),)
    recovered = step(asked.state, JournalRecovered(1, Epoch(7), TxId(41)))
    assert recovered.actions == (CatchUp(1, TxId(41)),)
    caught_up = step(recovered.state, CaughtUp(1))
    assert caught_up.actions == (OpenLog(1, TxId(42)),)
    opened = step(caught_up.state, LogOpened(1))
    assert opened.actions == (Grant(ONE),)
    assert opened.state.role is Role.ACTIVE
    assert opened.state.epoch == 7


def test_a_second_request_waits_for_the_same_takeover() -> None:
    state = after(ActiveRequested(ONE), ActiveRequested(TWO))
    state = after(JournalRecovered(1, Epoch(1), TxId(0)), CaughtUp(1), state=state)
    assert step(state, LogOpened(1)).actions == (Grant(ONE), Grant(TWO))


def test_an_active_that_is_asked_to_be_active_says_yes() -> None:
    assert step(ACTIVE, ActiveRequested(TWO)).actions == (Grant(TWO),)


def test_an_active_closes_its_log_before_it_says_that_it_is_standby() -> None:
    closing = step(ACTIVE, StandbyRequested(TWO))
    assert closing.actions == (CloseLog(),)
    assert step(closing.state, LogClosed()).actions == (FollowJournal(), Grant(TWO))


def test_a_fence_does_not_wait_for_a_takeover() -> None:
    fenced = step(after(ActiveRequested(ONE)), StandbyRequested(TWO))
    assert fenced.state.role is Role.STANDBY
    assert fenced.actions[0] == AbandonTakeover(1)
    assert fenced.actions[-1] == Grant(TWO)
    assert any(isinstance(action, Refuse) and action.ticket == ONE for action in fenced.actions)


def test_a_late_answer_of_an_abandoned_takeover_changes_nothing() -> None:
    state = after(ActiveRequested(ONE), StandbyRequested(TWO))
    for late in (
        JournalRecovered(1, Epoch(7), TxId(41)),
        CaughtUp(1),
        LogOpened(1),
        TakeoverFailed(1, "late"),
    ):
        assert step(state, late).state == state
        assert step(state, late).actions == ()


def test_a_late_answer_does_not_speak_for_the_next_takeover() -> None:
    state = after(ActiveRequested(ONE), StandbyRequested(TWO), ActiveRequested(Ticket(3)))
    assert step(state, JournalRecovered(1, Epoch(7), TxId(41))).actions == ()
    assert step(state, JournalRecovered(2, Epoch(8), TxId(41))).actions == (CatchUp(2, TxId(41)),)


def test_a_failed_takeover_ends_as_standby_with_the_reason() -> None:
    failed = step(after(ActiveRequested(ONE)), TakeoverFailed(1, "no quorum"))
    assert failed.state.role is Role.STANDBY
    assert failed.actions == (AbandonTakeover(1), FollowJournal(), Refuse(ONE, "no quorum"))


def test_a_refused_write_stops_the_process_for_good() -> None:
    stopped = step(ACTIVE, JournalRefused("a newer epoch"))
    assert stopped.actions == (StopProcess("a newer epoch"),)
    assert step(stopped.state, ActiveRequested(TWO)).actions == (
        Refuse(TWO, "the NameNode is stopping"),
    )


EVENTS = st.one_of(
    st.builds(ActiveRequested, st.integers(1, 10**6).map(Ticket)),
    st.builds(StandbyRequested, st.integers(1, 10**6).map(Ticket)),
    st.builds(
        JournalRecovered,
        st.integers(1, 4),
        st.integers(1, 9).map(Epoch),
        st.integers(0, 9).map(TxId),
    ),
    st.builds(TakeoverFailed, st.integers(1, 4), st.just("a reason")),
    st.just(LogClosed()),
    st.just(JournalRefused("a reason")),
)


@given(st.lists(EVENTS, max_size=40))
def test_each_request_is_answered_once_and_never_before_its_role_holds(events: list[Event]) -> None:
    state, open_tickets, takeover_answers = RoleState(), set[Ticket](), 0
    for event in events:
        if isinstance(event, ActiveRequested | StandbyRequested):
            if event.ticket in open_tickets:
                continue
            open_tickets.add(event.ticket)
        before = state
        state, actions = (result := step(state, event)).state, result.actions
        for action in actions:
            if isinstance(action, Grant | Refuse):
                open_tickets.remove(action.ticket)
            if isinstance(action, Grant):
                assert state.role in {Role.ACTIVE, Role.STANDBY}
            if isinstance(action, OpenLog):
                assert before.role is Role.CATCHING_UP
        # Whoever still waits is known to the state, so that no caller is forgotten.
        assert open_tickets == set(state.waiting)
        if state.role in TAKING_OVER:
            takeover_answers += 1
            if state.role is Role.CATCHING_UP:
                state = step(state, CaughtUp(state.attempt)).state
                opened = step(state, LogOpened(state.attempt))
                open_tickets -= {a.ticket for a in opened.actions if isinstance(a, Grant)}
                state = opened.state


def test_metrics_name_every_role_and_a_takeover_as_one() -> None:
    names = {role.name: state_name(role) for role in Role}
    assert names == {
        "STANDBY": "standby",
        "RECOVERING": "becoming active",
        "CATCHING_UP": "becoming active",
        "OPENING": "becoming active",
        "ACTIVE": "active",
        "CLOSING": "becoming standby",
        "STOPPED": "stopped",
    }
