"""Takes the place of gRPC's channel and server under the product's own stubs and service."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import grpc
import grpc.aio
from google.protobuf.message import Message

from ha.names import Found
from tests.simulation.engine.clock import PROCESS, Process
from tests.simulation.engine.network import Network
from tests.simulation.journal.lane_seam import LaneBoard

Serializer = Callable[[Message], bytes]
Deserializer = Callable[[bytes], Message]
Metadata = tuple[tuple[str, str | bytes], ...]
_OF = "/nnha.journal.JournalNode/"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call ended instead of with a reply."""

    code: grpc.StatusCode
    details: str
    trailing: Metadata = ()

    def as_error(self) -> grpc.aio.AioRpcError:
        """Return what grpc.aio raises."""
        return grpc.aio.AioRpcError(
            self.code,
            initial_metadata=grpc.aio.Metadata(),
            trailing_metadata=grpc.aio.Metadata(*self.trailing),
            details=self.details,
        )


Respond = Callable[[bytes | Failure], None]
CLOSED = Failure(grpc.StatusCode.CANCELLED, "the channel was closed")
RESET = Failure(grpc.StatusCode.UNAVAILABLE, "Connection reset by peer (simulated)")
REFUSED = Failure(grpc.StatusCode.UNAVAILABLE, "Connection refused (simulated)")


class Handler(Protocol):
    """grpc.RpcMethodHandler as far as it is used."""

    @property
    def request_deserializer(self) -> Deserializer:
        """Bytes to message."""

    @property
    def response_serializer(self) -> Serializer:
        """Message to bytes."""

    @property
    def unary_unary(self) -> Callable[[Message, object], Awaitable[Message]]:
        """The method, of one request."""

    @property
    def stream_stream(self) -> Callable[[AsyncIterator[Message], object], AsyncIterator[Message]]:
        """The method, of a stream."""


class SimulatedNames:
    """In place of the process's names: every machine has an address."""

    def known(self, host: str, port: int) -> list[Found]:
        del host
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    def look_again(self, host: str) -> None:
        del host


class Server(Protocol):
    """A machine that may serve calls, or be down."""

    def unary(self, method: str, request: bytes, respond: Respond) -> None:
        """Serve one call."""

    def open_stream(self, method: str, respond: Respond) -> "ServerStream":
        """Serve a stream; ``respond`` gets each reply, and at last a Failure."""


class ServerStream(Protocol):
    """The server's end of a stream."""

    def feed(self, request: bytes) -> None:
        """Take what the client has sent."""

    def cut(self) -> None:
        """End: the client has gone."""


@dataclass(frozen=True, slots=True)
class Switchboard:
    """The servers by address."""

    network: Network
    servers: dict[str, Server]
    lanes: LaneBoard

    def channel(
        self, target: str, options: Sequence[tuple[str, object]] = ()
    ) -> "SimulatedChannel":
        """Return what ``grpc.aio.insecure_channel`` gives in the simulated world."""
        del target
        process = PROCESS.get()
        assert process is not None, "a channel belongs to a process"
        machine = str(dict(options)["grpc.default_authority"]).rpartition(":")[0]
        return SimulatedChannel(self, process, machine)


