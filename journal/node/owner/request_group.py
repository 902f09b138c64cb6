"""Decides about a group of requests to a journal; no I/O."""

from collections.abc import Iterable, Sequence

from ha.record import record
from journal.core import requests
from journal.core.effects import Effect
from journal.core.machine import step
from journal.core.replies import Reply
from journal.core.state import JournalState, digest_unknown
from journal.core.usual_batch import usual_batch
from journal.errors import InvariantBroken, JournalError, Rejected
from journal.model import TxId


@record
class Decided:
    """A group's effects, and the state and answers that are valid once they are durable."""

    state: JournalState
    effects: Sequence[Effect]
    answers: Sequence[tuple[requests.Request, Reply | JournalError]]


def decide(state: JournalState, group: Iterable[requests.Request]) -> Decided:
    """Decide about each request on the state that the one before it left."""
    effects: list[Effect] = []
    answers: list[tuple[requests.Request, Reply | JournalError]] = []
    for request in group:
        usual = usual_batch(state, request) if isinstance(request, requests.Journal) else None
        try:
            result = step(state, request) if usual is None else usual
        except (Rejected, InvariantBroken) as refusal:
            answers.append((request, refusal))
            continue
        state = result.state
        effects.extend(result.effects)
        answers.append((request, result.reply))
    return Decided(state, effects, answers)


def batch_bytes(request: requests.Request) -> int:
    return len(request.records) if isinstance(request, requests.Journal) else 0


def compared_segment(state: JournalState, request: requests.Request) -> TxId | None:
    """Return the first txid of the segment whose contents the request depends on, or None."""
    match request:
        case (
            requests.FinalizeLogSegment()
            | requests.PrepareRecovery()
            | requests.LearnDigest()
            | requests.PeekRecovery()
        ):
            return request.first
        case requests.AcceptRecovery() | requests.AdoptRecovery() | requests.AdoptFinalized():
            return request.segment.first
        case requests.Admit(required=required) | requests.AdmitByVoters(required=required):
            # Only one segment: other requests are served before the writer repeats its request.
            unknown = (s.first for s in required if s.digest and digest_unknown(state, s.first))
            return next(unknown, None)
        case _:
            return None


def reopened_segment(state: JournalState, request: requests.Request) -> TxId | None:
    """Return the first txid of the in-progress segment that a request would reopen, or None.

    Its file must be read again.  Bad schedule: a bit rots after the scan at the start; the running
    digest of the reopened segment includes it, and the node votes with that digest.
    """
    match request:
        case requests.ResumeSegment():
            first = request.first
        case requests.CatchUp() | requests.AdoptCatchUp():
            first = request.segment.first
        case _:
            return None
    closed = state.find(first)
    return None if closed is None or closed.finalized else first
