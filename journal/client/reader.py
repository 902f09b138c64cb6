"""Reads the finalized edits of a journal from whichever nodes can serve them (qjm 4.9)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

import aiohttp
import structlog

from journal.client import wire
from journal.client.call import QuorumCall
from journal.client.fetch import http_session, read_segment, segment_url
from journal.client.frames import Chunk, FrameReader
from journal.client.manifest import Redundant, merge
from journal.client.remote import JournalAddress, RemoteNode
from journal.client.settings import ReaderSettings
from journal.errors import (
    GapFound,
    JournalError,
    QuorumLost,
    StorageFailed,
    Unavailable,
    WrongNamespace,
    ensure,
)
from journal.model import JournalId, NamespaceInfo, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb

__all__ = ["Chunk", "JournalReader", "ReaderSettings"]

log = structlog.get_logger()

STRAGGLER_SECONDS: Final = 5.0
"""How long nodes behind the majority are waited for when the majority's copies cannot be read."""


class JournalReader:
    """Reads what a majority's manifests show; a minority's word is never taken."""

    def __init__(
        self,
        nodes: Sequence[tuple[str, int]],
        *,
        journal_id: JournalId,
        nameservice_id: str,
        namespace: NamespaceInfo | None = None,
        settings: ReaderSettings | None = None,
    ) -> None:
        journal = JournalAddress(journal_id, nameservice_id)
        self._settings = settings or ReaderSettings()
        self._journal_id = journal_id
        self._namespace = namespace
        remotes = [RemoteNode(host, port, journal) for host, port in nodes]
        self._remotes = {remote.name: remote for remote in remotes}
        self._http_ports: dict[NodeName, int] = {}
        self._ours: set[NodeName] = set()
        self._session: aiohttp.ClientSession | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._last_finalized = TxId(0)

    async def close(self) -> None:
        """Drop every connection."""
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        if self._session is not None:
            await self._session.close()
        await asyncio.gather(*(remote.close() for remote in self._remotes.values()))

    async def last_finalized(self) -> TxId:
        """The last txid in a finalized segment; 0 if there is none.

        Raises:
            QuorumLost: if no majority answers.
        """
        manifests = await self._manifests(self._last_finalized)
        ends = [s.last for reply in manifests.values() for s in _finalized(reply)]
        self._last_finalized = max([self._last_finalized, *ends])
        return self._last_finalized

    async def next_segment(self, behind: TxId) -> TxId | None:
        """The first txid of the next finalized segment that starts behind ``behind``.

        Raises:
            QuorumLost: if no majority answers.
        """
        manifests = await self._manifests(behind)
        starts = [s.first for reply in manifests.values() for s in _finalized(reply)]
        return min((first for first in starts if first > behind), default=None)

    async def ensure_served(self, first: TxId, last: TxId) -> None:
        """Return if a majority's lists show every edit from ``first`` to ``last``.

        The open segment counts too: what is durable in it can be read once it is finalized.

        Raises:
            GapFound: if an edit is in no list.
            QuorumLost: if no majority answers.
        """
        manifests = await self._manifests(first, in_progress=True)
        listed = [wire.segment_from_wire(s) for reply in manifests.values() for s in reply.segments]
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

    async def edits(self, first: TxId, *, up_to: TxId | None = None) -> AsyncGenerator[Chunk, None]:
        """All finalized edits from ``first`` on, as they stand when this is called.

        With ``up_to`` segments that begin behind it are left out, and so are gaps before them.

        A node that fails in the middle of a segment is left for another one, which goes on at
        the next txid.

        Raises:
            GapFound: if ``first`` or a later edit is missing while edits behind it exist.
            QuorumLost: if no majority answers, or every node that had a segment failed.
            InvariantBroken: if two nodes have finalized different edits in one place.
        """
        expected = first
        for part in await self._select(first, up_to=up_to):
            async with aclosing(self._read(part, expected)) as chunks:
                async for chunk in chunks:
                    ensure(chunk.first == expected, f"{chunk.first} follows {expected - 1}")
                    expected = TxId(chunk.last + 1)
                    yield chunk
        self._last_finalized = max(self._last_finalized, TxId(expected - 1))

    async def _select(
        self, first: TxId, *, patient: bool = False, up_to: TxId | None = None
    ) -> tuple[Redundant, ...]:
        manifests = await self._manifests(first, patient=patient)
        wanted = {
            node: [s for s in _finalized(reply) if up_to is None or s.first <= up_to]
            for node, reply in manifests.items()
        }
        return merge(wanted, first)

    async def _read(self, part: Redundant, wanted: TxId) -> AsyncGenerator[Chunk, None]:
        """One segment, from one source after the other, and once more from whoever has it now."""
        failures: dict[NodeName, Exception] = {}
        sources, asked_again = list(part.sources), False
        while wanted <= part.segment.last:
            if not sources:
                if asked_again:
                    raise _unreadable(part, wanted, failures)
                # The majority that answered first may be just those whose copies are bad.
                again = (await self._select(wanted, patient=True))[0].sources
                sources, asked_again = sorted(again, key=lambda node: node in failures), True
                continue
            node = sources.pop(0)
            try:
                async with aclosing(self._fetch(node, part, wanted)) as chunks:
                    async for chunk in chunks:
                        wanted = TxId(chunk.last + 1)
                        yield chunk
            except (Unavailable, StorageFailed) as failure:
                failures[node] = failure
                log.warning("journal.source_failed", node=node, at=wanted, reason=str(failure))

    async def _fetch(
        self, node: NodeName, part: Redundant, wanted: TxId
    ) -> AsyncGenerator[Chunk, None]:
        if self._session is None:
            self._session = http_session(self._settings)
        segment = part.segment
        url = segment_url(
            self._remotes[node].host,
            self._http_ports[node],
            journal_id=self._journal_id,
            first=segment.first,
            namespace=self._namespace,
            in_progress=False,
        )
        frames = FrameReader(segment.first, wanted=wanted, last=segment.last)
        size = self._settings.chunk_bytes
        async with aclosing(read_segment(self._session, url, frames, chunk_bytes=size)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _manifests(
        self, since: TxId, *, patient: bool = False, in_progress: bool = False
    ) -> dict[NodeName, pb.GetEditLogManifestReply]:
        """What a majority lists; with ``patient`` also what the rest says in the next seconds."""
        timeout = self._settings.select_input_streams_timeout_seconds
        call: QuorumCall[None] = QuorumCall(
            "listing the segments", self._remotes, timeout_seconds=timeout
        )
        replies: dict[NodeName, pb.GetEditLogManifestReply] = {}

        async def ask(remote: RemoteNode) -> None:
            try:
                await self._ensure_ours(remote, timeout)
                replies[remote.name] = await remote.manifest(
                    since, in_progress=in_progress, timeout_seconds=timeout
                )
            except JournalError as error:
                call.fail(remote.name, error)
            else:
                call.succeed(remote.name, None)

        tasks = [asyncio.create_task(ask(remote)) for remote in self._remotes.values()]
        for task in tasks:
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        await call.outcome()
        if patient:
            await asyncio.wait(tasks, timeout=min(timeout, STRAGGLER_SECONDS))
        for node, reply in replies.items():
            self._http_ports[node] = reply.http_port
        return dict(replies)

    async def _ensure_ours(self, remote: RemoteNode, timeout_seconds: float) -> None:
        """Another file system's journal must not be read, however well it would fit."""
        if self._namespace is None or remote.name in self._ours:
            return
        theirs = await remote.namespace(timeout_seconds)
        if theirs is None:
            return  # the manifest will say that it is not formatted
        ours = self._namespace
        if (theirs.namespace_id, theirs.cluster_id) != (ours.namespace_id, ours.cluster_id):
            raise WrongNamespace(
                f"its journal {self._journal_id} belongs to cluster {theirs.cluster_id} "
                f"(namespace {theirs.namespace_id}), ours to {ours.cluster_id} "
                f"(namespace {ours.namespace_id})"
            )
        self._ours.add(remote.name)


def _finalized(reply: pb.GetEditLogManifestReply) -> list[Segment]:
    return [wire.segment_from_wire(s) for s in reply.segments if not s.is_in_progress]


def _unreadable(part: Redundant, wanted: TxId, failures: dict[NodeName, Exception]) -> QuorumLost:
    reasons = "; ".join(f"{node}: {failures[node]}" for node in sorted(failures))
    return QuorumLost(
        f"transaction {wanted} of segment {part.segment.name()} cannot be read anywhere: {reasons}",
        failures=failures,
    )
