"""How a node that missed edits takes part again inside the open segment (design D8)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from journal.client.remote import RemoteNode
from journal.client.settings import NODE_PATIENCE, WriterSettings
from journal.client.window import Mark, Window
from journal.errors import JournalError, OutOfSync, QuorumLost, StorageFailed, Unavailable
from journal.model import NamespaceInfo, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb

Sources = Callable[[NodeName, Mark], Awaitable[Sequence[str]]]
"""Where that node can fetch the open segment: from others that have all of it up to the mark."""


async def rejoin(
    remote: RemoteNode,
    window: Window,
    stamp: Callable[[], pb.RequestInfo],
    sources: Callable[[Mark], Awaitable[Sequence[str]]],
    settings: WriterSettings,
) -> TxId:
    """Have the node open the segment again; the edit that it needs next, which the window has.

    What the window does not hold any more, the node fetches from another one.

    Raises:
        OutOfSync: it can take part with the next segment only, or not yet.
        JournalError: what the node says, or that it does not answer.
    """
    first = window.segment_first
    if first is None:
        raise OutOfSync("no segment is open")
    try:
        reached = await remote.resume_segment(
            stamp(),
            first,
            window.layout_version,
            NODE_PATIENCE * settings.start_segment_timeout_seconds,
        )
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
    if not window.covers(reached):
        raise OutOfSync(f"the writer went on beyond {reached} while the node caught up")
    return reached


def ensure_ours(window: Window, first: TxId, reached: TxId) -> None:
    """Refuse a node that has left the segment, or has edits that nobody wrote."""
    if window.segment_first != first:
        raise OutOfSync(f"segment {first} was closed meanwhile")
    if reached > window.next:
        raise OutOfSync(f"it expects {reached}, but {window.next} was not written yet")


async def serving(
    nodes: Sequence[RemoteNode],
    first: TxId,
    namespace: NamespaceInfo,
    timeout_seconds: float,
) -> list[str]:
    """Where these nodes serve a segment over HTTP; those that do not answer are left out."""

    async def url(node: RemoteNode) -> str | None:
        try:
            state = await node.journal_state(timeout_seconds)
        except JournalError:
            return None
        return node.segment_url(state.http_port, first, namespace, in_progress=True)

    urls = await asyncio.gather(*(url(node) for node in nodes))
    return [url for url in urls if url is not None]
