"""Sends a writer's requests to one JournalNode: docs/reference/quorum-journal.md#channels."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import structlog

from ha.record import dataclass
from journal.errors import JournalError, NotAdmitted, OutOfSync, StorageFailed, Unavailable
from journal.links import metrics
from journal.links.quorum_call import QuorumCall, T
from journal.links.remote_node import RemoteNode
from journal.links.settings import NODE_PATIENCE, WriterSettings
from journal.model import NO_TXID, TxId
from journal.writer.batch_stream import BatchSender, RequestHeaders
from journal.writer.channel_status import ChannelStatus
from journal.writer.rejoin import Reconnection, Sources, ensure_kept, rejoin, reopen
from journal.writer.window import Message, Window

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ask:
    """A call in the queue of batches; it is sent when batch ``after`` is the next one.

    ``starts`` is the segment that it begins, if any.
    """

    perform: Callable[[], Awaitable[Any]]
    call: QuorumCall[Any]
    after: TxId
    starts: TxId | None


class NodeChannel:
    """Sends all calls and batches of a writer to one node in order.

    One message is under way at a time.  The edits that are written until its reply go into the next
    message, so that a slow node catches up in few round trips.  A node that fails a message is
    lost; the channel then tries to let it rejoin, and sends it the edits that it lacks.
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
        self.headers = RequestHeaders(remote, window)
        self._window = window
        self._settings = settings
        self._sources = partial(sources, remote.name)
        self._admit = admit
        self.line = BatchSender(remote, NODE_PATIENCE * settings.write_txns_timeout_seconds)
        self._asks: deque[_Ask] = deque()
        self._starts_queued = 0
        self._waiter: asyncio.Future[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._rejoining: asyncio.Task[TxId] | None = None
        self._reconnection = Reconnection(remote, self._reconnected)
        self._pushed: Message | None = None
        self._retry_at = 0.0
        self._next = TxId(0)
        self._seq = 0
        self.acked = NO_TXID
        """The last edit that this node has acknowledged."""
        self._writing = False
        self.learner: str | None = None
        """The incarnation that waits to be admitted, if this node is a learner."""
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
        """Whether this node is sent new edits."""
        return self._writing and self._lost_because is None

    @property
    def has_caught_up(self) -> bool:
        """Whether this node takes part, and had all edits at some time since it does."""
        return self.takes_part and self.acked >= self._catching_up_to

    @property
    def in_sync(self) -> bool:
        """Whether this node takes part, has all edits, and is no learner."""
        return self.has_caught_up and self.learner is None

    def status(self) -> ChannelStatus:
        return ChannelStatus(
            node=self.name,
            in_sync=self.in_sync,
            acked_txid=self.acked,
            lag_transactions=self._lag(),
            last_error=self._last_error,
            queued_bytes=self._window.queued_bytes(self.name),
            learner=self.learner is not None or isinstance(self._lost_because, NotAdmitted),
            via=self.line.via,
        )

    def admitted(self) -> None:
        """Count this node's acknowledgements from now on, including earlier ones."""
        log.info("journal.node_admitted", node=self.name, acked=self.acked)
        self.learner = self._last_error = None
        self._window.admitted(self.name, self.acked)

    def ask(
        self,
        call: QuorumCall[T],
        perform: Callable[[], Awaitable[T]],
        *,
        starts: TxId | None = None,
    ) -> None:
        """Queue a call that is no batch; ``starts`` is the segment that it begins, if any."""
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
        """Send a new batch of ``size`` bytes, or drop the node if it is too far behind."""
        if self._window.is_full and self._window.too_far_behind(self.name, size):
            waiting = self._window.queued_bytes(self.name) - size
            self._lose(Unavailable(f"too far behind: {waiting} bytes of edits wait for it"))
        elif self._lost_because is None:
            if self._can_push():
                self._push()
            else:
                self.wake()

    def wake(self) -> None:
        """Something has changed that this channel may have waited for."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def ensure_in_sync(self) -> None:
        """Raise OutOfSync if this node does not take part or lacks edits."""
        if self._lost_because is not None:
            raise OutOfSync(f"left out of the segment, because: {self._lost_because}")

    async def heartbeat(self) -> None:
        """Send the committed txid; let a restarted node open the segment again; for ``ask``."""
        await self.line.exchange(self.headers.message(None))
        first, idle = self._window.segment_first, not self._window.holds(self._seq)
        if self.takes_part and idle and first is not None and not self.line.unbroken:
            try:
                await self._reopen(first)
            except (OutOfSync, StorageFailed) as error:
                self._lose(error)

    async def close(self) -> None:
        """Stop sending, and fail all queued calls."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        self._reconnection.forget()
        self.line.drop()
        self._fail_asks(Unavailable("the writer was closed"))
        await self.remote.close()
        metrics.forget(self.name, self)

    # ---- without the pump: while it sleeps, and a lane carries the batches ----

    def _can_push(self) -> bool:
        return (
            self.line.ready
            and not self._asks
            and self.takes_part
            and self._window.holds(self._seq)
            and self._waiter is not None
            and not self._waiter.done()
        )

    def _push(self) -> None:
        """Send the next message in this turn of the event loop, without waking the task."""
        self._pushed = message = self._next_message()
        self.line.push(self.headers.message(message), self._answered)

    def _answered(self, error: JournalError | None) -> None:
        """Handle the reply to a pushed message: it is durable on the node, or the node is lost."""
        message, self._pushed = self._pushed, None
        if error is not None or message is None:
            self._lose(error or Unavailable("nothing was under way"))
            return
        self._written(message)
        if self._can_push():
            self._push()
        elif self._asks or self._lost_because is not None or self._window.holds(self._seq):
            self.wake()

    # ---- the pump: nothing else talks to the node while it is awake ----

    async def _run(self) -> None:
        while True:
            if self._pushed is not None:
                await self._sleep(None)
            elif self._asks and self._is_due(self._asks[0]):
                await self._perform(self._asks[0])  # which fails if this task ends in it
                self._asks.popleft()
            elif self._lost_because is not None:
                await self._while_lost()
            elif self._writing and self._window.holds(self._seq):
                await self._write()
            else:
                await self._sleep(None)

    def _is_due(self, ask: _Ask) -> bool:
        return not self._writing or self._lost_because is not None or ask.after <= self._next

    async def _sleep(self, seconds: float | None) -> bool:
        """Wait for ``wake``; return False if it was not called within ``seconds``."""
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
        if ask.starts is not None:
            asyncio.get_running_loop().call_soon(self.line.prepare)  # once the request is sent
        try:
            result = await ask.perform()
        except JournalError as error:
            if ask.starts is not None:
                self._starts_queued -= 1
            if ask.starts is not None or self._forgot_us(error):
                self._lose(error)
            self._last_error = str(error)
            ask.call.fail(self.name, error)
            return
        if ask.starts is not None:
            self._starts_queued -= 1
            self._writing, self._lost_because, self._last_error = True, None, None
            self.learner = None  # it would have refused
            self._next, self._seq = ask.starts, self._window.seq_at(ask.starts)
            self._catching_up_to = NO_TXID
            self.line.begin()
        ask.call.succeed(self.name, result)

    def _forgot_us(self, error: JournalError) -> bool:
        """Return whether a voter answers that it has no vote, because its disk was wiped."""
        return isinstance(error, NotAdmitted) and self.learner is None and self.takes_part

    async def _write(self) -> None:
        message = self._next_message()
        try:
            if not self.line.unbroken:
                await self._reopen(message.segment_first)
            await self.line.exchange(self.headers.message(message))
        except JournalError as error:
            self._lose(error)
            return
        self._written(message)

    def _next_message(self) -> Message:
        limit = self._settings.merged_write_limit_bytes
        return self._window.message(self._seq, self._next, limit)

    def _written(self, message: Message) -> None:
        self._seq, self._next = message.seq, TxId(message.last + 1)
        self.acked = message.last
        self._window.acked(self.name, message.last, message.seq)

    async def _reopen(self, first: TxId) -> None:
        await reopen(
            self.remote, first, self._next, self._window.layout_version, self.headers.info,
            self._settings, learner=self.learner,
        )  # fmt: skip
        self.line.begin()

    # ---- a node that is lost ----

    async def _while_lost(self) -> None:
        interval = self._settings.heartbeat_interval_seconds
        if self._window.segment_first is None:
            if not await self._sleep(interval):
                try:
                    await self.heartbeat()
                except JournalError as error:
                    self._last_error = str(error)
            return
        loop = asyncio.get_running_loop()
        wait = self._retry_at - loop.time()
        if wait > 0:
            self._reconnection.watch()
            await self._sleep(wait)
            return
        self._retry_at = loop.time() + interval
        await self._try_to_rejoin()

    async def _try_to_rejoin(self) -> None:
        attempt = asyncio.create_task(
            rejoin(self.remote, self._window, self.headers.info, self._sources, self._settings)
        )
        self._rejoining = attempt
        try:
            await asyncio.wait([attempt])
        finally:
            self._rejoining = None
            attempt.cancel()
        if attempt.cancelled():
            return
        try:
            following = attempt.result()
            # Only now: what was written since the attempt may have displaced what the node needs.
            ensure_kept(self._window, following)
        except JournalError as failure:
            self._last_error = str(failure)
        else:
            self._take_up(following)

    def _take_up(self, following: TxId) -> None:
        """Let a node take part that has all edits before this one."""
        self._reconnection.forget()
        window = self._window
        self._next, self._seq = following, window.seq_at(following)
        self._writing, self._lost_because, self._last_error = True, None, None
        before, none_yet = TxId(following - 1), following == window.segment_first
        self.acked = min(self.acked, before) if none_yet else before
        self._catching_up_to = TxId(window.next - 1) if following < window.next else NO_TXID
        self.learner = self.remote.learner
        self.line.begin()
        why = None if self.learner is None else NotAdmitted("it is a learner, and has no vote")
        window.takes_part(self.name, self._seq, learner=why)
        window.acked(self.name, self.acked, self._seq)
        if why is not None:
            self._last_error = str(why)
            self._admit(self)
        log.info(
            "journal.node_rejoined",
            node=self.name,
            segment=window.segment_first,
            next=following,
            behind=window.next - following,
            learner=self.learner,
        )

    def _reconnected(self) -> None:
        self._retry_at = 0.0
        self.wake()

    def _lose(self, error: JournalError) -> None:
        if self._lost_because is None:
            log.warning("journal.node_lost", node=self.name, reason=str(error), acked=self.acked)
            self._retry_at = 0.0
        self._lost_because = self._lost_because or error
        self._last_error = str(error)
        if not self._starts_queued:
            self._window.failed(self.name, error)
        self.wake()

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
        return max(0, self._window.committed - max(self.acked, 0))
