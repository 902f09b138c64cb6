"""A link over gRPC, the default: one HTTP/2 connection, batches on a stream.

gRPC gets addresses and the name that a node's certificate must have.  Its own resolver asks DNS
for each record that /etc/hosts has not, at each new channel: with a silent name server a takeover
took 12 s.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from ha.names import NAMES, Found, Unresolved
from ha.security.caller import Role
from ha.security.own_tls import context_for, own_tls
from journal.errors import JournalError, Unavailable
from journal.links import codec
from journal.links.link import MAX_MESSAGE_BYTES, WriteStream
from journal.proto import journal_pb2_grpc

_OPTIONS: Final = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A node that comes back is found within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
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
_LOOK_AGAIN_SECONDS: Final = 1.0

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
        self._streams = self._closed = False
        self._channel: Any = None
        """None until the name has an address; an older one is used while there is no newer."""
        self._connect(NAMES.known(host, port))
        NAMES.look_again(host)

    def _connect(self, found: Sequence[Found]) -> None:
        """Have a channel to these addresses, if there are any."""
        self._addresses = _addresses(found)
        own = own_tls()
        self._material = None if own is None else own.files.material
        if not self._addresses or self._closed:
            return
        self._streams = False
        at = f"[{self._host}]" if ":" in self._host else self._host
        self._channel = _channel(self._addresses, f"{at}:{self._port}", self._material)
        stub_of = cast(Any, journal_pb2_grpc.JournalNodeStub)
        self._stub = stub_of(self._channel)

    async def _resolve(self, timeout_seconds: float) -> float:
        """Have a channel once the name has an address, and return what is left of the time.

        Raises Unavailable if it has none.
        """
        host, loop = self._host, asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(timeout_seconds):
                found = await NAMES.getaddrinfo(host, self._port, kind=socket.SOCK_STREAM)
        except TimeoutError:
            raise Unavailable(NAMES.trouble(host) or "no answer in time") from None
        except Unresolved as failure:
            raise Unavailable(str(failure)) from None
        if self._channel is None:
            self._connect(found)
        if self._closed:
            raise Unavailable("the connection is closed")
        return max(0.0, timeout_seconds - (loop.time() - begun))

    @property
    def node(self) -> tuple[str, int]:
        """Host and port."""
        return self._host, self._port

    @property
    def connected(self) -> bool:
        """Whether a call goes out at once, under the newest certificate."""
        return bool(self._state() is grpc.ChannelConnectivity.READY) and not self.outdated

    @property
    def outdated(self) -> bool:
        """Whether our certificate or the node's addresses have changed since it was made."""
        own = own_tls()
        return (own is not None and own.files.material is not self._material) or self._moved()

    def _moved(self) -> bool:
        """Return whether the node's name has other addresses now, as far as they were looked up."""
        known = set(_addresses(NAMES.known(self._host, self._port)))
        return bool(known) and known != set(self._addresses)

    def _state(self, *, connect: bool = False) -> Any:  # noqa: ANN401 - grpc has no types
        return None if self._channel is None else self._channel.get_state(try_to_connect=connect)

    def connect(self) -> None:
        """Begin to connect where there is no connection; returns at once."""
        if self._channel is None and self._moved():
            self._connect(NAMES.known(self._host, self._port))
        if self._state(connect=True) is not grpc.ChannelConnectivity.READY:
            NAMES.look_again(self._host)

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""
        self._closed = True
        for task in tuple(self._leaving):
            task.cancel()
        if self._channel is not None:
            await self._channel.close()

    def _renew(self) -> None:
        """Have a new channel where our certificate or the node's address has changed.

        A channel keeps its own for ever.  What is under way on the old one has a while to end; a
        stream is then opened anew.  So a writer, whose stream carries batches, does it where a
        segment starts, where there is no connection, or where the certificate counts no more.
        """
        if not self.outdated:
            return
        old = self._channel
        self._connect(NAMES.known(self._host, self._port))
        if old is None or old is self._channel:
            return
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
        """Open a new stream for batches and heartbeats.  Raises Unavailable without an address."""
        if self._channel is None:
            raise Unavailable(NAMES.trouble(self._host) or "its name has not been looked up yet")
        self._streams = True
        return cast(WriteStream, self._stub.Write())

    async def wait_until_reconnected(self) -> None:
        """Return when a connection that is broken now is made again; else wait for ever."""
        if self._state(connect=True) is grpc.ChannelConnectivity.READY:
            await asyncio.get_running_loop().create_future()
        while self._state(connect=True) is not grpc.ChannelConnectivity.READY:
            NAMES.look_again(self._host)
            self._renew()
            if self._channel is None:
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                    await self._channel.wait_for_state_change(self._state())

    async def call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        if self._channel is None:
            timeout_seconds = await self._resolve(timeout_seconds)
        ready = self._state() is grpc.ChannelConnectivity.READY
        if method == "StartLogSegment" or not self._streams or not ready:
            self._renew()
        await self._check_server_role(timeout_seconds)
        try:
            try:
                answer = await getattr(self._stub, method)(request, timeout=timeout_seconds)
            except grpc.aio.AioRpcError as failure:
                # Nothing was carried out.  The authority of our earlier certificate is gone.
                if failure.code() is not grpc.StatusCode.PERMISSION_DENIED or not self.outdated:
                    raise
                self._renew()
                answer = await getattr(self._stub, method)(request, timeout=timeout_seconds)
        except grpc.aio.AioRpcError as failure:
            if failure.code() is grpc.StatusCode.UNAVAILABLE:
                NAMES.look_again(self._host)  # it may have moved
            raise translate(failure) from None
        except grpc.aio.UsageError as failure:
            raise Unavailable(f"the connection is closed: {failure}") from None
        if not isinstance(answer, reply):
            raise Unavailable(f"{method} was answered by {type(answer).__name__}")
        return answer


def _addresses(found: Sequence[Found]) -> tuple[str, ...]:
    """Return the addresses as gRPC reads them; those of IPv4 in IPv6's form, for it mixes none."""
    return tuple(
        f"[{'::ffff:' if family == socket.AF_INET else ''}{address[0]}]:{address[1]}"
        for family, _, _, _, address in found
    )


def _channel(addresses: Sequence[str], name: str, material: "Material | None") -> Any:  # noqa: ANN401 - grpc has no types
    """Return a channel to these addresses, and to a server that proves to be ``name``."""
    target = f"ipv6:{','.join(addresses)}"
    options = (*_OPTIONS, ("grpc.default_authority", name))
    if material is None:
        return grpc.aio.insecure_channel(target, options=options)
    pair = material.pair
    credentials = grpc.ssl_channel_credentials(material.authorities, pair.key, pair.certificate)
    return grpc.aio.secure_channel(target, credentials, options=options)


async def _leave(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
    try:
        await asyncio.sleep(_LEAVE_SECONDS)  # gRPC's own grace, cancelled, leaves it open for good
    finally:
        await channel.close()


def translate(failure: grpc.aio.AioRpcError) -> JournalError:
    metadata = failure.trailing_metadata()
    return codec.rpc_error(failure.code(), failure.details(), metadata)
