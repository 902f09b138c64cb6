"""A fast path for the most frequent request: the writer's next batch of the open segment."""

from journal.core.effects import AppendEdits, Effect, RememberCommitted, Step
from journal.core.limits import MAX_COMMITTED_LEAP, MAX_SERIAL_LEAP
from journal.core.replies import Done
from journal.core.requests import Journal
from journal.core.state import NO_SERIAL, JournalState
from journal.frame import scan
from journal.model import TxId


def usual_batch(state: JournalState, request: Journal) -> Step | None:
    """Return what ``step`` decides about an ordinary batch; None if ``step`` must decide.

    It is a short form of ``journal.core.admission.admit`` and ``journal.core.segments.journal``.
    """
    opened, stamp, namespace = state.open, request.stamp, state.namespace
    if opened is None or namespace is None:
        return None
    epoch, serial, claimed = stamp.epoch, stamp.serial, stamp.committed
    first, count, held = request.first, request.count, opened.next_txid - 1
    if (
        not epoch == state.promised == state.writer == opened.writer
        or not NO_SERIAL <= state.serial < serial <= state.serial + MAX_SERIAL_LEAP
        or stamp.read_lease_micros != state.read_lease_micros
        or (stamp.namespace_id is not None and stamp.namespace_id != namespace.namespace_id)
        or request.segment_first != opened.first
        or first != opened.next_txid
        or held < opened.first
        or count <= 0
    ):
        return None
    effects: tuple[Effect, ...] = ()
    committed = state.committed
    if claimed is None:
        claimed = state.claimed
    elif not committed <= claimed <= held + MAX_COMMITTED_LEAP:
        return None
    elif committed < min(claimed, held):
        committed = TxId(min(claimed, held))
        effects = (RememberCommitted(committed),)
    found = scan(request.records, expected=first)
    if found.end != len(request.records) or found.count != count:
        return None
    after = state.after_batch(serial, committed, claimed, TxId(first + count))
    return Step(after, (*effects, AppendEdits(opened.first, count, request.records)), Done())
