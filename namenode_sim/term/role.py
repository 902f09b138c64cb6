"""The NameNode's role: what each change between standby and active requires.

::

    STANDBY ──ActiveRequested──► RECOVERING ─JournalRecovered─► CATCHING_UP
       ▲                             │                              │ CaughtUp
       │◄────StandbyRequested────────┤◄─────────────────────────────┤
       │◄────TakeoverFailed──────────┘                              ▼
       │                                                         OPENING
       └──LogClosed── CLOSING ◄──StandbyRequested── ACTIVE ◄─LogOpened─┘

Whatever the role, ``JournalRefused`` ends in STOPPED: a writer that a quorum refuses has been
superseded or has lost its journal, and neither can be mended from inside.

Source of the order: Hadoop's FSNamesystem.startActiveServices
(docs/reference/namenode.md#becoming-active).

Pure.
"""

from enum import Enum
from typing import NewType, assert_never

from ha.record import dataclass, replace
from journal.errors import ensure
from journal.model import Epoch, TxId

Ticket = NewType("Ticket", int)
"""One transition request, so that its answer finds the caller."""


class Role(Enum):
    """Where the NameNode stands."""

    STANDBY = "standby"
    RECOVERING = "recovering the journal"
    CATCHING_UP = "catching up"
    OPENING = "opening the edit log"
    ACTIVE = "active"
    CLOSING = "closing the edit log"
    STOPPED = "stopped"


TAKING_OVER = frozenset({Role.RECOVERING, Role.CATCHING_UP, Role.OPENING})

_STATE_NAMES = {
    Role.STANDBY: "standby",
    Role.ACTIVE: "active",
    Role.CLOSING: "becoming standby",
    Role.STOPPED: "stopped",
}


def state_name(role: Role) -> str:
    """Return the name of a role in metrics: all steps of a takeover have the same."""
    return _STATE_NAMES.get(role, "becoming active")


@dataclass(frozen=True, slots=True)
class ActiveRequested:
    """Somebody entitled to it asks this NameNode to become active."""

    ticket: Ticket
    predecessor_gone_until: float = 0.0
    """He knows that no earlier active can serve anything any more, not even a read."""


@dataclass(frozen=True, slots=True)
class StandbyRequested:
    """Somebody entitled to it asks this NameNode to become standby."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class JournalRecovered:
    """Attempt ``attempt`` won an epoch; the journal ends at ``last_txid``."""

    attempt: int
    epoch: Epoch
    last_txid: TxId


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Attempt ``attempt`` has applied every edit of the journal."""

    attempt: int


@dataclass(frozen=True, slots=True)
class LogOpened:
    """Attempt ``attempt`` has a durable new segment to write to."""

    attempt: int


@dataclass(frozen=True, slots=True)
class LogClosed:
    """The last segment is finalized on a quorum."""


@dataclass(frozen=True, slots=True)
class TakeoverFailed:
    """A step of attempt ``attempt`` failed; nothing was acknowledged in it."""

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class JournalRefused:
    """A quorum refused or lost a write of the active."""

    reason: str


Event = (
    ActiveRequested
    | StandbyRequested
    | JournalRecovered
    | CaughtUp
    | LogOpened
    | LogClosed
    | TakeoverFailed
    | JournalRefused
)


@dataclass(frozen=True, slots=True)
class RecoverJournal:
    """Stop tailing, become the journal's writer and recover its newest segment."""

    attempt: int
    predecessor_gone_until: float = 0.0


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Apply every edit up to ``last_txid``."""

    attempt: int
    last_txid: TxId


@dataclass(frozen=True, slots=True)
class OpenLog:
    """Start a segment at ``first_txid`` and make its first edit durable."""

    attempt: int
    first_txid: TxId


@dataclass(frozen=True, slots=True)
class AbandonTakeover:
    """Drop what the attempt has under way, and its writer."""

    attempt: int


@dataclass(frozen=True, slots=True)
class CloseLog:
    """Write what is buffered, end the segment and finalize it."""


@dataclass(frozen=True, slots=True)
class FollowJournal:
    """Tail finalized segments."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Answer the caller that the requested role is held."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the caller why the requested role is not held."""

    ticket: Ticket
    reason: str


@dataclass(frozen=True, slots=True)
class StopProcess:
    """End the process, telling why."""

    reason: str


Action = (
    RecoverJournal
    | CatchUp
    | OpenLog
    | AbandonTakeover
    | CloseLog
    | FollowJournal
    | Grant
    | Refuse
    | StopProcess
)


@dataclass(frozen=True, slots=True)
class RoleState:
    """The role, the running attempt, and who waits for its end."""

    role: Role = Role.STANDBY
    attempt: int = 0
    epoch: Epoch | None = None
    last_txid: TxId = TxId(0)
    waiting: tuple[Ticket, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The new state and what it asks for, in order."""

    state: RoleState
    actions: tuple[Action, ...] = ()


