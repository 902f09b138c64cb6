"""Purges edits that no reader needs any more (docs/reference/journal-node.md#purging)."""

from dataclasses import replace

from journal.core.effects import PurgeFiles, Step
from journal.core.replies import Done
from journal.core.requests import PurgeLogs
from journal.core.state import JournalState
from journal.errors import BadRequest
from journal.model import Segment, TxId


def purge(state: JournalState, request: PurgeLogs) -> Step:
    """Remove the segments that end before ``minimum``, as the writer asks."""
    if request.minimum <= 0:
        raise BadRequest(f"cannot purge the edits before transaction {request.minimum}")
    return purge_before(state, request.minimum)


def purge_before(state: JournalState, minimum: TxId) -> Step:
    """Remove the segments that end before ``minimum``, and keep it as the purge point.

    It keeps the open segment, edits that are not known to be committed, and the newest closed
    segment: without that one the next writer would number its edits from 1 again.
    """
    minimum = max(state.purged, minimum)
    damaged = (damage.segment for damage in state.damaged.values())
    gone = tuple(
        segment
        for segment in (*state.segments.values(), *damaged)
        if segment.first != state.newest and _is_past(state, segment, minimum)
    )
    decided = {segment.first for segment in gone}
    decided |= {
        first
        for first, decision in state.decisions.items()
        if first not in (*state.segments, *state.damaged)
        and _is_past(state, decision.segment, minimum)
    }
    for segment in gone:
        state = state.without_segment(segment.first)
    for first in decided:
        state = state.without_decision(first)
    effect = PurgeFiles(minimum, gone, tuple(sorted(decided)))
    return Step(replace(state, purged=minimum), (effect,), Done())


def _is_past(state: JournalState, segment: Segment, minimum: TxId) -> bool:
    return segment.last < minimum and segment.last <= state.committed
