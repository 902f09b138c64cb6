"""Compares a finalized segment that only one node lists with other nodes' copies.

Either only that node has got the writer's FinalizeLogSegment yet, or it lists a false segment.

See docs/reference/quorum-journal.md#segments-that-one-node-lists.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing

import structlog

from journal.errors import QuorumLost
from journal.links import metrics
from journal.messages import segment_of
from journal.model import NodeName, Segment, TxId
from journal.reader.frame_stream import Chunk
from journal.reader.manifest import Redundant
from journal.reader.nodes import SourceNodes
from journal.reader.tailing import Cursor
from journal.reader.vouching import confirmed_by, copy_in

log = structlog.get_logger()


class LoneSegments:
    """Reads the edits that a second node confirms; the settings say if the others may be read."""

    def __init__(self, nodes: SourceNodes) -> None:
        self._nodes = nodes
        self._told: set[tuple[NodeName, str]] = set()

    def concerns(self, part: Redundant) -> bool:
        """Return whether only one of several nodes lists the segment."""
        return len(part.sources) == 1 and self._nodes.count > 1

    async def confirmed(self, part: Redundant, wanted: TxId) -> AsyncGenerator[Chunk, None]:
        """Yield the edits from ``wanted`` on, up to the first that no other node confirms.

        Raises:
            QuorumLost: no majority lists its segments.
        """
        (lone,) = part.sources
        copies = await self._copies(lone, part.segment)
        if not copies:
            return
        async with AsyncExitStack() as running:

            async def cursor(node: NodeName, segment: Segment, *, hurry: bool) -> Cursor:
                chunks = self._nodes.fetch(
                    node, segment, wanted=wanted, last=part.segment.last, hurry=hurry
                )
                await running.enter_async_context(aclosing(chunks))
                return Cursor(node, chunks)

            one = await cursor(lone, part.segment, hurry=False)
            others = [await cursor(node, copy, hurry=True) for node, copy in copies]
            async with aclosing(_side_by_side(one, others)) as chunks:
                async for chunk in chunks:
                    yield chunk

    def doubt(self, part: Redundant, wanted: TxId) -> None:
        """Log, once for each segment, that no other node confirms the edits from ``wanted`` on.

        Raises:
            QuorumLost: the settings refuse such edits.
        """
        (lone,) = part.sources
        name = part.segment.name()
        if self._nodes.settings.refuse_unconfirmed:
            metrics.UNCONFIRMED.labels("refused").inc()
            raise QuorumLost(
                f"{lone} alone lists the segment {name}, and no other node has the same edits from"
                f" transaction {wanted} on: they are not believed (nnha.security.mode=strict)."
                f" Start the other JournalNodes; nnha journal verify compares the copies",
                failures={},
            )
        if (lone, name) not in self._told:
            self._told.add((lone, name))
            metrics.UNCONFIRMED.labels("used").inc()
            log.warning("journal.segment_unconfirmed", node=lone, segment=name, at=wanted)

    async def _copies(self, lone: NodeName, wanted: Segment) -> Sequence[tuple[NodeName, Segment]]:
        """Return the other nodes with a copy, of the first majority, or else of all that answer."""
        for patient in (False, True):
            replies = await self._nodes.manifests(wanted.first, in_progress=True, patient=patient)
            found = [
                (node, copy)
                for node, reply in sorted(replies.items())
                if node != lone
                and (copy := copy_in([segment_of(one) for one in reply.segments], wanted))
            ]
            if found:
                return found
        return ()


async def _side_by_side(one: Cursor, others: Sequence[Cursor]) -> AsyncGenerator[Chunk, None]:
    """Yield the edits of ``one`` as long as another cursor has the same bytes."""
    agreeing = {cursor.node: cursor for cursor in others}
    while agreeing:
        await asyncio.gather(one.advance(), *(cursor.advance() for cursor in agreeing.values()))
        if one.chunk is None:
            return
        heads = {node: c.chunk for node, c in agreeing.items() if c.chunk is not None}
        found = confirmed_by(one.chunk, heads)
        if found.chunk is None:
            return
        one.chunk = found.rest
        for node, rest in found.agreeing.items():
            agreeing[node].chunk = rest
        agreeing = {node: agreeing[node] for node in found.agreeing}
        yield found.chunk
