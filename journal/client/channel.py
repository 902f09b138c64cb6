"""One JournalNode as a writer sees it: stamped, ordered, bounded (qjm 4.3)."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio
import structlog

from journal.client import metrics, wire
from journal.client.call import QuorumCall, T
from journal.client.remote import RemoteNode, WriteStream, translated
from journal.client.settings import WriterSettings
from journal.errors import JournalError, OutOfSync, QuorumLost, Unavailable
from journal.model import NO_EPOCH, NO_TXID, Epoch, NodeName, TxId
from journal.proto import journal_pb2 as pb

log = structlog.get_logger()

NODE_PATIENCE: Final = 2
"""A single node gets this many times the quorum's deadline, because the quorum's is the one that
is aware of our own pauses."""


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """One node on a status page."""

    node: NodeName
    in_sync: bool
    acked_txid: TxId
    lag_transactions: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Edits on their way to one node."""

    segment_first: TxId
    first: TxId
    count: int
    records: bytes
    call: QuorumCall[None]


@dataclass(frozen=True, slots=True)
class _Ask:
    perform: Callable[[], Awaitable[Any]]
    call: QuorumCall[Any]
    starts_segment: bool


class NodeChannel:
    """Sends one node everything in the order in which the writer asked for it.

    A node that fails a batch has a hole; it is left out, but for a heartbeat, until the next
    segment starts (qjm 4.3).  At most one batch is under way; those that wait behind it are
    merged, so that a slow node catches up in few round trips and a quick one never waits.
    """

    def __init__(self, remote: RemoteNode, settings: WriterSettings) -> None:
        self.name = remote.name
        self.remote = remote
        self.epoch = NO_EPOCH
        self.committed: TxId | None = None
        self._settings = settings
        self._queue: deque[_Ask | Batch] = deque()
        self._queued_bytes = 0
        self._starts_queued = 0
        self._waiter: asyncio.Future[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._stream: WriteStream | None = None
        self._serial = 0
        self._acked = NO_TXID
        self._writing = False
        self._lost_because: JournalError | None = None
        self._last_error: str | None = None
        metrics.watch(
            self.name,
            self,
            lag=self._lag,
            in_sync=lambda: self.status().in_sync,
            queued_bytes=lambda: self._queued_bytes,
        )

    def status(self) -> ChannelStatus:
        """How this node fares."""
        return ChannelStatus(
            node=self.name,
            in_sync=self._writing and self._lost_because is None,
            acked_txid=self._acked,
            lag_transactions=self._lag(),
            last_error=self._last_error,
        )

    def info(self) -> pb.RequestInfo:
        """A header for the request that is sent next; its serial is taken now (qjm 4.3)."""
        serial = self._serial
        self._serial += 1
        return self.remote.request_info(Epoch(self.epoch), serial, self.committed)

    def ask(
        self, call: QuorumCall[T], perform: Callable[[], Awaitable[T]], *, starts: bool = False
    ) -> None:
        """Queue any call but a batch."""
        self._starts_queued += starts
        self._put(_Ask(perform, call, starts))

    def send(self, batch: Batch) -> None:
        """Queue a batch, or fail it at once if this node cannot take it."""
        if self._lost_because is not None and not self._starts_queued:
            batch.call.fail(self.name, self._disabled())
            return
        size, waiting = len(batch.records), self._queued_bytes
        if waiting and waiting + size > self._settings.queued_edits_limit_bytes:
            behind = Unavailable(f"too far behind: {waiting} bytes of edits wait for it")
            self._lose(behind)
            batch.call.fail(self.name, behind)
            return
        self._queued_bytes += size
        self._put(batch)

    def ensure_in_sync(self) -> None:
        """Raise OutOfSync while this node is left out."""
        if self._lost_because is not None:
            raise self._disabled()

    async def heartbeat(self) -> None:
        """Tell the node what is committed and that we are there; for use in ``ask``."""
        await self._exchange(pb.WriteRequest(info=self.info(), heartbeat=pb.Heartbeat()))

    async def settle(self, timeout_seconds: float) -> None:
        """Wait until everything queued so far is answered or failed, or time is up."""

        async def nothing() -> None:
            return

        call: QuorumCall[None] = QuorumCall(
            "settling", [self.name], timeout_seconds=timeout_seconds
        )
        self.ask(call, nothing)
        with suppress(QuorumLost):
            await call.outcome()

    async def close(self) -> None:
        """Stop sending; what waits is failed."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        self._drop_stream()
        self._fail_queued(Unavailable("the writer was closed"))
        await self.remote.close()
        metrics.forget(self.name, self)

    # ---- the pump: the only one that talks to the node ----

    def _put(self, item: _Ask | Batch) -> None:
        self._queue.append(item)
        if self._pump is not None and self._pump.done():
            self._fail_queued(Unavailable(f"this channel has ended: {self._last_error}"))
        elif self._pump is None:
            self._pump = asyncio.create_task(self._run(), name=f"journal {self.name}")
            self._pump.add_done_callback(self._stopped)
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _run(self) -> None:
        while True:
            if not self._queue:
                await self._idle()
                continue
            item = self._queue.popleft()
            if isinstance(item, _Ask):
                await self._perform(item)
            elif self._lost_because is not None:
                self._release([item])
                item.call.fail(self.name, self._disabled())
            else:
                await self._write(self._with_successors(item))

    async def _idle(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        if self._lost_because is None:
            await self._waiter
            return
        try:
            async with asyncio.timeout(self._settings.heartbeat_interval_seconds):
                await self._waiter
        except TimeoutError:
            await self._heartbeat()

    async def _perform(self, item: _Ask) -> None:
        try:
            result = await item.perform()
        except JournalError as error:
            if item.starts_segment:
                self._starts_queued -= 1
                self._lose(error)
            self._note(error)
            item.call.fail(self.name, error)
            return
        if item.starts_segment:
            self._starts_queued -= 1
            self._writing, self._lost_because, self._last_error = True, None, None
        item.call.succeed(self.name, result)

    def _with_successors(self, batch: Batch) -> list[Batch]:
        batches, size = [batch], len(batch.records)
        while self._queue and isinstance(following := self._queue[0], Batch):
            size += len(following.records)
            if size > self._settings.merged_write_limit_bytes:
                break
            batches.append(following)
            self._queue.popleft()
        return batches

    async def _write(self, batches: list[Batch]) -> None:
        head = batches[0]
        records = head.records if len(batches) == 1 else b"".join(b.records for b in batches)
        count = sum(batch.count for batch in batches)
        body = pb.Batch(
            segment_first_txid=head.segment_first,
            first_txid=head.first,
            count=count,
            records=records,
        )
        try:
            await self._exchange(pb.WriteRequest(info=self.info(), batch=body))
        except JournalError as error:
            self._release(batches)
            self._lose(error)
            for batch in batches:
                batch.call.fail(self.name, error)
            return
        self._release(batches)
        self._acked = TxId(head.first + count - 1)
        for batch in batches:
            batch.call.succeed(self.name, None)

    async def _heartbeat(self) -> None:
        try:
            await self.heartbeat()
        except JournalError as error:
            self._note(error)

    async def _exchange(self, request: pb.WriteRequest) -> None:
        """Send one request on the stream and wait for its reply."""
        deadline = NODE_PATIENCE * self._settings.write_txns_timeout_seconds
        try:
            async with asyncio.timeout(deadline):
                reply = await self._converse(request)
        except TimeoutError:
            self._drop_stream()
            raise Unavailable(f"no answer within {deadline:g} s") from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as failure:
            stream, self._stream = self._stream, None
            raise await _why_ended(stream, failure) from None
        if not isinstance(reply, pb.WriteReply) or reply.serial != request.info.serial:
            self._drop_stream()
            raise Unavailable("the stream of writes ended, or its replies do not match")
        if reply.HasField("refusal"):
            raise wire.refusal_to_error(reply.refusal)

    async def _converse(self, request: pb.WriteRequest) -> object:
        if self._stream is None or self._stream.done():
            # Nothing was under way on a stream that died idle, so this request is no repetition.
            self._stream = self.remote.open_write_stream()
        await self._stream.write(request)
        return await self._stream.read()

    # ---- small matters ----

    def _disabled(self) -> OutOfSync:
        return OutOfSync(f"left out until the next segment, because: {self._lost_because}")

    def _lose(self, error: JournalError) -> None:
        if self._lost_because is None:
            log.warning("journal.node_lost", node=self.name, reason=str(error), acked=self._acked)
        self._lost_because = self._lost_because or error
        self._note(error)

    def _note(self, error: JournalError) -> None:
        self._last_error = str(error)

    def _release(self, batches: list[Batch]) -> None:
        self._queued_bytes -= sum(len(batch.records) for batch in batches)

    def _drop_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    def _fail_queued(self, error: JournalError) -> None:
        while self._queue:
            item = self._queue.popleft()
            if isinstance(item, Batch):
                self._release([item])
            item.call.fail(self.name, error)

    def _stopped(self, pump: asyncio.Task[None]) -> None:
        if pump.cancelled() or (bug := pump.exception()) is None:
            return
        log.error("journal.channel_crashed", node=self.name, exc_info=bug)
        crashed = Unavailable(f"the channel crashed: {bug!r}")
        self._lose(crashed)
        self._fail_queued(crashed)

    def _lag(self) -> int:
        return max(0, (self.committed or 0) - max(self._acked, 0))


async def _why_ended(
    stream: WriteStream | None, failure: grpc.aio.AioRpcError | asyncio.InvalidStateError
) -> JournalError:
    if isinstance(failure, grpc.aio.AioRpcError):
        return translated(failure)
    # "RPC already finished": the reason lies with the call.
    if stream is None or not stream.done():
        return Unavailable("the stream of writes ended")
    return wire.rpc_error(
        await stream.code(), await stream.details(), await stream.trailing_metadata()
    )