class SimulatedChannel:
    """A client's connection to one machine."""

    def __init__(self, board: Switchboard, process: Process, machine: str) -> None:
        self.board = board
        self.process = process
        self.machine = machine
        self.closed = False
        self._open: dict[int, Callable[[Failure], None]] = {}
        self._count = 0

    def get_state(self, *, try_to_connect: bool) -> grpc.ChannelConnectivity:
        """Return READY: no connection can break, each message finds its way or does not."""
        del try_to_connect
        return grpc.ChannelConnectivity.READY

    async def close(self) -> None:
        self.closed = True
        for fail in list(self._open.values()):
            fail(CLOSED)

    def unary_unary(
        self,
        path: str,
        request_serializer: Serializer,
        response_deserializer: Deserializer,
        **_: object,
    ) -> Callable[..., Awaitable[Any]]:
        method = path.removeprefix(_OF)

        async def call(request: Message, *, timeout: float) -> Message:
            self.ensure_open()
            reply: asyncio.Future[bytes | Failure] = asyncio.get_running_loop().create_future()

            def done(outcome: bytes | Failure) -> None:
                if not reply.done():
                    reply.set_result(outcome)

            number = self.remember(done)
            try:
                async with asyncio.timeout(timeout):
                    self._send(method, request_serializer(request), done)
                    outcome = await reply
            except TimeoutError:
                late = Failure(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
                raise late.as_error() from None
            finally:
                self.forget(number)
            if isinstance(outcome, Failure):
                raise outcome.as_error()
            return response_deserializer(outcome)

        return call

    def stream_stream(
        self,
        path: str,
        request_serializer: Serializer,
        response_deserializer: Deserializer,
        **_: object,
    ) -> "Callable[[], SimulatedStream]":
        method = path.removeprefix(_OF)
        return lambda: SimulatedStream(self, method, request_serializer, response_deserializer)

    def ensure_open(self) -> None:
        """Raise what grpc.aio raises on a closed channel."""
        if self.closed:
            raise grpc.aio.UsageError("Channel is closed.")

    def remember(self, fail: Callable[[Failure], None]) -> int:
        """Note a call that must end with the channel."""
        self._count += 1
        self._open[self._count] = fail
        return self._count

    def forget(self, number: int) -> None:
        """Forget a call that has ended by itself."""
        self._open.pop(number, None)

    def repeats(self, what: str) -> str | None:
        """Return the fault's name if the network delivers this request twice."""
        network = self.board.network
        link = f"{self.process.machine}>{self.machine}"
        name = network.faults.strikes("duplicate", link)
        if name:
            network.trace.add("net", f"{link} repeats {what}", name)
        return name

    def again(self, arrive: Callable[[], None], name: str, what: str) -> None:
        network = self.board.network
        rng = network.faults.random(name)
        due = network.loop.now + rng.choice((0.0, 0.01, 0.1, 3.0)) * rng.random()
        network.post(self.link, what, arrive, lost=lambda: None, not_before=due)

    def lost(self, what: str, done: Respond) -> Callable[[], None]:
        """Show a lost message as a broken connection, or as nothing at all."""
        network = self.board.network
        chance = network.faults.random("silence", what, self.machine).random()
        silent = chance < network.silence
        return (lambda: None) if silent else (lambda: done(RESET))

    def _send(self, method: str, request: bytes, done: Respond) -> None:
        network, there, back = self.board.network, self.link, (self.machine, self.process.machine)
        lost = self.lost(method, done)

        def respond(outcome: bytes | Failure) -> None:
            network.post(back, f"answer {method}", lambda: done(outcome), lost=lost, answer=True)

        server = self.board.servers[self.machine]
        network.post(there, method, lambda: server.unary(method, request, respond), lost=lost)

        def twin() -> None:
            server.unary(method, request, lambda _: None)

        network.remember(there, method, twin)
        if name := self.repeats(method):
            self.again(twin, name, method)

    @property
    def link(self) -> tuple[str, str]:
        """From the client to the server."""
        return (self.process.machine, self.machine)


class SimulatedStream:
    """The client's end of a stream: ordered both ways; one lost message ends it."""

    def __init__(
        self,
        channel: SimulatedChannel,
        method: str,
        serialize: Serializer,
        deserialize: Deserializer,
    ) -> None:
        channel.ensure_open()
        self._channel = channel
        self._method = method
        self._serialize = serialize
        self._deserialize = deserialize
        self._server: ServerStream | None = None
        self._failure: Failure | None = None
        self._replies: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._due = self._back_due = 0.0
        self._number = channel.remember(self._end)

    async def write(self, request: Message) -> None:
        if self._failure is not None:
            raise asyncio.InvalidStateError("RPC already finished.")
        data = self._serialize(request)
        self._channel.board.lanes.stream_used(self._channel.process, self._channel.machine)
        channel, network = self._channel, self._channel.board.network
        self._due = network.post(
            channel.link,
            self._method,
            lambda: self._feed(data),
            lost=channel.lost(self._method, self._got),
            not_before=self._due,
        )
        server = channel.board.servers[channel.machine]

        def twin() -> None:
            # A stream repeats nothing by itself: this is the same request on a second one.
            server.open_stream(self._method, lambda _: None).feed(data)

        network.remember(channel.link, self._method, twin)
        if name := channel.repeats(self._method):
            channel.again(twin, name, self._method)

    async def read(self) -> object:
        try:
            while self._replies.empty() and self._failure is None:
                reply = await self._replies.get()
                if reply is not None:
                    return self._deserialize(reply)
        except asyncio.CancelledError:
            self.cancel()
            raise
        if not self._replies.empty() and (reply := self._replies.get_nowait()) is not None:
            return self._deserialize(reply)
        assert self._failure is not None
        raise self._failure.as_error()

    def done(self) -> bool:
        return self._failure is not None

    def cancel(self) -> bool:
        ended = self.done()
        self._end(CLOSED)
        return not ended

    async def code(self) -> grpc.StatusCode:
        assert self._failure is not None
        return self._failure.code

    async def details(self) -> str:
        assert self._failure is not None
        return self._failure.details

    async def trailing_metadata(self) -> Metadata:
        return () if self._failure is None else self._failure.trailing

    def _feed(self, data: bytes) -> None:
        if self._failure is not None and self._server is None:
            return
        if self._server is None:
            channel = self._channel
            self._server = channel.board.servers[channel.machine].open_stream(
                self._method, self._respond
            )
        self._server.feed(data)

    def _respond(self, outcome: bytes | Failure) -> None:
        channel = self._channel
        self._back_due = channel.board.network.post(
            (channel.machine, channel.process.machine),
            f"answer {self._method}",
            lambda: self._got(outcome),
            lost=channel.lost(self._method, self._got),
            answer=True,
            not_before=self._back_due,
        )

    def _got(self, outcome: bytes | Failure) -> None:
        if self._failure is not None:
            return
        if isinstance(outcome, Failure):
            self._end(outcome)
        else:
            self._replies.put_nowait(outcome)

    def _end(self, failure: Failure) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self._replies.put_nowait(None)
        channel, server = self._channel, self._server
        channel.forget(self._number)
        if server is not None:
            channel.board.network.post(
                channel.link, "end of stream", server.cut, lost=server.cut, not_before=self._due
            )


class Aborted(Exception):
    """A handler ended its call with a status."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.details)
        self.failure = failure


class Context:
    """grpc.aio.ServicerContext as far as the service uses it."""

    async def abort(
        self, code: grpc.StatusCode, details: str, trailing_metadata: Metadata = ()
    ) -> NoReturn:
        raise Aborted(Failure(code, details, trailing_metadata))


async def serve_stream(
    handler: Handler, requests: "asyncio.Queue[bytes]", respond: Respond
) -> None:
    async def messages() -> AsyncIterator[Any]:
        while True:
            yield handler.request_deserializer(await requests.get())

    async for reply in handler.stream_stream(messages(), Context()):
        respond(handler.response_serializer(reply))
