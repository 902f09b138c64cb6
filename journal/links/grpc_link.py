"""A link over gRPC, the default: one HTTP/2 connection, batches on a stream."""

import asyncio
from typing import Any, Final, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from journal.errors import JournalError, Unavailable
from journal.links import codec
from journal.links.link import MAX_MESSAGE_BYTES, WriteStream
from journal.proto import journal_pb2_grpc

_OPTIONS: Final = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A node that comes back is found within a second, and its name is looked up again.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
    # A new writer tries to connect at once, whatever an older channel has just seen.
    ("grpc.use_local_subchannel_pool", 1),
    # Journal nodes are peers inside the cluster; a proxy from the environment is never meant.
    ("grpc.enable_http_proxy", 0),
    # A repeated newEpoch would be refused, so nothing is sent twice behind our back.
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)

M = TypeVar("M", bound=Message)


class GrpcLink:
    """A channel of gRPC's, with our options and our errors."""

    def __init__(self, host: str, port: int) -> None:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._channel = grpc.aio.insecure_channel(f"dns:///{target}", options=_OPTIONS)
        stub_of = cast(Any, journal_pb2_grpc.JournalNodeStub)
        self._stub = stub_of(self._channel)

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""
        await self._channel.close()

    def open_write_stream(self) -> WriteStream:
        """A new stream for batches and heartbeats."""
        return cast(WriteStream, self._stub.Write())

    async def wait_until_reconnected(self) -> None:
        """Return when a connection that is broken now is made again; else wait for ever."""
        state = self._channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            await asyncio.get_running_loop().create_future()
        while state is not grpc.ChannelConnectivity.READY:
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)

    async def call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        try:
            answer = await getattr(self._stub, method)(request, timeout=timeout_seconds)
        except grpc.aio.AioRpcError as failure:
            raise translated(failure) from None
        except grpc.aio.UsageError as failure:
            raise Unavailable(f"the connection is closed: {failure}") from None
        if not isinstance(answer, reply):
            raise Unavailable(f"{method} was answered by {type(answer).__name__}")
        return answer


def translated(failure: grpc.aio.AioRpcError) -> JournalError:
    metadata = failure.trailing_metadata()
    return codec.rpc_error(failure.code(), failure.details(), metadata)
