"""Calls the JournalNodes for a reader: segment lists, newest edits, and segments over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from ha.daemon.lazy_import import load_late
from journal.errors import JournalError, QuorumLost, Unavailable, WrongNamespace
from journal.links.link import segment_url
from journal.links.quorum_call import QuorumCall
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.links.settings import ReaderSettings
from journal.model import JournalId, NamespaceInfo, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.reader.frame_stream import Chunk, FrameReader

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

log = structlog.get_logger()

STRAGGLER_SECONDS: Final = 5.0
"""The wait for the slower nodes if the copies of the first majority cannot be read."""
ALSO_QUICK_SECONDS: Final = 0.02
"""The wait for the slower nodes after a majority has reported when it heard the writer."""


class SourceNodes:
    """Calls all nodes at once, and returns as soon as a majority has answered.

    The other calls are cancelled then, so that a reader never has more than one call at a time to a
    node that hangs (Hadoop's testSelectThreadCounts).
    """

    def __init__(
        self,
        nodes: Sequence[tuple[str, int]],
        *,
        journal_id: JournalId,
        nameservice_id: str,
        namespace: NamespaceInfo | None,
        settings: ReaderSettings,
    ) -> None:
        journal = JournalAddress(journal_id, nameservice_id)
        self.settings = settings
        self._journal_id = journal_id
        self._namespace = namespace
        remotes = [RemoteNode(host, port, journal) for host, port in nodes]
        self._remotes = {remote.name: remote for remote in remotes}
        self._http_ports: dict[NodeName, int] = {}
        self._ours: set[NodeName] = set()
        self._session: aiohttp.ClientSession | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def count(self) -> int:
        """The number of the journal's nodes."""
        return len(self._remotes)

    async def close(self) -> None:
        """Cancel all calls, whose callers get QuorumLost, and close the connections.

        No segment may be read at that time: aiohttp would let its reader wait for ever.
        """
        self._closed = True
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        if self._session is not None:
            await self._session.close()
        await asyncio.gather(*(remote.close() for remote in self._remotes.values()))

    async def manifests(
        self, since: TxId, *, patient: bool = False, in_progress: bool = False
    ) -> dict[NodeName, pb.GetEditLogManifestReply]:
        """Return a majority's lists; ``patient`` waits up to ``STRAGGLER_SECONDS`` for the others.

        Raises:
            QuorumLost: no majority answers.
        """
        timeout = self.settings.select_input_streams_timeout_seconds

        async def ask(remote: RemoteNode) -> pb.GetEditLogManifestReply:
            return await remote.manifest(since, in_progress=in_progress, timeout_seconds=timeout)

        grace = min(timeout, STRAGGLER_SECONDS) if patient else 0.0
        replies = await self._ask_all("listing the segments", ask, lambda _: grace)
        for node, reply in replies.items():
            self._http_ports[node] = reply.http_port
        return replies

    async def statuses(self, *, patient: bool = False) -> dict[NodeName, pb.JournalStatus]:
        """Return a majority's statuses; ``patient`` waits ``STRAGGLER_SECONDS`` for the others.

        Raises:
            QuorumLost: no majority answers.
        """
        timeout = self.settings.select_input_streams_timeout_seconds

        async def ask(remote: RemoteNode) -> pb.JournalStatus:
            return await remote.status(timeout)

        grace = min(timeout, STRAGGLER_SECONDS) if patient else 0.0
        replies = await self._ask_all("asking for the status", ask, lambda _: grace)
        for node, reply in replies.items():
            self._http_ports[node] = reply.http_port
        return replies

    async def writer_states(self, within_seconds: float) -> dict[NodeName, pb.GetJournalStateReply]:
        """Return when nodes last heard a writer, of a majority and quick others.

        Raises:
            QuorumLost: no majority answers within ``within_seconds``.
        """

        async def ask(remote: RemoteNode) -> pb.GetJournalStateReply:
            return await remote.journal_state(within_seconds)

        operation = "asking when a writer was last heard"
        try:
            async with asyncio.timeout(within_seconds):
                return await self._ask_all(operation, ask, lambda _: ALSO_QUICK_SECONDS)
        except TimeoutError as failure:
            why = f"{operation}: no majority answered within {within_seconds:g} s"
            raise QuorumLost(why, failures={}) from failure

    async def damaged(self) -> dict[NodeName, pb.JournalStatus]:
        """Return the statuses of the nodes with damaged segments, which no list contains.

        Raises:
            QuorumLost: no majority answers.
        """
        replies = await self.statuses(patient=True)
        return {node: reply for node, reply in replies.items() if reply.damaged_segments}

    async def newest_edits(
        self,
        since: TxId,
        max_txns: int,
        grace: Callable[[dict[NodeName, pb.GetJournaledEditsReply]], float],
    ) -> dict[NodeName, pb.GetJournaledEditsReply]:
        """Return the edits in a majority's memory; ``grace`` returns the wait for the other nodes.

        Raises:
            QuorumLost: no majority answers.
        """
        timeout = self.settings.select_input_streams_timeout_seconds

        async def ask(remote: RemoteNode) -> pb.GetJournaledEditsReply:
            return await remote.journaled_edits(since, max_txns, timeout)

        return await self._ask_all("reading the newest edits", ask, grace)

    async def fetch(
        self,
        node: NodeName,
        segment: Segment,
        *,
        wanted: TxId,
        last: TxId,
        damaged_ok: bool = False,
        hurry: bool = False,
    ) -> AsyncGenerator[Chunk, None]:
        """Yield the edits ``wanted`` to ``last`` of a segment that this node has listed.

        With ``damaged_ok`` they may end earlier; ``hurry`` sets shorter timeouts.

        Raises:
            Unavailable, StorageFailed: see ``read_segment``.
        """
        # Loaded here: most edits come from the nodes' memory, over gRPC.
        await load_late("aiohttp")
        from journal.reader.fetch import http_session, hurried, read_segment

        if self._closed:
            raise Unavailable("the reader was closed")
        if self._session is None:
            self._session = http_session(self.settings)
        url = segment_url(
            self._remotes[node].host,
            self._http_ports[node],
            journal_id=self._journal_id,
            first=segment.first,
            namespace=self._namespace,
            in_progress=not segment.finalized,
            damaged_ok=damaged_ok,
        )
        frames = FrameReader(segment.first, wanted=wanted, last=last)
        size = self.settings.chunk_bytes
        reading = read_segment(
            self._session,
            url,
            frames,
            chunk_bytes=size,
            up_to_end=not damaged_ok,
            timeout=hurried(self.settings) if hurry else None,
        )
        async with aclosing(reading) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _ask_all(
        self,
        operation: str,
        question: Callable[[RemoteNode], Awaitable[T]],
        grace: Callable[[dict[NodeName, T]], float],
    ) -> dict[NodeName, T]:
        if self._closed:
            raise QuorumLost(f"{operation}: the reader was closed", failures={})
        timeout = self.settings.select_input_streams_timeout_seconds
        call: QuorumCall[None] = QuorumCall(operation, self._remotes, timeout_seconds=timeout)
        replies: dict[NodeName, T] = {}

        async def ask(remote: RemoteNode) -> None:
            try:
                await self._ensure_ours(remote, timeout)
                replies[remote.name] = await question(remote)
            except JournalError as error:
                call.fail(remote.name, error)
            else:
                call.succeed(remote.name, None)

        tasks = [asyncio.create_task(ask(remote)) for remote in self._remotes.values()]
        for name, task in zip(self._remotes, tasks, strict=True):
            self._asking.add(task)
            task.add_done_callback(partial(self._asked, call, name))
        try:
            await call.outcome()
            if pending := [task for task in tasks if not task.done()]:
                patience = grace(replies)
                if patience > 0:
                    await asyncio.wait(pending, timeout=patience)
        finally:
            for task in tasks:
                task.cancel()
        return dict(replies)

    def _asked(self, call: QuorumCall[None], node: NodeName, task: asyncio.Task[None]) -> None:
        """Fail a call that ended without an answer: else its caller would wait for the timeout."""
        self._asking.discard(task)
        if call.decided:
            return
        if task.cancelled():  # by ``close``, possibly before its first step
            call.fail(node, Unavailable("the reader was closed"))
        elif bug := task.exception():
            log.error("reader.question_failed", node=node, exc_info=bug)
            call.fail(node, Unavailable(f"the question failed: {bug!r}"))

    async def _ensure_ours(self, remote: RemoteNode, timeout_seconds: float) -> None:
        """Raise WrongNamespace if a node's journal belongs to another file system."""
        if remote.name in self._ours:
            return
        theirs = await remote.namespace(timeout_seconds)
        if theirs is None:
            return  # the journal is not formatted there, which the answer shows
        if self._namespace is None:
            self._namespace = theirs  # a reader without a namespace must not mix two, either
        ours = self._namespace
        if (theirs.namespace_id, theirs.cluster_id) != (ours.namespace_id, ours.cluster_id):
            raise WrongNamespace(
                f"its journal {self._journal_id} belongs to cluster {theirs.cluster_id} "
                f"(namespace {theirs.namespace_id}), ours to {ours.cluster_id} "
                f"(namespace {ours.namespace_id})"
            )
        self._ours.add(remote.name)
