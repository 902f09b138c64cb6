"""One JournalNode as a writer sees it: docs/reference/quorum-journal.md#channels."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from journal.errors import JournalError, NotAdmitted, OutOfSync, StorageFailed, Unavailable
from journal.links import metrics
from journal.links.quorum_call import QuorumCall, T
from journal.links.remote_node import RemoteNode
from journal.links.settings import NODE_PATIENCE, WriterSettings
from journal.model import NO_EPOCH, NO_TXID, Epoch, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.batch_stream import WriteLine
from journal.writer.channel_status import ChannelStatus
from journal.writer.rejoin import Sources, rejoin, reopen
from journal.writer.window import Window

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ask:
    """A call in its place between the batches: its turn comes when ``after`` is next."""

    perform: Callable[[], Awaitable[Any]]
    call: QuorumCall[Any]
    after: TxId
    starts: TxId | None


class NodeChannel:
    """Sends one node everything in the order in which the writer asked for it.

    A cursor into the writer's window: one message is under way, and what was written meanwhile
    goes into the next, so that a slow node catches up in few round trips and a quick one never
    waits.  A node that fails a message is lost; it is asked again and again to take part in the
    segment that is open, and is sent what it lacks.
    """

    def __init__(
        self,
        remote: RemoteNode,
        window: Window,
        settings: WriterSettings,
        *,
        sources: Sources,
        admit: "Callable[[NodeChannel], None]",
    ) -> None:
        self.name = remote.name
        self.remote = remote
        self.epoch = NO_EPOCH
        self._window = window
        self._settings = settings
        self._sources = sources
        self._admit = admit
        self._line = WriteLine(remote, NODE_PATIENCE * settings.write_txns_timeout_seconds)
        self._asks: deque[_Ask] = deque()
        self._starts_queued = 0
        self._waiter: asyncio.Future[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._rejoining: asyncio.Task[TxId] | None = None
        self._reconnected: asyncio.Task[None] | None = None
        self._retry_at = 0.0
        self._serial = 0
        self._next = TxId(0)
        self._seq = 0
        self._acked = NO_TXID
        self._writing = False
        self._learner: str | None = None
        self._catching_up_to = NO_TXID
        self._lost_because: JournalError | None = None
        self._last_error: str | None = None
        metrics.watch(
            self.name,
            self,
            lag=self._lag,
            in_sync=lambda: self.in_sync,
            queued_bytes=lambda: window.queued_bytes(self.name),
        )

    @property
    def takes_part(self) -> bool:
        """Whether this node is sent what is written."""
        return self._writing and self._lost_because is None

    @property
    def has_caught_up(self) -> bool:
        """Whether it takes part, and had once what the others had."""
        return self.takes_part and self._acked >= self._catching_up_to

    @property
    def in_sync(self) -> bool:
        """Whether this node takes part, has what the others have, and counts."""
        return self.has_caught_up and self._learner is None

    @property
    def learner(self) -> str | None:
        """The incarnation that waits to be admitted, if this node is a learner."""
        return self._learner

    @property
    def acked(self) -> TxId:
        """The last edit that this node has confirmed."""
        return self._acked

    def status(self) -> ChannelStatus:
        return ChannelStatus(
            node=self.name,
            in_sync=self.in_sync,
            acked_txid=self._acked,
            lag_transactions=self._lag(),
            last_error=self._last_error,
            queued_bytes=self._window.queued_bytes(self.name),
            learner=self._learner is not None or isinstance(self._lost_because, NotAdmitted),
        )

    def admitted(self) -> None:
        """The node counts from here on, with all that it has."""
        log.info("journal.node_admitted", node=self.name, acked=self._acked)
        self._learner = self._last_error = None
        self._window.admitted(self.name, self._acked)

    def info(self) -> pb.RequestInfo:
        """A header for the request that is sent next; its serial is taken now."""
        serial = self._serial
        self._serial += 1
        return self.remote.request_info(Epoch(self.epoch), serial, self._window.committed or None)

    def ask(
        self,
        call: QuorumCall[T],
        perform: Callable[[], Awaitable[T]],
        *,
        starts: TxId | None = None,
    ) -> None:
        """Queue any call but a batch.  ``starts`` is the segment that it begins, if it does."""
        if self._pump is not None and self._pump.done():
            call.fail(self.name, Unavailable(f"this channel has ended: {self._last_error}"))
            return
        if starts is not None:
            if not self._starts_queued and not self.takes_part:
                # From here on it is behind, not lost: what is written waits for it.
                self._window.takes_part(self.name, self._window.end_seq)
            self._starts_queued += 1
            if self._rejoining is not None:
                self._rejoining.cancel()  # of a segment that is over
        self._asks.append(_Ask(perform, call, self._window.next, starts))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run(), name=f"journal {self.name}")
            self._pump.add_done_callback(self._stopped)
        self.wake()

    def offer(self, size: int) -> None:
        """A batch of so many bytes was written; this node gets it, or is too far behind."""
        if self._window.is_full and self._window.too_far_behind(self.name, size):
            waiting = self._window.queued_bytes(self.name) - size
            self._lose(Unavailable(f"too far behind: {waiting} bytes of edits wait for it"))
        elif self._lost_because is None:
            waiter = self._waiter
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def wake(self) -> None:
        """Something has changed that this channel may have waited for."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def ensure_in_sync(self) -> None:
        """Raise OutOfSync while this node is left out."""
        if self._lost_because is not None:
            raise OutOfSync(f"left out of the segment, because: {self._lost_because}")

    async def heartbeat(self) -> None:
        """Tell what is committed, and let who came back open the segment; for use in ``ask``."""
        await self._line.exchange(pb.WriteRequest(info=self.info(), heartbeat=pb.Heartbeat()))
        first, idle = self._window.segment_first, not self._window.holds(self._seq)
        if self.takes_part and idle and first is not None and not self._line.unbroken:
            try:
                await self._reopen(first)
            except (OutOfSync, StorageFailed) as error:
                self._lose(error)

    async def close(self) -> None:
        """Stop sending; what waits is failed."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        self._forget_connection()
        self._line.drop()
        self._fail_asks(Unavailable("the writer was closed"))
        await self.remote.close()
        metrics.forget(self.name, self)

    # ---- the pump: the only one that talks to the node ----

    async def _run(self) -> None:
        while True:
            if self._asks and self._is_due(self._asks[0]):
                await self._perform(self._asks.popleft())
            elif self._lost_because is not None:
                await self._while_lost()
            elif self._writing and self._window.holds(self._seq):
                await self._write()
            else:
                await self._sleep(None)

    def _is_due(self, ask: _Ask) -> bool:
        return not self._writing or self._lost_because is not None or ask.after <= self._next

    async def _sleep(self, seconds: float | None) -> bool:
        """Until somebody wakes us; False if the time was up before."""
        self._waiter = asyncio.get_running_loop().create_future()
        if seconds is None:
            await self._waiter
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._waiter
        except TimeoutError:
            return False
        return True

    async def _perform(self, ask: _Ask) -> None:
        try:
            result = await ask.perform()
        except JournalError as error:
            if ask.starts is not None:
                self._starts_queued -= 1
            if ask.starts is not None or self._forgot_us(error):
                self._lose(error)
            self._note(error)
            ask.call.fail(self.name, error)
            return
        if ask.starts is not None:
            self._starts_queued -= 1
            self._writing, self._lost_because, self._last_error = True, None, None
            self._learner = None  # it would have refused
            self._next, self._seq = ask.starts, self._window.seq_at(ask.starts)
            self._catching_up_to = NO_TXID
            self._line.begin()
        ask.call.succeed(self.name, result)

    def _forgot_us(self, error: JournalError) -> bool:
        """Whether a node that counted says that it does not: its disk was wiped meanwhile."""
        return isinstance(error, NotAdmitted) and self._learner is None and self.takes_part

    async def _write(self) -> None:
        limit = self._settings.merged_write_limit_bytes
        message = self._window.message(self._seq, self._next, limit)
        body = pb.Batch(
            segment_first_txid=message.segment_first,
            first_txid=message.first,
            count=message.last - message.first + 1,
            records=message.records,
        )
        try:
            if not self._line.unbroken:
                await self._reopen(message.segment_first)
            await self._line.exchange(pb.WriteRequest(info=self.info(), batch=body))
        except JournalError as error:
            self._lose(error)
            return
        self._seq, self._next = message.seq, TxId(message.last + 1)
        self._acked = message.last
        self._window.acked(self.name, message.last, message.seq)

    async def _reopen(self, first: TxId) -> None:
        settings, layout = self._settings, self._window.layout_version
        await reopen(
            self.remote, first, self._next, layout, self.info, settings, learner=self._learner
        )
        self._line.begin()

    # ---- a node that is lost ----

    async def _while_lost(self) -> None:
        interval = self._settings.heartbeat_interval_seconds
        if self._window.segment_first is None:
            if not await self._sleep(interval):
                await self._heartbeat()
            return
        loop = asyncio.get_running_loop()
        wait = self._retry_at - loop.time()
        if wait > 0:
            self._watch_connection()
            await self._sleep(wait)
            return
        self._retry_at = loop.time() + interval
        await self._try_to_rejoin()

    async def _try_to_rejoin(self) -> None:
        attempt = asyncio.create_task(
            rejoin(
                self.remote,
                self._window,
                self.info,
                lambda mark: self._sources(self.name, mark),
                self._settings,
            )
        )
        self._rejoining = attempt
        try:
            await asyncio.wait([attempt])
        finally:
            self._rejoining = None
            attempt.cancel()
        if attempt.cancelled():
            return
        failure = attempt.exception()
        if isinstance(failure, JournalError):
            self._note(failure)
        elif failure is not None:
            raise failure
        else:
            self._take_up(attempt.result())

    def _take_up(self, following: TxId) -> None:
        """The node has everything before this edit, and waits for it."""
        self._forget_connection()
        window = self._window
        self._next, self._seq = following, window.seq_at(following)
        self._writing, self._lost_because, self._last_error = True, None, None
        before = TxId(following - 1)
        self._acked = before if following != window.segment_first else min(self._acked, before)
        self._catching_up_to = TxId(window.next - 1) if following < window.next else NO_TXID
        self._learner = self.remote.learner
        self._line.begin()
        why = None if self._learner is None else NotAdmitted("it is a learner, and has no vote")
        window.takes_part(self.name, self._seq, learner=why)
        window.acked(self.name, self._acked, self._seq)
        if why is not None:
            self._note(why)
            self._admit(self)
        log.info(
            "journal.node_rejoined",
            node=self.name,
            segment=window.segment_first,
            next=following,
            behind=window.next - following,
            learner=self._learner,
        )

    async def _heartbeat(self) -> None:
        try:
            await self.heartbeat()
        except JournalError as error:
            self._note(error)

    def _watch_connection(self) -> None:
        """Ask again at once when a node that could not be reached can be."""
        if self._reconnected is None:
            self._reconnected = asyncio.create_task(self.remote.wait_until_reconnected())
            self._reconnected.add_done_callback(self._connection_changed)

    def _connection_changed(self, watch: asyncio.Task[None]) -> None:
        self._reconnected = None
        if not watch.cancelled() and watch.exception() is None:
            self._retry_at = 0.0
            self.wake()

    def _forget_connection(self) -> None:
        if self._reconnected is not None:
            self._reconnected.cancel()

    # ---- small matters ----

    def _lose(self, error: JournalError) -> None:
        if self._lost_because is None:
            log.warning("journal.node_lost", node=self.name, reason=str(error), acked=self._acked)
            self._retry_at = 0.0
        self._lost_because = self._lost_because or error
        self._note(error)
        if not self._starts_queued:
            self._window.failed(self.name, error)
        self.wake()

    def _note(self, error: JournalError) -> None:
        self._last_error = str(error)

    def _fail_asks(self, error: JournalError) -> None:
        while self._asks:
            self._asks.popleft().call.fail(self.name, error)

    def _stopped(self, pump: asyncio.Task[None]) -> None:
        if pump.cancelled() or (bug := pump.exception()) is None:
            return
        log.error("journal.channel_crashed", node=self.name, exc_info=bug)
        crashed = Unavailable(f"the channel crashed: {bug!r}")
        self._starts_queued = 0
        self._lose(crashed)
        self._fail_asks(crashed)

    def _lag(self) -> int:
        return max(0, self._window.committed - max(self._acked, 0))
