"""Sends batches and heartbeats to one node, one at a time, and awaits the reply of each.

They go over a lane or a stream, never both: docs/reference/quorum-journal.md#write-lanes.
"""

import asyncio
from typing import Final, Literal

import grpc
import grpc.aio
import structlog

from ha.security.own_tls import own_tls
from journal.errors import JournalError, Unavailable
from journal.lane import Offer
from journal.links import codec
from journal.links.grpc_link import translate
from journal.links.lane_client import Done, Lane
from journal.links.link import WriterMessage, WriteStream
from journal.links.remote_node import RemoteNode
from journal.model import NO_EPOCH
from journal.proto import journal_pb2 as pb
from journal.refusals import error_of
from journal.writer.window import Message, Window

log = structlog.get_logger()

Via = Literal["lane", "stream", "none"]
LANE: Final = "lane"


class RequestHeaders:
    """Builds the headers of requests to one node: epoch, committed txid, and rising serials.

    A serial is taken when the request is sent, since the node refuses another order.
    """

    def __init__(self, remote: RemoteNode, window: Window) -> None:
        self.epoch = NO_EPOCH
        self._remote = remote
        self._window = window
        self._serial = -1

    def info(self) -> pb.RequestInfo:
        """Return the header of the next request."""
        self._serial += 1
        return self._remote.request_info(self.epoch, self._serial, self._window.committed or None)

    def message(self, edits: Message | None) -> WriterMessage:
        """Return the next batch or, without edits, a heartbeat."""
        self._serial += 1
        committed, lease = self._window.committed or None, self._remote.read_lease_micros
        if edits is None:
            return WriterMessage(self._serial, self.epoch, committed, lease)
        count = edits.last - edits.first + 1
        return WriterMessage(
            self._serial, self.epoch, committed, lease,
            edits.segment_first, edits.first, count, edits.records,
        )  # fmt: skip


