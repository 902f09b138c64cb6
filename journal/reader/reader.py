"""Reads the edits of a journal from its nodes.

See docs/reference/quorum-journal.md#reading.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import structlog

from journal.errors import GapFound, QuorumLost, StorageFailed, Unavailable, ensure
from journal.links.settings import ReaderSettings
from journal.messages import segment_of
from journal.model import NO_EPOCH, Epoch, JournalId, NamespaceInfo, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.reader.frame_stream import Chunk
from journal.reader.lone_segment import LoneSegments
from journal.reader.manifest import Redundant, merge
from journal.reader.nodes import SourceNodes
from journal.reader.tailing import OpenTail
from journal.silence import Heard, Silence, weigh

__all__ = ["Chunk", "JournalReader", "ReaderSettings"]

log = structlog.get_logger()


class JournalReader:
    """Reads the edits that the lists of a majority of the nodes show."""

    def __init__(
        self,
        nodes: Sequence[tuple[str, int]],
        *,
        journal_id: JournalId,
        nameservice_id: str,
        namespace: NamespaceInfo | None = None,
        settings: ReaderSettings | None = None,
    ) -> None:
        self._settings = settings or ReaderSettings()
        self._nodes = SourceNodes(
            nodes,
            journal_id=journal_id,
            nameservice_id=nameservice_id,
            namespace=namespace,
            settings=self._settings,
        )
        self._tail = OpenTail(self._nodes)
        self._lone = LoneSegments(self._nodes)
        self._streams = False
        self._avoided: set[NodeName] = set()
        """Nodes whose last download failed; they are tried after the others."""
        self._last_finalized = TxId(0)

    async def close(self) -> None:
        await self._nodes.close()

    async def last_finalized(self) -> TxId:
        """Return the last txid in a finalized segment; 0 if there is none.

        Raises:
            QuorumLost: no majority answers.
        """
        manifests = await self._nodes.manifests(self._last_finalized)
        ends = [s.last for reply in manifests.values() for s in _finalized_segments(reply)]
        self._last_finalized = max([self._last_finalized, *ends])
        return self._last_finalized

    async def last_known(self) -> TxId:
        """Return ``last_finalized``, or the end of damaged segments after it, which no node lists.

        Raises:
            QuorumLost: no majority answers.
        """
        end = await self.last_finalized()
        told = (await self._nodes.damaged()).values()
        return max(
            [end, *(TxId(t.last_written_txid) for t in told if max(t.damaged_segments) > end)]
        )

    async def writer_epoch(self) -> Epoch:
        """Return the newest epoch that has started a segment, of a majority's statuses.

        It is the active NameNode's, or during a takeover that of the one before.

        Raises:
            QuorumLost: no majority answers.
        """
        told = (await self._nodes.statuses()).values()
        return max((Epoch(status.last_writer_epoch) for status in told), default=NO_EPOCH)

    async def writer_silence(self, within_seconds: float) -> Silence:
        """Return for how long a majority has had no request of the newest writer.

        Raises:
            QuorumLost: no majority answers within ``within_seconds``.
        """
        told = await self._nodes.writer_states(within_seconds)
        heard = [
            Heard(
                promised=Epoch(reply.last_promised_epoch),
                writer=Epoch(reply.heard_epoch),
                ago_seconds=reply.heard_micros_ago / 1e6,
                lease_seconds=reply.heard_read_lease_micros / 1e6,
            )
            for reply in told.values()
        ]
        return weigh(heard, nodes=self._nodes.count)

    async def segments(self, first: TxId) -> tuple[Redundant, ...]:
        """Return the finalized segments from the one with ``first`` on, each with its nodes.

        Raises:
            GapFound, QuorumLost, InvariantBroken: see ``edits``.
        """
        parts = await self._select(first)
        for part in parts:
            if self._lone.concerns(part):
                await self._ensure_believed(part)
        return parts

    async def holders(self, segment: Segment) -> Sequence[NodeName]:
        """Return the nodes that list that segment now, including those that answer later.

        Raises:
            QuorumLost: no majority answers.
        """
        return await self._holders(segment.first)

    def copy_of(self, node: NodeName, segment: Segment) -> AsyncGenerator[Chunk]:
        """Read one node's copy of a finalized segment, with checksums and txids verified.

        Raises:
            Unavailable: the node does not serve the segment, or stops in the middle.
            StorageFailed: the copy is damaged or too short.
        """
        return self._nodes.fetch(node, segment, wanted=segment.first, last=segment.last)

    async def next_segment(self, behind: TxId) -> TxId | None:
        """Return the first txid of the next finalized segment that starts after ``behind``.

        Raises:
            QuorumLost: no majority answers.
        """
        manifests = await self._nodes.manifests(behind)
        starts = [s.first for reply in manifests.values() for s in _finalized_segments(reply)]
        return min((first for first in starts if first > behind), default=None)

    async def ensure_served(self, first: TxId, last: TxId) -> None:
        """Check that a majority's lists contain all edits from ``first`` to ``last``.

        The open segment counts, too: its durable edits can be read once it is finalized.

        Raises:
            GapFound: an edit is in no list.
            QuorumLost: no majority answers.
        """
        manifests = await self._nodes.manifests(first, in_progress=True)
        listed = [segment_of(s) for reply in manifests.values() for s in reply.segments]
        expected = first
        for segment in sorted(listed, key=lambda segment: (segment.first, segment.last)):
            if segment.first <= expected <= segment.last:
                expected = TxId(segment.last + 1)
        if expected <= last:
            raise GapFound(
                f"transactions {expected}-{last} are missing: no answering node lists {expected}",
                missing_first=expected,
                missing_last=last,
            )

    async def edits(
        self, first: TxId, *, up_to: TxId | None = None, through: TxId | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Yield all edits from ``first`` on that are finalized at the time of the call.

        Segments that begin after ``up_to`` are left out, and so are gaps before them.  ``through``
        is a txid that is known to be finalized: if the lists end before it, the slower nodes are
        waited for.

        If a node fails in the middle of a segment, another one goes on at the next txid.

        Raises:
            GapFound: an edit is missing, but later ones exist, or edits up to ``through`` are in no
                list.
            QuorumLost: no majority answers, or all nodes with a segment have failed.
            InvariantBroken: two nodes have finalized different segments of the same edits.
        """
        expected = first
        for part in await self._select(first, up_to=up_to, through=through):
            async with aclosing(self._read_confirmed(part, expected)) as chunks:
                async for chunk in chunks:
                    ensure(chunk.first == expected, f"{chunk.first} follows {expected - 1}")
                    expected = TxId(chunk.last + 1)
                    yield chunk
        self._last_finalized = max(self._last_finalized, TxId(expected - 1))

    async def remains(self, first: TxId, last: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield the edits from ``first`` to at most ``last`` before the damage in damaged copies.

        It is for a rescue without a sound copy.  The edits may not be those that were written: only
        their checksums and txids are verified.

        Raises:
            QuorumLost: no majority answers.
        """
        for node, told in sorted((await self._nodes.damaged()).items()):
            starts = [start for start in told.damaged_segments if start <= first]
            if not starts:
                continue
            segment = Segment(TxId(max(starts)), last, finalized=True)
            found = self._nodes.fetch(node, segment, wanted=first, last=last, damaged_ok=True)
            try:
                async with aclosing(found) as chunks:
                    async for chunk in chunks:
                        first = TxId(chunk.last + 1)
                        yield chunk
            except (Unavailable, StorageFailed) as failure:
                log.warning("journal.source_failed", node=node, at=first, reason=str(failure))
            if first > last:
                return

    async def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield all durable edits from ``first`` on, including those of the open segment.

        They are read from the nodes' memory.  If no majority has them there, they are read with
        ``edits``, and then from the files of the open segment.

        Raises:
            GapFound, QuorumLost, InvariantBroken: see ``edits``.
        """
        expected = first
        try:
            async with aclosing(self._tail.from_memory(expected)) as chunks:
                async for chunk in chunks:
                    expected = TxId(chunk.last + 1)
                    yield chunk
        except QuorumLost as lost:
            if not self._streams:
                log.info("reader.streams", at=expected, because=str(lost))
            self._streams = True
        else:
            self._streams = False
            return
        async with aclosing(self.edits(expected)) as chunks:
            async for chunk in chunks:
                expected = TxId(chunk.last + 1)
                yield chunk
        async with aclosing(self._tail.from_files(expected)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _select(
        self,
        first: TxId,
        *,
        patient: bool = False,
        up_to: TxId | None = None,
        through: TxId | None = None,
    ) -> tuple[Redundant, ...]:
        manifests = await self._nodes.manifests(first, patient=patient)
        wanted = {
            node: [s for s in _finalized_segments(reply) if up_to is None or s.first <= up_to]
            for node, reply in manifests.items()
        }
        try:
            parts = merge(wanted, first)
            _ensure_reaches(parts, first, through)
        except GapFound:
            if patient:
                raise
            # The nodes that answered first may have damaged copies, which they do not list.
            return await self._select(first, patient=True, up_to=up_to, through=through)
        return parts

    async def _holders(self, wanted: TxId) -> Sequence[NodeName]:
        """Return the nodes that list that edit now; a node with a damaged copy does not list it."""
        try:
            parts = await self._select(wanted, patient=True)
        except GapFound:
            return ()
        return parts[0].sources if parts else ()

    async def _ensure_believed(self, part: Redundant) -> None:
        """Check a segment that one node lists, for a caller that reads the copies itself."""
        wanted = part.segment.first
        async with aclosing(self._lone.confirmed(part, wanted)) as chunks:
            async for chunk in chunks:
                wanted = TxId(chunk.last + 1)
        if wanted <= part.segment.last:
            self._lone.doubt(part, wanted)

    async def _read_confirmed(self, part: Redundant, wanted: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield one segment's edits.

        If only one node lists it, edits that no other node confirms are read only if the settings
        allow that (``LoneSegments.doubt``).
        """
        if self._lone.concerns(part):
            async with aclosing(self._lone.confirmed(part, wanted)) as chunks:
                async for chunk in chunks:
                    wanted = TxId(chunk.last + 1)
                    yield chunk
            if wanted <= part.segment.last:
                self._lone.doubt(part, wanted)
        async with aclosing(self._read(part, wanted)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _read(self, part: Redundant, wanted: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield a segment's edits from its sources in turn, and then from a new list of them."""
        failures: dict[NodeName, Exception] = {}
        # Else each segment would wait again for the same failed node, in a takeover.
        sources = sorted(part.sources, key=lambda node: node in self._avoided)
        asked_again = False
        while wanted <= part.segment.last:
            if not sources:
                if asked_again:
                    raise _unreadable(part, wanted, failures)
                # All nodes that answered first may have bad copies: list the slower ones, too.
                again = await self._holders(wanted)
                sources, asked_again = sorted(again, key=lambda node: node in failures), True
                if not sources:
                    raise _unreadable(part, wanted, failures)
                continue
            node = sources.pop(0)
            try:
                found = self._fetch(node, part, wanted, hurry=bool(sources))
                async with aclosing(found) as chunks:
                    async for chunk in chunks:
                        wanted = TxId(chunk.last + 1)
                        yield chunk
                self._avoided.discard(node)
            except (Unavailable, StorageFailed) as failure:
                self._avoided.add(node)
                failures[node] = failure
                log.warning("journal.source_failed", node=node, at=wanted, reason=str(failure))

    def _fetch(
        self, node: NodeName, part: Redundant, wanted: TxId, *, hurry: bool
    ) -> AsyncGenerator[Chunk, None]:
        segment = part.segment
        return self._nodes.fetch(node, segment, wanted=wanted, last=segment.last, hurry=hurry)


def _finalized_segments(reply: pb.GetEditLogManifestReply) -> list[Segment]:
    return [segment_of(s) for s in reply.segments if not s.is_in_progress]


def _ensure_reaches(parts: Sequence[Redundant], first: TxId, through: TxId | None) -> None:
    """Raise GapFound if the list ends before ``through``: ``merge`` finds no gap at the end."""
    end = parts[-1].segment.last if parts else TxId(first - 1)
    if through is not None and end < through:
        raise GapFound(
            f"transactions {end + 1}-{through} are missing: no answering node lists {end + 1}",
            missing_first=TxId(end + 1),
            missing_last=through,
        )


def _unreadable(part: Redundant, wanted: TxId, failures: dict[NodeName, Exception]) -> QuorumLost:
    reasons = "; ".join(f"{node}: {failures[node]}" for node in sorted(failures))
    return QuorumLost(
        f"transaction {wanted} of segment {part.segment.name()} cannot be read anywhere: {reasons}",
        failures=failures,
    )
