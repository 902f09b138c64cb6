"""Writes a journal: claims an epoch, recovers the newest segment, and writes to a quorum.

Every call is sent to all nodes and returns when a majority has acknowledged it.  Without a majority
the writer ends for good: only a new epoch and a recovery show what the nodes have.  A writer has
one epoch; to write again, make a new writer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import ceil

import structlog

from journal import model
from journal.errors import InvariantBroken, JournalError, QuorumLost, ensure
from journal.links import codec, metrics
from journal.links.codec import brief
from journal.links.grpc_link import GrpcLink
from journal.links.link import LinkFactory
from journal.links.quorum_call import QuorumCall, T, ask_each, good
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.links.settings import NODE_PATIENCE, WriterSettings
from journal.proto import journal_pb2 as pb
from journal.quorum import next_epoch
from journal.recovery import Copy, Skip, choose
from journal.writer import purge
from journal.writer.channel import NodeChannel
from journal.writer.channel_status import ChannelStatus
from journal.writer.epoch_claim import Claim, Recovered, promised_in
from journal.writer.heartbeats import Heartbeats, ReadLease
from journal.writer.learner_admission import LearnerAdmission
from journal.writer.rejoin import serving
from journal.writer.upgrade import JournalUpgrades
from journal.writer.window import Ended, SegmentEnd, Window, awaitable

__all__ = ["ChannelStatus", "QuorumWriter", "Recovered", "WriterSettings"]

log = structlog.get_logger()


class QuorumWriter:
    """Writes one journal under one epoch.

    Raises, from every call that needs a quorum:
        QuorumLost: too few nodes acknowledged it.  The message has every failed node and its
            reason; ``fenced_by`` is the epoch of a newer writer.  The writer has ended then.
        InvariantBroken: two facts contradict each other; the writer has ended, too.
    """

    def __init__(
        self,
        nodes: Sequence[tuple[str, int]],
        *,
        journal_id: model.JournalId,
        nameservice_id: str,
        namespace: model.NamespaceInfo,
        settings: WriterSettings | None = None,
        link: LinkFactory = GrpcLink,
    ) -> None:
        if not nodes or len(set(nodes)) != len(nodes):
            raise ValueError(f"a journal needs distinct nodes, not {list(nodes)}")
        self._journal_id = journal_id
        self._namespace = namespace
        self._settings = settings or WriterSettings()
        lease = ceil(self._settings.read_lease_seconds * 1e6)
        journal = JournalAddress(journal_id, nameservice_id, link, lease, namespace.namespace_id)
        remotes = [RemoteNode(host, port, journal) for host, port in nodes]
        self._names = tuple(remote.name for remote in remotes)
        self._window = Window(
            self._names,
            limit_bytes=self._settings.queued_edits_limit_bytes,
            timeout_seconds=self._settings.write_txns_timeout_seconds,
        )
        self._admission = LearnerAdmission(self._window, self._settings)
        self._channels = tuple(
            NodeChannel(
                remote,
                self._window,
                self._settings,
                sources=self._sources,
                admit=self._admission.take_on,
            )
            for remote in remotes
        )
        self._admission.channels = self._channels
        self.read_lease = ReadLease(self._names, self._settings.read_lease_seconds)
        self._heartbeats = Heartbeats(self._channels, self._settings, self.read_lease)
        self.epoch = model.NO_EPOCH
        """Our epoch; NO_EPOCH until ``become_writer`` has returned."""
        self._writes_open = 0
        self._death: QuorumLost | InvariantBroken | None = None
        self.upgrades = JournalUpgrades(self._channels, namespace, self._settings)
        self._background: set[asyncio.Task[None]] = set()
        self._writing: set[asyncio.Future[None]] = set()

    @property
    def committed(self) -> model.TxId:
        """The last txid that is known to be on a quorum."""
        return self._window.committed

    def node_statuses(self) -> tuple[ChannelStatus, ...]:
        """Return the status of each node, in the configured order."""
        return tuple(channel.status() for channel in self._channels)

    async def settle(self, *, timeout_seconds: float) -> None:
        """Give the slower nodes time to answer, before an orderly ``close``."""
        await asyncio.gather(*(purge.settle(c, timeout_seconds) for c in self._channels))

    async def close(self) -> None:
        """Close every connection.  The open segment is recovered by the next writer."""
        await self._heartbeats.stop()
        await self._admission.stop()
        self._window.close()
        for writing in self._writing:
            writing.cancel()
        await asyncio.gather(*(channel.close() for channel in self._channels))
        await asyncio.gather(*self._background)

    # ---- storage ----

    async def formatted(self) -> Mapping[model.NodeName, bool | JournalError]:
        """Return for each node whether the journal is formatted, or why it does not answer."""
        timeout = self._settings.operations_timeout_seconds
        return await ask_each(self._channels, lambda channel: channel.remote.is_formatted(timeout))

    async def format(self, *, force: bool = False) -> None:
        """Create the journal on every node; all must succeed.

        Raises:
            BadRequest: a node is formatted, and ``force`` is not given; nothing was changed.
            QuorumLost: a node failed.
        """
        if not force:
            purge.ensure_none_formatted(self._journal_id, await self.formatted())
        timeout = self._settings.operations_timeout_seconds
        await purge.format_all(self._channels, self._namespace, timeout, force=force)
        log.info("journal.formatted", nodes=self._names, journal=self._journal_id, force=force)

    # ---- becoming the writer ----

    async def become_writer(self, *, predecessor_gone_until: float = 0.0) -> Recovered:
        """Claim a new epoch, and recover the newest segment on a quorum.

        Until ``predecessor_gone_until``, on the loop's clock, no other writer can serve a read.  If
        that time is over when the epoch is won, the first segment is not started before the read
        leases of older writers have ended.
        """
        ensure(self.epoch == model.NO_EPOCH, "a writer wins one epoch in its life")
        states = await self._ask(
            "reading what was promised",
            lambda channel, timeout: channel.remote.journal_state(timeout),
            self._settings.get_journal_state_timeout_seconds,
        )
        epoch = next_epoch(promised_in(states), len(self._channels))
        if epoch is None:
            # One of the first nodes to answer has an absurd promise; the others may be a majority.
            # The answers are kept: at the next attempt only the node with that promise may answer.
            states = {**states, **good(await ask_each(self._channels, self._promise))}
            epoch = next_epoch(promised_in(states), len(self._channels))
        if epoch is None:
            epoch = model.Epoch(1 + min(promised_in(states)))  # refused by who promised far more
        claim = Claim(self._namespace, epoch)
        timeout = self._settings.new_epoch_timeout_seconds
        newest = await self._ask(f"claiming epoch {epoch}", claim.propose, timeout)
        await self._ask(f"confirming epoch {epoch}", claim.confirm, timeout)
        claim.ensure_distinct()
        self.epoch = epoch
        for channel in self._channels:
            channel.headers.epoch = epoch
        if asyncio.get_running_loop().time() >= predecessor_gone_until:
            self.read_lease.older_heard(newest.values())
        held = [r.last_segment_txid for r in newest.values() if r.HasField("last_segment_txid")]
        last = await self._recover(model.TxId(max(held))) if held else model.TxId(0)
        self._window.committed, self._window.next = last, model.TxId(last + 1)
        log.info("journal.writer", epoch=epoch, last_txid=last, answered=sorted(newest))
        return Recovered(epoch, last)

    async def _recover(self, first: model.TxId) -> model.TxId:
        replies = await self._ask(
            f"preparing the recovery of segment {first}",
            lambda channel, timeout: channel.remote.prepare_recovery(
                channel.headers.info(), first, timeout
            ),
            self._settings.prepare_recovery_timeout_seconds,
        )
        answers = {node: codec.answer_from_wire(reply) for node, reply in replies.items()}
        try:
            decision = choose(first, answers)
        except InvariantBroken as broken:
            self._death = broken
            raise
        log.info(
            "journal.recovery",
            first=first,
            decision=brief(decision),
            answers={node: brief(answer) for node, answer in answers.items()},
        )
        match decision:
            case Skip():
                # The segments before it were finalized on a quorum by its writer.
                return model.TxId(first - 1)
            case Copy():
                await self._adopt(decision, replies)
                return decision.segment.last

    async def _adopt(
        self, decision: Copy, replies: Mapping[model.NodeName, pb.PrepareRecoveryReply]
    ) -> None:
        segment = decision.segment
        remotes = {channel.name: channel.remote for channel in self._channels}
        urls = tuple(
            remotes[node].segment_url(
                replies[node].http_port, segment.first, self._namespace, in_progress=True
            )
            for node in decision.sources
        )
        await self._ask(
            f"accepting the recovery of segment {segment.first}-{segment.last}",
            lambda channel, timeout: channel.remote.accept_recovery(
                channel.headers.info(), segment, urls, timeout
            ),
            self._settings.accept_recovery_timeout_seconds,
        )
        await self._ask(
            f"finalizing the recovered segment {segment.first}-{segment.last}",
            lambda channel, timeout: channel.remote.finalize_segment(
                channel.headers.info(), segment, timeout
            ),
            self._settings.finalize_segment_timeout_seconds,
        )

    # ---- writing ----

    async def start_segment(self, first: model.TxId, *, layout_version: int | None = None) -> None:
        """Start a segment whose first edit is ``first``.

        Its header has ``layout_version``, or by default that of the namespace.
        """
        self._ensure_alive()
        window = self._window
        layout = self._namespace.edits_layout if layout_version is None else layout_version
        ensure(window.segment_first is None, f"segment {window.segment_first} is still open")
        ensure(
            first == window.next or window.next == 1,
            f"the journal goes on with transaction {window.next}, not with {first}",
        )
        await self.read_lease.outlast_older()
        await self._ask(
            f"starting segment {first}",
            lambda channel, timeout: channel.remote.start_segment(
                channel.headers.info(), first, layout, timeout
            ),
            self._settings.start_segment_timeout_seconds,
            starts=first,
        )
        window.open(first, layout)
        for channel in self._channels:
            channel.wake()
        self._heartbeats.start()

    async def write(self, first: model.TxId, count: int, records: bytes) -> None:
        """Write ``count`` framed edits from ``first`` on; return when a quorum has them on disk.

        The next write may be called before this one has returned; the order is kept.  Raises
        BadRequest if the edits exceed one message; the writer can be used after that.
        """
        done, ended = awaitable()
        self.begin(first, count, records, ended)
        self._writing.add(done)
        try:
            await done
        finally:
            self._writing.discard(done)

    def begin(self, first: model.TxId, count: int, records: bytes, ended: Ended) -> None:
        """Write without a task: ``ended`` is called with the result or error of ``write``.

        It is not called after the writer was closed.
        """
        self._ensure_alive()
        window = self._window
        if window.segment_first is None:
            raise InvariantBroken(f"transaction {first} is written, and no segment is open")
        ensure(
            first == window.next and count > 0,
            f"{count} edits from {first} on are written, and {window.next} is next",
        )
        last = model.TxId(first + count - 1)
        started, sent_at = time.perf_counter(), self.read_lease.clock()

        def known(failure: JournalError | None) -> None:
            self._writes_open -= 1
            if failure is None:
                self.read_lease.written(lambda: window.holders(last), sent_at)
                metrics.APPEND_SECONDS.observe(time.perf_counter() - started)
            elif isinstance(failure, QuorumLost | InvariantBroken):
                self._die(failure)
            ended(failure)

        self._writes_open += 1
        try:
            window.append(count, records, known)
        except JournalError:
            self._writes_open -= 1
            raise
        for channel in self._channels:
            channel.offer(len(records))

    async def _sources(self, wanting: model.NodeName, mark: SegmentEnd) -> Sequence[str]:
        """Return the URLs from which a node that lags behind can fetch the open segment."""
        holding = [c.remote for c in self._channels if c.name != wanting and c.acked >= mark.last]
        timeout = self._settings.operations_timeout_seconds
        return await serving(holding, mark.first, self._namespace, timeout)

    async def finalize_segment(self, last: model.TxId) -> None:
        """Finalize the open segment, which ends at ``last``."""
        self._ensure_alive()
        window = self._window
        first = window.segment_first
        if first is None:
            raise InvariantBroken(f"a segment is to be closed at {last}, and none is open")
        ensure(self._writes_open == 0, "a segment is closed after its writes have returned")
        ensure(last == window.next - 1, f"the segment ends at {window.next - 1}, not at {last}")
        segment = model.Segment(first, last, finalized=True, digest=window.digest)

        async def finalize(channel: NodeChannel, timeout: float) -> None:
            channel.ensure_in_sync()
            await channel.remote.finalize_segment(channel.headers.info(), segment, timeout)

        await self._ask(
            f"finalizing segment {first}-{last}",
            finalize,
            self._settings.finalize_segment_timeout_seconds,
        )
        window.finish()

    def purge_logs(self, minimum: model.TxId) -> None:
        """Request a purge of the segments that end before ``minimum``, without waiting for it."""
        self._ensure_alive()
        timeout = self._settings.operations_timeout_seconds
        task = asyncio.create_task(purge.purge(self._channels, minimum, timeout))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _promise(self, channel: NodeChannel) -> pb.GetJournalStateReply:
        timeout = self._settings.get_journal_state_timeout_seconds
        return await channel.remote.journal_state(timeout)

    async def _ask(
        self,
        operation: str,
        request: Callable[[NodeChannel, float], Awaitable[T]],
        timeout_seconds: float,
        *,
        starts: model.TxId | None = None,
    ) -> dict[model.NodeName, T]:
        self._ensure_alive()
        call: QuorumCall[T] = QuorumCall(operation, self._names, timeout_seconds=timeout_seconds)
        for channel in self._channels:
            perform = partial(request, channel, NODE_PATIENCE * timeout_seconds)
            channel.ask(call, perform, starts=starts)
        with metrics.QUORUM_SECONDS.labels(op=operation.split()[0]).time():
            return await self._outcome(call)

    async def _outcome(self, call: QuorumCall[T]) -> dict[model.NodeName, T]:
        try:
            return await call.outcome()
        except (QuorumLost, InvariantBroken) as death:
            self._die(death)
            raise

    def _die(self, death: QuorumLost | InvariantBroken) -> None:
        if self._death is None:
            self._death = death
            self.read_lease.end()
            # The caller decides what its end means; a traceback here would say nothing more.
            log.warning("journal.writer_lost", epoch=self.epoch, reason=str(death))

    def _ensure_alive(self) -> None:
        match self._death:
            case None:
                return
            case QuorumLost() as lost:
                raise QuorumLost(f"this writer has ended: {lost}", failures=lost.failures)
            case InvariantBroken() as broken:
                raise InvariantBroken(f"this writer has ended: {broken}")
