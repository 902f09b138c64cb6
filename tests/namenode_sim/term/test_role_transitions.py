"""Every state of the NameNode's role, and every event in it: reviewed as one text."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from journal.model import Epoch, TxId
from namenode_sim.term import role
from namenode_sim.term.role import step
from tests.transitions import explored, same_as

ATTEMPT = 5
MOST_STATES = 400
MOST_WAITING = 2


def events(state: role.RoleState) -> Iterator[role.Event]:
    if len(state.waiting) < MOST_WAITING:
        yield from (role.ActiveRequested(role.Ticket(1)), role.ActiveRequested(role.Ticket(2), 9.0))
        yield role.StandbyRequested(role.Ticket(3))
    for attempt in (state.attempt, state.attempt - 1):
        yield role.JournalRecovered(attempt, Epoch(7), TxId(40))
        yield from (
            role.CaughtUp(attempt),
            role.LogOpened(attempt),
            role.TakeoverFailed(attempt, "why"),
        )
    yield from (role.LogClosed(), role.JournalRefused("fenced"))


def took(
    state: role.RoleState, event: role.Event
) -> tuple[role.RoleState, tuple[role.Action, ...]]:
    result = step(state, event)
    return result.state, result.actions


def test_every_transition_is_as_it_was_reviewed() -> None:
    lines = explored(
        role.RoleState(),
        events,
        took,
        lambda state: replace(state, attempt=ATTEMPT),
        most=MOST_STATES,
    )
    same_as(Path(__file__).with_name("role.txt"), lines)
