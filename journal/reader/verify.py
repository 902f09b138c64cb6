"""Reads all copies of the journal on all nodes in lock-step, and compares them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing

import aiohttp

from ha.conf.keys.units import HostPort
from ha.record import dataclass
from journal.errors import JournalError, QuorumLost, StorageFailed, Unavailable
from journal.links.link import segment_url
from journal.links.quorum_call import ask_once
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.links.settings import ReaderSettings
from journal.messages import namespace_of, segment_of
from journal.model import JournalId, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.quorum import majority
from journal.reader.audit import Audit, AuditReport, Finding, FindingKind, Piece
from journal.reader.fetch import http_session, read_segment
from journal.reader.frame_stream import FrameReader


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node's status and list of segments."""

    node: NodeName
    host: str
    status: pb.JournalStatus
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """Each node's view or its failure, and the report about all copies."""

    views: tuple[NodeView, ...]
    failures: dict[NodeName, JournalError]
    settled: TxId
    report: AuditReport


async def verify(
    nodes: Sequence[tuple[str, int]], journal: JournalAddress, settings: ReaderSettings
) -> Verification:
    """Compare all copies of all edits, with at most a chunk of each node in memory.

    Raises:
        QuorumLost: no majority of the nodes answers.
    """
    timeout = settings.select_input_streams_timeout_seconds
    # The committed txids are read first: the lists, which are read later, must contain all of them.
    statuses = await ask_once(nodes, journal, lambda remote: remote.status(timeout))
    answers = await asyncio.gather(*(_view(node, journal, timeout) for node in nodes))
    views = tuple(view for view in answers if isinstance(view, NodeView))
    names = [NodeName(str(HostPort(host, port))) for host, port in nodes]
    failures = {
        name: answer
        for name, answer in zip(names, answers, strict=True)
        if isinstance(answer, JournalError)
    }
    if len(views) < majority(len(nodes)):
        reasons = "; ".join(f"{name}: {failures[name]}" for name in sorted(failures))
        raise QuorumLost(
            f"verifying needs {majority(len(nodes))} of {len(nodes)} JournalNodes; {reasons}",
            failures=failures,
        )
    audit = Audit(tuple(v.node for v in views), len(failures), _settled_txid(statuses, views))
    for view in views:
        audit.duplicates(view.node, view.segments)
        for first in view.status.damaged_segments:
            # A node does not list damaged segments, so the walk would report them as missing.
            told = f"{view.node} says that its copy of the segment at {first} is damaged"
            audit.found(Finding(FindingKind.DAMAGE, TxId(first), (view.node,), told))
    async with AsyncExitStack() as running:
        session = await running.enter_async_context(http_session(settings))
        cursors = []
        for view in views:
            pieces = _pieces(session, view, journal.journal_id, settings.chunk_bytes, audit)
            cursors.append(_Cursor(view.node, await running.enter_async_context(aclosing(pieces))))
        await _walk(cursors, audit)
    return Verification(views, failures, audit.settled, audit.report())


class _Cursor:
    """The position in one node's copy: ``piece`` has its next edits."""

    def __init__(self, node: NodeName, pieces: AsyncGenerator[Piece, None]) -> None:
        self.node = node
        self.piece: Piece | None = None
        self._pieces = pieces

    async def advance(self) -> None:
        """Read the next piece; None at the end."""
        self.piece = await anext(self._pieces, None)


async def _walk(cursors: Sequence[_Cursor], audit: Audit) -> None:
    await asyncio.gather(*(cursor.advance() for cursor in cursors))
    while live := {c: c.piece for c in cursors if c.piece is not None}:
        first = min(piece.first for piece in live.values())
        here = {c: piece for c, piece in live.items() if piece.first == first}
        later = [piece.first - 1 for piece in live.values() if piece.first > first]
        last = TxId(min([piece.last for piece in here.values()] + later))
        stretch: dict[NodeName, Piece] = {}
        for cursor, piece in here.items():
            stretch[cursor.node], cursor.piece = piece.cut(last)
        audit.compare(stretch)
        await asyncio.gather(*(cursor.advance() for cursor in here if cursor.piece is None))


async def _pieces(
    session: aiohttp.ClientSession,
    view: NodeView,
    journal_id: JournalId,
    chunk_bytes: int,
    audit: Audit,
) -> AsyncGenerator[Piece, None]:
    """Yield one node's edits in order; add a finding for what cannot be read, and leave it out."""
    status, reached = view.status, TxId(0)
    for segment in sorted(view.segments, key=lambda s: (s.first, s.last)):
        if segment.last <= reached:
            continue  # ``Audit.duplicates`` has reported it
        open_here = (
            status.HasField("open_segment_first_txid")
            and status.open_segment_first_txid == segment.first
        )
        url = segment_url(
            view.host,
            status.http_port,
            journal_id=journal_id,
            first=segment.first,
            namespace=namespace_of(status.namespace_info),
            in_progress=True,
        )
        wanted = TxId(max(segment.first, reached + 1))
        frames = FrameReader(segment.first, wanted=wanted, last=segment.last)
        try:
            async with aclosing(
                read_segment(session, url, frames, chunk_bytes=chunk_bytes)
            ) as chunks:
                async for chunk in chunks:
                    yield Piece(chunk.first, chunk.last, chunk.records, segment, open_here)
        except (StorageFailed, Unavailable) as failure:
            audit.found(
                Finding(
                    FindingKind.DAMAGE,
                    frames.next_txid,
                    (view.node,),
                    f"{view.node} cannot be read from transaction {frames.next_txid} of"
                    f" {segment.name()} on: {failure}",
                )
            )
        reached = max(reached, segment.last)


async def _view(
    node: tuple[str, int], journal: JournalAddress, timeout: float
) -> NodeView | JournalError:
    remote = RemoteNode(*node, journal)
    try:
        status = await remote.status(timeout)
        manifest = await remote.manifest(TxId(0), in_progress=True, timeout_seconds=timeout)
    except JournalError as error:
        return error
    finally:
        await remote.close()
    segments = tuple(segment_of(message) for message in manifest.segments)
    held = tuple(segment for segment in segments if segment.last >= segment.first)
    return NodeView(remote.name, remote.host, status, held)


def _settled_txid(
    statuses: dict[NodeName, pb.JournalStatus | JournalError], views: Sequence[NodeView]
) -> TxId:
    """Return the highest txid that was committed before the lists, or is finalized in one."""
    committed = [s.committed_txid for s in statuses.values() if isinstance(s, pb.JournalStatus)]
    finalized = [s.last for view in views for s in view.segments if s.finalized]
    return TxId(max([0, *committed, *finalized]))
