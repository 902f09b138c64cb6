"""The nodes of one journal as a reader asks them: lists, newest edits, segments over HTTP."""

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
"""How long nodes behind the majority are waited for when the majority's copies cannot be read."""
ALSO_QUICK_SECONDS: Final = 0.02
"""How long they are waited for when a majority has reported when it heard the writer."""


class SourceNodes:
    """Asks all nodes at once, and goes on as soon as a majority has answered.

    Questions that are not answered by then are taken back, so that a node that hangs is never
    asked by more than one at a time of each reader (Hadoop's testSelectThreadCounts).
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
        """How many nodes the journal has."""
        return len(self._remotes)

    async def close(self) -> None:
        """End every question, whose callers get QuorumLost, and drop the connections.

        No segment may be read at the time: aiohttp leaves the reader of a session that is closed
        waiting for ever.
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
        """Return a majority's lists; with ``patient`` also those that come in the next seconds.

        Raises:
            QuorumLost: if no majority answers.
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
        """Return a majority's statuses; with ``patient`` also those that come in the next seconds.

        Raises:
            QuorumLost: if no majority answers.
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
        """Return what a majority, and any node that is as quick, reports of the newest writer.

        Raises:
            QuorumLost: if no majority answers in time.
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
        """Return the statuses of the nodes that know of damage, also in unlisted segments.

        Raises:
            QuorumLost: if no majority answers.
        """
        replies = await self.statuses(patient=True)
        return {node: reply for node, reply in replies.items() if reply.damaged_segments}

    async def newest_edits(
        self,
        since: TxId,
        max_txns: int,
        grace: Callable[[dict[NodeName, pb.GetJournaledEditsReply]], float],
    ) -> dict[NodeName, pb.GetJournaledEditsReply]:
        """Return what a majority has in memory; ``grace`` returns how long to wait for the rest.

        Raises:
            QuorumLost: if no majority answers.
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

        With ``damaged_ok`` they may end earlier.  ``hurry``: another node has them, too.

        Raises:
            Unavailable, StorageFailed: as ``read_segment`` does.
        """
        # Loaded here: most edits come from the nodes' memory, over their RPC.
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
        """Fail a question that ended without an answer: its caller would wait for the timeout."""
        self._asking.discard(task)
        if call.decided:
            return
        if task.cancelled():  # by ``close``, perhaps before it began
            call.fail(node, Unavailable("the reader was closed"))
        elif bug := task.exception():
            log.error("reader.question_failed", node=node, exc_info=bug)
            call.fail(node, Unavailable(f"the question failed: {bug!r}"))

    async def _ensure_ours(self, remote: RemoteNode, timeout_seconds: float) -> None:
        """Another file system's journal must not be read, however well it would fit."""
        if remote.name in self._ours:
            return
        theirs = await remote.namespace(timeout_seconds)
        if theirs is None:
            return  # the manifest will say that it is not formatted
        if self._namespace is None:
            self._namespace = theirs  # whose reader does not say reads one file system all the same
        ours = self._namespace
        if (theirs.namespace_id, theirs.cluster_id) != (ours.namespace_id, ours.cluster_id):
            raise WrongNamespace(
                f"its journal {self._journal_id} belongs to cluster {theirs.cluster_id} "
                f"(namespace {theirs.namespace_id}), ours to {ours.cluster_id} "
                f"(namespace {ours.namespace_id})"
            )
        self._ours.add(remote.name)
