"""Every state of the NameNode's role, and every event in it: reviewed as one text."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from journal.model import Epoch, TxId
from namenode_sim.term.role import (
    Action,
    ActiveRequested,
    CaughtUp,
    Event,
    JournalRecovered,
    JournalRefused,
    LogClosed,
    LogOpened,
    RoleState,
    StandbyRequested,
    TakeoverFailed,
    Ticket,
    step,
)
from tests.transitions import explored, same_as

ATTEMPT = 5
MOST_STATES = 400
MOST_WAITING = 2


def events(state: RoleState) -> Iterator[Event]:
    """Of the running attempt, and of the one before."""
    if len(state.waiting) < MOST_WAITING:
        yield from (ActiveRequested(Ticket(1)), ActiveRequested(Ticket(2), 9.0))
        yield StandbyRequested(Ticket(3))
    for attempt in (state.attempt, state.attempt - 1):
        yield JournalRecovered(attempt, Epoch(7), TxId(40))
        yield from (CaughtUp(attempt), LogOpened(attempt), TakeoverFailed(attempt, "why"))
    yield from (LogClosed(), JournalRefused("fenced"))


def took(state: RoleState, event: Event) -> tuple[RoleState, tuple[Action, ...]]:
    """One step."""
    result = step(state, event)
    return result.state, result.actions


def test_every_transition_is_as_it_was_reviewed() -> None:
    lines = explored(
        RoleState(), events, took, lambda state: replace(state, attempt=ATTEMPT), most=MOST_STATES
    )
    same_as(Path(__file__).with_name("role.txt"), lines)
