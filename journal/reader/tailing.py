"""Reads the durable edits of the open segment from the nodes' memory or their files."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Final

import structlog

from ha.record import dataclass
from journal.durable import Durable, Tail, durable_prefix
from journal.errors import QuorumLost, StorageFailed, Unavailable
from journal.frame import scan
from journal.messages import segment_of
from journal.model import Epoch, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.quorum import majority
from journal.reader.frame_stream import Chunk, split
from journal.reader.nodes import SourceNodes

log = structlog.get_logger()

FULL_ANSWER_BYTES: Final = 1024 * 1024
"""A node may have truncated an answer of at least this size; there may be more edits."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The verified edits that one node has in memory."""

    layout_version: int
    records: bytes
    tail: Tail


class OpenTail:
    """Yields the edits that are durable by the rules of ``journal.durable``, without gaps."""

    def __init__(self, nodes: SourceNodes) -> None:
        self._nodes = nodes
        self._committed: TxId | None = None

    async def from_memory(self, first: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield the durable edits from ``first`` on, up to the newest.

        Raises:
            QuorumLost: no majority has the next edit in memory; those already yielded are durable.
        """
        most = self._nodes.settings.rpc_max_txns
        while True:
            # A committed txid that is learnt in this round proves nothing about its answers.
            known, since = self._committed, first

            def patience(
                replies: Mapping[NodeName, pb.GetJournaledEditsReply],
                since: TxId = since,
                known: TxId | None = known,
            ) -> float:
                answers = _check(replies, since, known)
                longest = max((len(a.tail.edits) for a in answers.values()), default=0)
                settled = self._durable(answers, since).count == longest
                return 0.0 if settled else self._nodes.settings.straggler_seconds

            replies = await self._nodes.newest_edits(since, most, patience)
            answers = _check(replies, since, known)
            if len(answers) < majority(self._nodes.count):
                raise QuorumLost(
                    f"too few nodes answered with sound edits from transaction {since} on",
                    failures={},
                )
            self._learn(replies.values())
            found = self._durable(answers, since)
            if not found.count:
                return
            best = answers[found.holders[0]]
            size = sum(len(edit) for edit in best.tail.edits[: found.count])
            last = TxId(since + found.count - 1)
            yield Chunk(since, last, best.layout_version, best.records[:size])
            first = TxId(last + 1)
            if found.count < most and size < FULL_ANSWER_BYTES:
                return

    async def from_files(self, first: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield durable edits from ``first`` on from the files of the open segment.

        All copies are read in lock-step, and edits are yielded if a majority has the same bytes.
        Files do not show the writer of an edit, so only committed edits are read.

        Raises:
            QuorumLost: no majority lists its segments.
        """
        manifests = await self._nodes.manifests(first, in_progress=True)
        self._learn(manifests.values())
        committed = self._committed
        if committed is None or committed < first:
            return
        copies = {node: _holding(reply, first) for node, reply in sorted(manifests.items())}
        spare = sum(copy is not None for copy in copies.values()) > majority(self._nodes.count)
        async with AsyncExitStack() as running:
            cursors = []
            for node, segment in copies.items():
                if segment is not None:
                    last = min(segment.last, committed)
                    # If the other nodes are a majority, do not wait long for a node that hangs.
                    chunks = self._nodes.fetch(node, segment, wanted=first, last=last, hurry=spare)
                    await running.enter_async_context(aclosing(chunks))
                    cursors.append(Cursor(node, chunks))
            same = _agreed_stretches(cursors, majority(self._nodes.count))
            async with aclosing(same) as stretches:
                async for chunk in stretches:
                    yield chunk

    def _durable(self, answers: Mapping[NodeName, _Answer], first: TxId) -> Durable:
        layouts = {answer.layout_version for answer in answers.values() if answer.tail.edits}
        tails = {node: answer.tail for node, answer in answers.items()}
        if len(layouts) > 1:
            # The same bytes in two layout versions are not the same edits.
            tails = {node: _mark(answer) for node, answer in answers.items()}
        return durable_prefix(tails, first=first, members=self._nodes.count)

    def _learn(self, replies: "Iterable[_Reply]") -> None:
        for reply in replies:
            if reply.HasField("committed_txid"):
                self._committed = TxId(max(self._committed or 0, reply.committed_txid))


_Reply = pb.GetJournaledEditsReply | pb.GetEditLogManifestReply


class Cursor:
    """The position in one node's copy: ``chunk`` has its next edits."""

    def __init__(self, node: NodeName, chunks: AsyncGenerator[Chunk, None]) -> None:
        self.node = node
        self.chunk: Chunk | None = None
        self._chunks = chunks

    async def advance(self) -> None:
        """Read the next chunk if ``chunk`` is None; it stays None at the end or after an error."""
        if self.chunk is not None:
            return
        try:
            self.chunk = await anext(self._chunks, None)
        except (Unavailable, StorageFailed) as failure:
            log.warning("journal.source_failed", node=self.node, reason=str(failure))


async def _agreed_stretches(cursors: Sequence[Cursor], needed: int) -> AsyncGenerator[Chunk, None]:
    """Yield the edits of which ``needed`` copies have the same bytes, until fewer have them."""
    agreeing = list(cursors)
    while len(agreeing) >= needed:
        await asyncio.gather(*(cursor.advance() for cursor in agreeing))
        heads = {cursor: cursor.chunk for cursor in agreeing if cursor.chunk is not None}
        if len(heads) < needed:
            return
        first = min(chunk.first for chunk in heads.values())
        last = min(chunk.last for chunk in heads.values())
        groups: dict[tuple[int, bytes], list[Cursor]] = {}
        for cursor, chunk in heads.items():
            head, cursor.chunk = chunk.cut(last)
            groups.setdefault((head.layout_version, head.records), []).append(cursor)
        (layout, records), agreeing = max(groups.items(), key=lambda group: len(group[1]))
        if len(agreeing) >= needed:
            yield Chunk(first, last, layout, records)


def _check(
    replies: Mapping[NodeName, pb.GetJournaledEditsReply], since: TxId, known: TxId | None
) -> dict[NodeName, _Answer]:
    """Return the answers with sound edits and correct counts; log the others."""
    answers: dict[NodeName, _Answer] = {}
    for node, reply in replies.items():
        found = scan(reply.records, expected=since)
        sound = found.damage is None and found.end == len(reply.records)
        writers: list[Epoch] = []
        for run in reply.writers[: reply.count]:
            ours = min(run.last_txid, since + reply.count - 1) - since + 1 - len(writers)
            writers += [Epoch(run.writer_epoch)] * ours
        if not sound or found.count != reply.count or len(writers) != reply.count:
            log.warning(
                "journal.answer_unsound", node=node, at=since, because=found.damage or "its counts"
            )
            continue
        committed = [TxId(reply.committed_txid)] if reply.HasField("committed_txid") else []
        committed += [known] if known is not None else []
        tail = Tail(split(reply.records), writers, max(committed, default=None))
        answers[node] = _Answer(reply.layout_version, reply.records, tail)
    return answers


def _mark(answer: _Answer) -> Tail:
    mark = str(answer.layout_version).encode()
    tail = answer.tail
    return Tail([edit + mark for edit in tail.edits], tail.writers, tail.committed)


def _holding(reply: pb.GetEditLogManifestReply, txid: TxId) -> Segment | None:
    """Return the in-progress segment of a node's list that contains the edit, or None."""
    listed = [segment_of(message) for message in reply.segments]
    return next((s for s in listed if not s.finalized and s.holds(txid)), None)
