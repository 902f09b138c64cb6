"""The role core: every legal way between standby and active, and what never happens."""

from hypothesis import given
from hypothesis import strategies as st

from journal.model import Epoch, TxId
from namenode_sim.term import role as term_role
from namenode_sim.term.role import step

ONE, TWO = term_role.Ticket(1), term_role.Ticket(2)


def after(
    *events: term_role.Event, state: term_role.RoleState | None = None
) -> term_role.RoleState:
    current = state or term_role.RoleState()
    for event in events:
        current = step(current, event).state
    return current


ACTIVE = after(
    term_role.ActiveRequested(ONE),
    term_role.JournalRecovered(1, Epoch(7), TxId(41)),
    term_role.CaughtUp(1),
    term_role.LogOpened(1),
)


def test_a_takeover_recovers_then_catches_up_then_opens_behind_the_last_edit() -> None:
    asked = step(term_role.RoleState(), term_role.ActiveRequested(ONE))
    assert asked.actions == (term_role.RecoverJournal(1),)
    recovered = step(asked.state, term_role.JournalRecovered(1, Epoch(7), TxId(41)))
    assert recovered.actions == (term_role.CatchUp(1, TxId(41)),)
    caught_up = step(recovered.state, term_role.CaughtUp(1))
    assert caught_up.actions == (term_role.OpenLog(1, TxId(42)),)
    opened = step(caught_up.state, term_role.LogOpened(1))
    assert opened.actions == (term_role.Grant(ONE),)
    assert opened.state.role is term_role.Role.ACTIVE
    assert opened.state.epoch == 7


def test_a_second_request_waits_for_the_same_takeover() -> None:
    state = after(term_role.ActiveRequested(ONE), term_role.ActiveRequested(TWO))
    state = after(
        term_role.JournalRecovered(1, Epoch(1), TxId(0)), term_role.CaughtUp(1), state=state
    )
    assert step(state, term_role.LogOpened(1)).actions == (
        term_role.Grant(ONE),
        term_role.Grant(TWO),
    )


def test_an_active_that_is_asked_to_be_active_says_yes() -> None:
    assert step(ACTIVE, term_role.ActiveRequested(TWO)).actions == (term_role.Grant(TWO),)


def test_an_active_closes_its_log_before_it_says_that_it_is_standby() -> None:
    closing = step(ACTIVE, term_role.StandbyRequested(TWO))
    assert closing.actions == (term_role.CloseLog(),)
    assert step(closing.state, term_role.LogClosed()).actions == (
        term_role.FollowJournal(),
        term_role.Grant(TWO),
    )


def test_a_fence_does_not_wait_for_a_takeover() -> None:
    fenced = step(after(term_role.ActiveRequested(ONE)), term_role.StandbyRequested(TWO))
    assert fenced.state.role is term_role.Role.STANDBY
    assert fenced.actions[0] == term_role.AbandonTakeover(1)
    assert fenced.actions[-1] == term_role.Grant(TWO)
    assert any(
        isinstance(action, term_role.Refuse) and action.ticket == ONE for action in fenced.actions
    )


def test_a_late_answer_of_an_abandoned_takeover_changes_nothing() -> None:
    state = after(term_role.ActiveRequested(ONE), term_role.StandbyRequested(TWO))
    for late in (
        term_role.JournalRecovered(1, Epoch(7), TxId(41)),
        term_role.CaughtUp(1),
        term_role.LogOpened(1),
        term_role.TakeoverFailed(1, "late"),
    ):
        assert step(state, late).state == state
        assert step(state, late).actions == ()


def test_a_late_answer_does_not_speak_for_the_next_takeover() -> None:
    state = after(
        term_role.ActiveRequested(ONE),
        term_role.StandbyRequested(TWO),
        term_role.ActiveRequested(term_role.Ticket(3)),
    )
    assert step(state, term_role.JournalRecovered(1, Epoch(7), TxId(41))).actions == ()
    assert step(state, term_role.JournalRecovered(2, Epoch(8), TxId(41))).actions == (
        term_role.CatchUp(2, TxId(41)),
    )


def test_a_failed_takeover_ends_as_standby_with_the_reason() -> None:
    failed = step(after(term_role.ActiveRequested(ONE)), term_role.TakeoverFailed(1, "no quorum"))
    assert failed.state.role is term_role.Role.STANDBY
    assert failed.actions == (
        term_role.AbandonTakeover(1),
        term_role.FollowJournal(),
        term_role.Refuse(ONE, "no quorum"),
    )


def test_a_refused_write_stops_the_process_for_good() -> None:
    stopped = step(ACTIVE, term_role.JournalRefused("a newer epoch"))
    assert stopped.actions == (term_role.StopProcess("a newer epoch"),)
    assert step(stopped.state, term_role.ActiveRequested(TWO)).actions == (
        term_role.Refuse(TWO, "the NameNode is stopping"),
    )


EVENTS = st.one_of(
    st.builds(term_role.ActiveRequested, st.integers(1, 10**6).map(term_role.Ticket)),
    st.builds(term_role.StandbyRequested, st.integers(1, 10**6).map(term_role.Ticket)),
    st.builds(
        term_role.JournalRecovered,
        st.integers(1, 4),
        st.integers(1, 9).map(Epoch),
        st.integers(0, 9).map(TxId),
    ),
    st.builds(term_role.TakeoverFailed, st.integers(1, 4), st.just("a reason")),
    st.just(term_role.LogClosed()),
    st.just(term_role.JournalRefused("a reason")),
)


@given(st.lists(EVENTS, max_size=40))
def test_each_request_is_answered_once_and_never_before_its_role_holds(
    events: list[term_role.Event],
) -> None:
    state, open_tickets, takeover_answers = term_role.RoleState(), set[term_role.Ticket](), 0
    for event in events:
        if isinstance(event, term_role.ActiveRequested | term_role.StandbyRequested):
            if event.ticket in open_tickets:
                continue
            open_tickets.add(event.ticket)
        before = state
        state, actions = (result := step(state, event)).state, result.actions
        for action in actions:
            if isinstance(action, term_role.Grant | term_role.Refuse):
                open_tickets.remove(action.ticket)
            if isinstance(action, term_role.Grant):
                assert state.role in {term_role.Role.ACTIVE, term_role.Role.STANDBY}
            if isinstance(action, term_role.OpenLog):
                assert before.role is term_role.Role.CATCHING_UP
        # The state has all that still wait, so that no caller is forgotten.
        assert open_tickets == set(state.waiting)
        if state.role in term_role.TAKING_OVER:
            takeover_answers += 1
            if state.role is term_role.Role.CATCHING_UP:
                state = step(state, term_role.CaughtUp(state.attempt)).state
                opened = step(state, term_role.LogOpened(state.attempt))
                open_tickets -= {a.ticket for a in opened.actions if isinstance(a, term_role.Grant)}
                state = opened.state


def test_metrics_name_every_role_and_a_takeover_as_one() -> None:
    names = {role.name: term_role.state_name(role) for role in term_role.Role}
    assert names == {
        "STANDBY": "standby",
        "RECOVERING": "becoming active",
        "CATCHING_UP": "becoming active",
        "OPENING": "becoming active",
        "ACTIVE": "active",
        "CLOSING": "becoming standby",
        "STOPPED": "stopped",
    }