def step(state: RoleState, event: Event) -> Step:
    """Decide what an event means.  Answers of an abandoned attempt change nothing."""
    if state.role is Role.STOPPED:
        return _after_the_end(state, event)
    match event:
        case ActiveRequested():
            return _begin_takeover(state, event)
        case StandbyRequested():
            return _handle_standby_request(state, event.ticket)
        case JournalRecovered() | CaughtUp() | LogOpened() | TakeoverFailed():
            if event.attempt != state.attempt or state.role not in TAKING_OVER:
                return Step(state)
            return _takeover_step(state, event)
        case LogClosed():
            if state.role is not Role.CLOSING:
                return Step(state)
            grants = tuple(Grant(ticket) for ticket in state.waiting)
            return Step(_standby(state), (FollowJournal(), *grants))
        case JournalRefused():
            refusals = tuple(Refuse(ticket, event.reason) for ticket in state.waiting)
            stopped = replace(state, role=Role.STOPPED, waiting=())
            return Step(stopped, (*refusals, StopProcess(event.reason)))
    assert_never(event)


def _takeover_step(
    state: RoleState, event: JournalRecovered | CaughtUp | LogOpened | TakeoverFailed
) -> Step:
    """Handle the running attempt's own answers; each belongs to exactly one role."""
    match event:
        case JournalRecovered():
            ensure(state.role is Role.RECOVERING, "a journal is recovered once in an attempt")
            recovered = replace(
                state, role=Role.CATCHING_UP, epoch=event.epoch, last_txid=event.last_txid
            )
            return Step(recovered, (CatchUp(event.attempt, event.last_txid),))
        case CaughtUp():
            ensure(state.role is Role.CATCHING_UP, "the journal is recovered before it is read")
            first_txid = TxId(state.last_txid + 1)
            return Step(replace(state, role=Role.OPENING), (OpenLog(event.attempt, first_txid),))
        case LogOpened():
            ensure(state.role is Role.OPENING, "a log is opened only behind its last edit")
            grants = tuple(Grant(ticket) for ticket in state.waiting)
            return Step(replace(state, role=Role.ACTIVE, waiting=()), grants)
        case TakeoverFailed():
            refusals = tuple(Refuse(ticket, event.reason) for ticket in state.waiting)
            abandon = AbandonTakeover(event.attempt)
            return Step(_standby(state), (abandon, FollowJournal(), *refusals))
    assert_never(event)


def _begin_takeover(state: RoleState, event: ActiveRequested) -> Step:
    ticket = event.ticket
    if state.role is Role.ACTIVE:
        return Step(state, (Grant(ticket),))
    if state.role in TAKING_OVER:
        return Step(replace(state, waiting=(*state.waiting, ticket)))
    if state.role is Role.CLOSING:
        reason = "it is just becoming standby; ask again when its state is standby"
        return Step(state, (Refuse(ticket, reason),))
    attempt = state.attempt + 1
    taking = replace(state, role=Role.RECOVERING, attempt=attempt, waiting=(ticket,))
    return Step(taking, (RecoverJournal(attempt, event.predecessor_gone_until),))


def _handle_standby_request(state: RoleState, ticket: Ticket) -> Step:
    if state.role is Role.STANDBY:
        return Step(state, (Grant(ticket),))
    if state.role is Role.ACTIVE:
        return Step(replace(state, role=Role.CLOSING, waiting=(ticket,)), (CloseLog(),))
    if state.role is Role.CLOSING:
        return Step(replace(state, waiting=(*state.waiting, ticket)))
    # A fence must not wait for a takeover that may hang on a journal that does not answer.  To
    # drop it is safe: it has acknowledged nothing, and the next epoch supersedes ours.
    reason = "it was told to become standby before it was active"
    refusals = tuple(Refuse(waiting, reason) for waiting in state.waiting)
    abandon = AbandonTakeover(state.attempt)
    return Step(_standby(state), (abandon, FollowJournal(), *refusals, Grant(ticket)))


def _after_the_end(state: RoleState, event: Event) -> Step:
    if isinstance(event, ActiveRequested | StandbyRequested):
        return Step(state, (Refuse(event.ticket, "the NameNode is stopping"),))
    return Step(state)


def _standby(state: RoleState) -> RoleState:
    return replace(state, role=Role.STANDBY, epoch=None, waiting=())
