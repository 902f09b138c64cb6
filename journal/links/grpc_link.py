"""A link over gRPC, the default: one HTTP/2 connection, batches on a stream."""

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from ha.security.caller import Role
from ha.security.own_tls import context_for, own_tls
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

_LEAVE_SECONDS: Final = 30.0

if TYPE_CHECKING:
    from ha.security.tls_files import Material

_looked_at: Final[dict[tuple[str, int], "Material"]] = {}
"""By node of this process: under which of our certificates it has shown a JournalNode's."""

M = TypeVar("M", bound=Message)


class GrpcLink:
    """A channel of gRPC's, with our options and our errors."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._leaving: set[asyncio.Task[None]] = set()
        self._connect()

    def _connect(self) -> None:
        host, port = self._host, self._port
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._streams = False
        own = own_tls()
        self._material = None if own is None else own.files.material
        self._channel = _channel(f"dns:///{target}", self._material)
        stub_of = cast(Any, journal_pb2_grpc.JournalNodeStub)
        self._stub = stub_of(self._channel)

    @property
    def node(self) -> tuple[str, int]:
        """Host and port."""
        return self._host, self._port

    @property
    def connected(self) -> bool:
        """Whether a call goes out at once, under the newest certificate."""
        ready = self._channel.get_state() is grpc.ChannelConnectivity.READY
        return bool(ready) and not self.outdated

    @property
    def outdated(self) -> bool:
        """Whether our certificate has changed since the connection was made."""
        own = own_tls()
        return own is not None and own.files.material is not self._material

    def connect(self) -> None:
        """Begin to connect where there is no connection; returns at once."""
        self._channel.get_state(try_to_connect=True)

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""
        for task in tuple(self._leaving):
            task.cancel()
        await self._channel.close()

    def _renew(self) -> None:
        """Have a new channel where our certificate has changed: a channel keeps its own for ever.

        What is under way on the old one has a while to end; a stream is then opened anew.  So a
        writer, whose stream carries batches, does it where a segment starts.
        """
        if not self.outdated:
            return
        old = self._channel
        self._connect()
        task = asyncio.create_task(_leave(old), name="leave a gRPC channel")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _check_server_role(self, timeout_seconds: float) -> None:
        """Raise Unavailable unless the server there shows a JournalNode's certificate.

        gRPC checks the authority and the host's name, and shows a client no more of the server; so
        the role is checked over a connection of our own, once under each certificate that we have:
        a takeover must not wait for it where the standby has read from that node.
        """
        own, secured = own_tls(), context_for(Role.JOURNALNODE)
        node = self.node
        if own is None or secured is None or _looked_at.get(node) is own.files.material:
            return
        material = own.files.material
        try:
            async with asyncio.timeout(timeout_seconds):
                _, writer = await asyncio.open_connection(self._host, self._port, ssl=secured)
            writer.close()
        except ssl.SSLCertVerificationError as stranger:
            raise Unavailable(
                f"{self._host}:{self._port}: {stranger.strerror or stranger}"
            ) from None
        except (OSError, TimeoutError):
            return  # the call itself shows what is wrong
        _looked_at[node] = material

    def open_write_stream(self) -> WriteStream:
        """Open a new stream for batches and heartbeats."""
        self._streams = True
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
        if method == "StartLogSegment" or not self._streams:
            self._renew()
        await self._check_server_role(timeout_seconds)
        try:
            answer = await getattr(self._stub, method)(request, timeout=timeout_seconds)
        except grpc.aio.AioRpcError as failure:
            raise translated(failure) from None
        except grpc.aio.UsageError as failure:
            raise Unavailable(f"the connection is closed: {failure}") from None
        if not isinstance(answer, reply):
            raise Unavailable(f"{method} was answered by {type(answer).__name__}")
        return answer


def _channel(target: str, material: "Material | None") -> Any:  # noqa: ANN401 - grpc has no types
    if material is None:
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    pair = material.pair
    credentials = grpc.ssl_channel_credentials(material.authorities, pair.key, pair.certificate)
    return grpc.aio.secure_channel(target, credentials, options=_OPTIONS)


async def _leave(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
    await channel.close(_LEAVE_SECONDS)


def translated(failure: grpc.aio.AioRpcError) -> JournalError:
    metadata = failure.trailing_metadata()
    return codec.rpc_error(failure.code(), failure.details(), metadata)
