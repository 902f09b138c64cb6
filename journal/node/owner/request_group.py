"""What a group of requests to a journal comes to; no I/O."""

from collections.abc import Iterable, Sequence

from ha.record import record
from journal.core.effects import Effect
from journal.core.machine import step
from journal.core.replies import Reply
from journal.core.requests import (
    AcceptRecovery,
    Admit,
    AdmitByVoters,
    AdoptCatchUp,
    AdoptFinalized,
    AdoptRecovery,
    CatchUp,
    FinalizeLogSegment,
    Journal,
    LearnDigest,
    PeekRecovery,
    PrepareRecovery,
    Request,
    ResumeSegment,
)
from journal.core.state import JournalState, digest_unknown
from journal.core.usual_batch import usual_batch
from journal.errors import InvariantBroken, JournalError, Rejected
from journal.model import TxId


@record
class Decided:
    """What a group of requests comes to: the state and answers once the effects are durable."""

    state: JournalState
    effects: Sequence[Effect]
    answers: Sequence[tuple[Request, Reply | JournalError]]


def decide(state: JournalState, group: Iterable[Request]) -> Decided:
    """Let each request meet the state that those before it leave."""
    effects: list[Effect] = []
    answers: list[tuple[Request, Reply | JournalError]] = []
    for request in group:
        usual = usual_batch(state, request) if isinstance(request, Journal) else None
        try:
            result = step(state, request) if usual is None else usual
        except (Rejected, InvariantBroken) as refusal:
            answers.append((request, refusal))
            continue
        state = result.state
        effects.extend(result.effects)
        answers.append((request, result.reply))
    return Decided(state, effects, answers)


def batch_bytes(request: Request) -> int:
    return len(request.records) if isinstance(request, Journal) else 0


def compared_segment(state: JournalState, request: Request) -> TxId | None:
    """Return the first txid of the segment whose contents the request depends on, or None."""
    match request:
        case FinalizeLogSegment() | PrepareRecovery() | LearnDigest() | PeekRecovery():
            return request.first
        case AcceptRecovery() | AdoptRecovery() | AdoptFinalized():
            return request.segment.first
        case Admit(required=required) | AdmitByVoters(required=required):
            # One at a time, so that others are served in between; the writer asks again.
            unknown = (s.first for s in required if s.digest and digest_unknown(state, s.first))
            return next(unknown, None)
        case _:
            return None


def reopened_segment(state: JournalState, request: Request) -> TxId | None:
    """Return the closed segment that a request would continue; its file must be unchanged.

    Bad schedule: a bit rots behind the scan of the start.  The digest that is kept running over an
    open segment would begin with the rotten bytes, and be voted with.
    """
    match request:
        case ResumeSegment():
            first = request.first
        case CatchUp() | AdoptCatchUp():
            first = request.segment.first
        case _:
            return None
    closed = state.find(first)
    return None if closed is None or closed.finalized else first
