"""Reads the contents of a segment if a request's decision depends on them."""

from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from journal.core.requests import Request
from journal.core.state import JournalState, digest_unknown, learn_digest
from journal.errors import StorageFailed
from journal.model import JournalId, Segment, TxId
from journal.node import metrics
from journal.node.owner.request_group import compared_segment, reopened_segment
from journal.storage.disk import Disk

log = structlog.get_logger()

Blocking = Callable[[Callable[[], Segment]], Awaitable[Segment]]
"""Runs a blocking call in the journal's thread."""


async def with_contents(
    journal_id: JournalId, state: JournalState, request: Request, disk: Disk, blocking: Blocking
) -> JournalState:
    """Return the state with the digest of the segment that a request compares or reopens.

    If only this segment's file is damaged, the state records the damage instead.

    Raises:
        StorageFailed: the disk has failed.
    """
    look = disk.reread
    first = reopened_segment(state, request)
    if first is None:
        look, first = disk.digest, compared_segment(state, request)
        if first is None or not digest_unknown(state, first):
            return state
    segment = (
        state.open.as_segment()
        if state.open is not None and state.open.first == first
        else state.segments[first]
    )
    try:
        learned = await blocking(partial(look, segment))
    except StorageFailed as damage:
        if disk.failed_because is not None:
            raise
        return _with_damage(journal_id, state, first, str(damage))
    return learn_digest(state, learned)


def _with_damage(journal_id: JournalId, state: JournalState, first: TxId, why: str) -> JournalState:
    metrics.CORRUPT.labels(journal_id).inc()
    log.error("segment.damaged", journal=journal_id, segment=first, because=why)
    return state.with_damage(first, why)
