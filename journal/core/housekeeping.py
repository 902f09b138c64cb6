"""Let go of edits that no reader needs any more (qjm 1.8, 2.9)."""

from dataclasses import replace

from journal.core.effects import PurgeFiles, Step
from journal.core.requests import Done, PurgeLogs
from journal.core.state import JournalState
from journal.errors import BadRequest
from journal.model import Segment


def purge(state: JournalState, request: PurgeLogs) -> Step:
    """Remove the segments that end before ``minimum``.

    Three things stay whatever the writer asks: the open segment, anything not known to be on a
    quorum, and the newest closed segment.  Without the last one the next writer would find a
    journal that never began, and number its edits from 1 again.
    """
    if request.minimum <= 0:
        raise BadRequest(f"cannot purge the edits before transaction {request.minimum}")
    damaged = (damage.segment for damage in state.damaged.values())
    gone = tuple(
        segment
        for segment in (*state.segments.values(), *damaged)
        if segment.first != state.newest and _is_past(state, segment, request)
    )
    decided = {segment.first for segment in gone}
    decided |= {
        first
        for first, decision in state.decisions.items()
        if first not in (*state.segments, *state.damaged)
        and _is_past(state, decision.segment, request)
    }
    for segment in gone:
        state = state.without_segment(segment.first)
    for first in decided & set(state.decisions):
        state = state.without_decision(first)
    effect = PurgeFiles(request.minimum, gone, tuple(sorted(decided)))
    purged = max(state.purged, request.minimum)
    return Step(replace(state, purged=purged), (effect,), Done())


def _is_past(state: JournalState, segment: Segment, request: PurgeLogs) -> bool:
    return segment.last < request.minimum and segment.last <= state.committed
