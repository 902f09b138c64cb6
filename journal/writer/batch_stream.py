"""The stream of batches and heartbeats to one node: one request under way, one reply for each."""

import asyncio

import grpc
import grpc.aio

from journal.errors import JournalError, Unavailable
from journal.links import codec
from journal.links.grpc_link import translated
from journal.links.link import WriteStream
from journal.links.remote_node import RemoteNode
from journal.proto import journal_pb2 as pb
from journal.refusals import error_of


class WriteLine:
    """Opened when it is first needed, and anew after each failure."""

    def __init__(self, remote: RemoteNode, deadline_seconds: float) -> None:
        self._remote = remote
        self._deadline_seconds = deadline_seconds
        self._stream: WriteStream | None = None
        self._unbroken = False

    def begin(self) -> None:
        """The node has the segment open now, whatever became of the last stream to it."""
        if self._stream is not None and self._stream.done():
            self._stream = None
        self._unbroken = True

    @property
    def unbroken(self) -> bool:
        """Whether no stream has ended since then: else the node may have restarted meanwhile."""
        return self._unbroken and not (self._stream is not None and self._stream.done())

    async def exchange(self, request: pb.WriteRequest) -> None:
        """Send one request and wait for its reply.

        Raises:
            Rejected, StorageFailed, InvariantBroken: the node's no.
            Unavailable: no answer; whether the node acted is unknown.
        """
        deadline = self._deadline_seconds
        try:
            async with asyncio.timeout(deadline):
                reply = await self._converse(request)
        except TimeoutError:
            self.drop()
            raise Unavailable(f"no answer within {deadline:g} s") from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as failure:
            stream, self._stream, self._unbroken = self._stream, None, False
            raise await _why_ended(stream, failure) from None
        except grpc.aio.UsageError as failure:
            raise Unavailable(f"the connection is closed: {failure}") from None
        if not isinstance(reply, pb.WriteReply) or reply.serial != request.info.serial:
            self.drop()
            raise Unavailable("the stream of writes ended, or its replies do not match")
        if reply.HasField("refusal"):
            raise error_of(reply.refusal)

    def drop(self) -> None:
        """End the stream; the next request opens another."""
        self._unbroken = False
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    async def _converse(self, request: pb.WriteRequest) -> object:
        if self._stream is None or self._stream.done():
            self._unbroken = self._unbroken and self._stream is None
            # Nothing was under way on a stream that died idle, so this request is no repetition.
            self._stream = self._remote.open_write_stream()
        await self._stream.write(request)
        return await self._stream.read()


async def _why_ended(
    stream: WriteStream | None, failure: grpc.aio.AioRpcError | asyncio.InvalidStateError
) -> JournalError:
    if isinstance(failure, grpc.aio.AioRpcError):
        return translated(failure)
    # "RPC already finished": the reason lies with the call.
    if stream is None or not stream.done():
        return Unavailable("the stream of writes ended")
    return codec.rpc_error(
        await stream.code(), await stream.details(), await stream.trailing_metadata()
    )
