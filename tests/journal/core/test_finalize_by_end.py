"""A writer that sends no digest, as Java's, finalizes only those edits that it must mean."""

from dataclasses import replace

import pytest

from journal.core.machine import step
from journal.core.replies import Done
from journal.core.requests import FinalizeLogSegment
from journal.core.state import Decision, JournalState
from journal.errors import OutOfSync
from journal.model import NO_EPOCH, Epoch, Segment, TxId
from tests.journal.core.requests_of import Writer, segment
from tests.journal.core.test_rules import holding, refusal, writing

FIRST, LAST = TxId(4), TxId(6)
WRITER = 2


def finalize() -> FinalizeLogSegment:
    return FinalizeLogSegment(Writer(WRITER).stamp(), FIRST, LAST, None)


def left(writer: int, *, finalized: bool = False) -> JournalState:
    """4-6 of that writer; then the asking one was promised, and has begun a later segment."""
    held = segment(FIRST, LAST, writer, finalized=finalized)
    return holding(held, promised=WRITER, writer=WRITER)


def accepted(decided: Segment, epoch: int = WRITER) -> JournalState:
    """4-6 of writer 1 are here, and a recovery was accepted."""
    return replace(left(1), decisions={FIRST: Decision(decided, Epoch(epoch))})


def opened_by(writer: int) -> JournalState:
    state = writing(FIRST, LAST, WRITER)
    assert state.open is not None
    return replace(state, open=replace(state.open, writer=Epoch(writer)))


MEANT: dict[str, JournalState] = {
    "its own edits": left(WRITER),
    "what it writes now": opened_by(WRITER),
    "what it writes now, though no record names it": opened_by(NO_EPOCH),
    "what was final before": left(1, finalized=True),
    "what it had us accept": accepted(segment(FIRST, LAST, 1)),
}
OTHERS: dict[str, JournalState] = {
    "an older writer's": left(1),
    "of nobody known, and not open": left(NO_EPOCH),
    "what an older writer had us accept": accepted(segment(FIRST, LAST, 1), 1),
    "other edits than it had us accept": accepted(segment(FIRST, LAST, 3)),
}


@pytest.mark.parametrize("state", MEANT.values(), ids=list(MEANT))
def test_it_is_finalized(state: JournalState) -> None:
    done = step(state, finalize())
    assert done.reply == Done()
    assert done.state.segments[FIRST].finalized
    assert not done.state.decisions


@pytest.mark.parametrize("state", OTHERS.values(), ids=list(OTHERS))
def test_it_is_not_finalized(state: JournalState) -> None:
    found = refusal(state, finalize())
    assert isinstance(found, OutOfSync)
    assert "gives no digest" in str(found)