class BatchSender:
    """Opens a lane or a stream when it is first needed, and again after each failure.

    Each offer of a lane by the node is tried once: after the node has opened the segment or, with
    certificates, while a message after the first edits is under way.  Without a lane the stream is
    used.
    """

    def __init__(self, remote: RemoteNode, deadline_seconds: float) -> None:
        self._remote = remote
        self._deadline_seconds = deadline_seconds
        self._stream: WriteStream | None = None
        self._lane: Lane | None = None
        self._opening: asyncio.Task[Lane | None] | None = None
        self._ended: Lane | None = None
        self._tried: Offer | None = None
        self._told = False
        self._unbroken = False
        self._written = False

    def prepare(self) -> None:
        """Open a stream while a segment is opened, if it is to carry the first edits.

        Call it after that request was sent, which may have made a new connection.
        """
        if own_tls() is not None and self._lane is None and self._stream is None:
            self._stream = self._remote.open_write_stream()

    def begin(self) -> None:
        """Start again after the node has opened the segment."""
        stream_ended = self._stream is not None and self._stream.done()
        if stream_ended or self._offer_to_wait_for() is not None:
            self._leave_the_stream()
        if self._lane is not None and self._lane.closed:
            self._forget_lane()
            self._tried = None  # what has ended a lane may have been the network
        self._unbroken = True

    @property
    def unbroken(self) -> bool:
        """Whether no lane or stream has ended since ``begin``, as at a restart of the node."""
        if not self._unbroken or (self._lane is not None and self._lane.closed):
            return False
        return self._stream is None or not self._stream.done()

    @property
    def ready(self) -> bool:
        """Whether a message can be pushed: a lane is open, and no message is under way."""
        return self._unbroken and self._lane is not None and self._lane.idle

    @property
    def via(self) -> Via:
        """What carries messages now: a lane, a stream or none."""
        if self._lane is not None and not self._lane.closed:
            return LANE
        return "none" if self._stream is None or self._stream.done() else "stream"

    def push(self, message: WriterMessage, done: Done) -> None:
        """Send a message over the ``ready`` lane in this turn of the event loop."""
        assert self._lane is not None
        self._lane.send(message, done)

    async def exchange(self, message: WriterMessage) -> None:
        """Send one request and wait for its reply.

        Raises:
            Rejected, StorageFailed, InvariantBroken: the node refused it.
            Unavailable: no answer; whether the node acted is unknown.
        """
        lane = await self._usable_lane()
        if lane is not None:
            await lane.exchange(message)
            return
        if self._written and own_tls() is not None:
            self._open_beside()
        info = self._remote.request_info(message.epoch, message.serial, message.committed)
        reply = await self._over_the_stream(message.stream_request(info))
        if not isinstance(reply, pb.WriteReply) or reply.serial != message.serial:
            self.drop()
            raise Unavailable("the stream of writes ended, or its replies do not match")
        if reply.HasField("refusal"):
            raise error_of(reply.refusal)
        self._written = self._written or message.count > 0

    def drop(self) -> None:
        """Close lane and stream; the next request opens one of them."""
        self._unbroken = False
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None
        if self._lane is not None:
            self._lane.drop()
        self._drop_what_opens()

    def _drop_what_opens(self) -> None:
        opening, self._opening = self._opening, None
        if opening is None:
            return
        self._tried = None
        if not opening.cancel() and not opening.cancelled() and (lane := opening.result()):
            lane.drop()

    def _forget_lane(self) -> None:
        self._ended, self._lane, self._unbroken = self._lane, None, False

    def _fresh_offer(self) -> Offer | None:
        """Return the lane that the node has offered since we last tried one, or None."""
        offer = self._remote.lanes
        return None if offer is self._tried else offer

    def _offer_to_wait_for(self) -> Offer | None:
        """Return the offer of a lane to open before the next message; None with certificates.

        With certificates three handshakes would delay the first edits, for which a takeover waits.
        """
        return self._fresh_offer() if own_tls() is None else None

    async def _usable_lane(self) -> Lane | None:
        if self._lane is not None and self._lane.closed:
            self._forget_lane()
        if self._ended is not None:
            await self._ended.wait_closed()
            self._ended = None
        if self._lane is None and self.unbroken:
            if self._opening is not None and self._opening.done():
                self._take_up(self._opening.result())
            elif self._stream is None and (offer := self._offer_to_wait_for()):
                self._lane = await self._open(offer)
        return self._lane

    def _open_beside(self) -> None:
        """Start to open a lane for the messages after the present one."""
        if self._opening is None and (offer := self._fresh_offer()):
            self._opening = asyncio.create_task(self._open(offer), name="open a write lane")

    def _take_up(self, opened: Lane | None) -> None:
        """Use the lane that was opened during the last message, if it has not ended since."""
        self._opening = None
        if opened is not None and not opened.closed:
            self._leave_the_stream()
            self._lane = opened

    def _leave_the_stream(self) -> None:
        """Close the idle stream, because a lane is used only without a stream."""
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    async def _open(self, offer: Offer) -> Lane | None:
        self._tried = offer
        try:
            lane = await self._remote.open_lane(offer, self._deadline_seconds)
        except Unavailable as failure:
            if not self._told:
                log.warning(
                    "journal.lane_unavailable",
                    node=self._remote.name,
                    port=offer.port,
                    because=str(failure),
                )
            self._told = True
            return None
        self._told = False
        return lane

    async def _over_the_stream(self, request: pb.WriteRequest) -> object:
        deadline = self._deadline_seconds
        try:
            async with asyncio.timeout(deadline):
                return await self._converse(request)
        except TimeoutError:
            self.drop()
            raise Unavailable(f"no answer within {deadline:g} s") from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as failure:
            stream, self._stream, self._unbroken = self._stream, None, False
            raise await _why_ended(stream, failure) from None
        except grpc.aio.UsageError as failure:
            raise Unavailable(f"the connection is closed: {failure}") from None

    async def _converse(self, request: pb.WriteRequest) -> object:
        if self._stream is None or self._stream.done():
            self._unbroken = self._unbroken and self._stream is None
            # The stream ended while idle, so this request was not sent before.
            self._stream = self._remote.open_write_stream()
        await self._stream.write(request)
        return await self._stream.read()


async def _why_ended(
    stream: WriteStream | None, failure: grpc.aio.AioRpcError | asyncio.InvalidStateError
) -> JournalError:
    if isinstance(failure, grpc.aio.AioRpcError):
        return translate(failure)
    # "RPC already finished": the reason lies with the call.
    if stream is None or not stream.done():
        return Unavailable("the stream of writes ended")
    return codec.rpc_error(
        await stream.code(), await stream.details(), await stream.trailing_metadata()
    )
