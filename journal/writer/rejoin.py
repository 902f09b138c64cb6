"""Lets a node that missed edits take part again in the open segment.

See docs/reference/quorum-journal.md#rejoining-inside-the-segment.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from journal.errors import JournalError, OutOfSync, QuorumLost, StorageFailed, Unavailable
from journal.links.remote_node import RemoteNode
from journal.links.settings import NODE_PATIENCE, WriterSettings
from journal.model import NamespaceInfo, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.window import SegmentEnd, Window

Sources = Callable[[NodeName, SegmentEnd], Awaitable[Sequence[str]]]
"""Returns the URLs of the open segment on nodes that have all its edits up to a mark."""
RECONNECTED_WITHIN_SECONDS: Final = 2.0
"""A link tries each second to reach a node that was away; it may be back, and not known to be."""


async def rejoin(
    remote: RemoteNode,
    window: Window,
    stamp: Callable[[], pb.RequestInfo],
    sources: Callable[[SegmentEnd], Awaitable[Sequence[str]]],
    settings: WriterSettings,
) -> TxId:
    """Have the node open the segment again; return the edit that it needs next.

    Edits that the window does not hold any more are fetched by the node from another one.  The
    caller must check that the window has the next edit when the node starts to take part.

    Raises:
        OutOfSync: it can take part with the next segment only, or not yet.
        JournalError: the node refused, or did not answer.
    """
    first = window.segment_first
    if first is None:
        raise OutOfSync("no segment is open")
    try:
        reached = await _resume(remote, stamp(), first, window.layout_version, settings)
    except StorageFailed:
        reached = TxId(0)  # its copy is damaged; another one may take its place
    if not window.covers(reached):
        ensure_ours(window, first, reached)
        try:
            mark = await window.committed_mark()
        except QuorumLost as lost:
            raise Unavailable(f"nothing to catch up with: {lost}") from None
        urls = await sources(mark)
        reached = await remote.catch_up(
            stamp(),
            Segment(mark.first, mark.last, finalized=False, digest=mark.digest),
            mark.layout_version,
            urls,
            NODE_PATIENCE * settings.accept_recovery_timeout_seconds,
        )
    ensure_ours(window, first, reached)
    return reached


async def reopen(
    remote: RemoteNode,
    first: TxId,
    following: TxId,
    layout_version: int,
    stamp: Callable[[], pb.RequestInfo],
    settings: WriterSettings,
    *,
    learner: str | None,
) -> None:
    """Have a node that may have restarted open the segment ``first`` again.

    It has every edit before ``following``, which is sent next.  ``learner`` is the incarnation of
    a node that was a learner.

    Bad schedule: two of three nodes restart one after the other while nothing is written.  Each
    closes the segment as it stops, and the next batch finds no majority that has it open.

    Raises:
        OutOfSync: it lacks edits, or has no vote any more.
        JournalError: the node refused, or did not answer.
    """
    try:
        reached = await _resume(remote, stamp(), first, layout_version, settings)
    except Unavailable as silent:
        try:
            async with asyncio.timeout(RECONNECTED_WITHIN_SECONDS):
                await remote.wait_until_reconnected()
        except TimeoutError:
            raise silent from None
        reached = await _resume(remote, stamp(), first, layout_version, settings)
    if reached != following:
        raise OutOfSync(f"it came back, and goes on at {reached}; {following} comes next")
    if remote.learner != learner:
        raise OutOfSync("it came back as another one: its storage is not the one that it had")


async def _resume(
    remote: RemoteNode,
    info: pb.RequestInfo,
    first: TxId,
    layout_version: int,
    settings: WriterSettings,
) -> TxId:
    timeout = NODE_PATIENCE * settings.start_segment_timeout_seconds
    return await remote.resume_segment(info, first, layout_version, timeout)


def ensure_ours(window: Window, first: TxId, reached: TxId) -> None:
    """Raise if the node has closed the segment, or has edits that were never written."""
    if window.segment_first != first:
        raise OutOfSync(f"segment {first} was closed meanwhile")
    if reached > window.next:
        raise OutOfSync(f"it expects {reached}, but {window.next} was not written yet")


def ensure_kept(window: Window, following: TxId) -> None:
    """Raise if the window does not hold the edit that the node needs."""
    if not window.covers(following):
        raise OutOfSync(f"the writer went on beyond {following} while the node caught up")


async def serving(
    nodes: Sequence[RemoteNode],
    first: TxId,
    namespace: NamespaceInfo,
    timeout_seconds: float,
) -> list[str]:
    """Return the URLs of a segment on those of these nodes that answer."""

    async def url(node: RemoteNode) -> str | None:
        try:
            state = await node.journal_state(timeout_seconds)
        except JournalError:
            return None
        return node.segment_url(state.http_port, first, namespace, in_progress=True)

    urls = await asyncio.gather(*(url(node) for node in nodes))
    return [url for url in urls if url is not None]


class Reconnection:
    """Reports when a broken connection to a node is made again, while that is wanted."""

    def __init__(self, remote: RemoteNode, reconnected: Callable[[], None]) -> None:
        self._remote = remote
        self._reconnected = reconnected
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Report once when the broken connection is made again."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._remote.wait_until_reconnected())
            self._watching.add_done_callback(self._changed)

    def forget(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()

    def _changed(self, watch: asyncio.Task[None]) -> None:
        self._watching = None
        if not watch.cancelled() and watch.exception() is None:
            self._reconnected()
