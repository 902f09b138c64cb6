"""What RPC tests share: an echo protocol, raw conversations, and waiting for a condition."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise

from ha.rpc import packets
from ha.rpc.client import RpcConnection
from ha.rpc.frames import FrameSplitter
from ha.rpc.limits import DEFAULT_LIMITS, RpcLimits
from ha.rpc.proto import rpc_header_pb2
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer

Echo = rpc_header_pb2.RPCCallerContextProto
ECHO = "org.example.Echo"
CLIENT = bytes(range(16))
GREETING = packets.PREAMBLE + packets.encode_context(CLIENT, ECHO, "alice", None)

Handler = Callable[[Call, Echo], Awaitable[Echo]]


async def echo(_: Call, request: Echo) -> Echo:
    return request


def echo_protocol(handle: Handler = echo, name: str = ECHO) -> RpcProtocol:
    return RpcProtocol(name, {"echo": Method(Echo, handle)})


def echo_call(call_id: int, context: str = "hello", *, method: str = "echo") -> bytes:
    request = Echo(context=context).SerializeToString()
    return packets.encode_call(packets.CallKey(CLIENT, call_id, 0), ECHO, method, request)


def header(call_id: int, *, op: int | None = 0, kind: int | None = 2) -> bytes:
    message = rpc_header_pb2.RpcRequestHeaderProto(callId=call_id, clientId=CLIENT, retryCount=0)
    if op is not None:
        message.rpcOp = rpc_header_pb2.RpcRequestHeaderProto.OperationProto.ValueType(op)
    if kind is not None:
        message.rpcKind = rpc_header_pb2.RpcKindProto.ValueType(kind)
    return message.SerializeToString()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(ends)]


def answers(data: bytes) -> Iterator[packets.CallAnswer]:
    splitter = FrameSplitter()
    splitter.feed(data)
    while (frame := splitter.take_frame(1 << 30)) is not None:
        yield packets.decode_answer(frame)
    assert splitter.buffered_bytes == 0


@asynccontextmanager
async def serving(
    *protocols: RpcProtocol, limits: RpcLimits = DEFAULT_LIMITS
) -> AsyncIterator[tuple[RpcServer, int]]:
    server = RpcServer(protocols or (echo_protocol(),), limits=limits)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.stop()


@asynccontextmanager
async def calling(port: int, protocol: str = ECHO) -> AsyncIterator[RpcConnection]:
    connection = await RpcConnection.open(
        "127.0.0.1", port, protocol=protocol, user="alice", deadline_seconds=5
    )
    try:
        yield connection
    finally:
        await connection.close()


async def ask(connection: RpcConnection, context: str = "hello", *, seconds: float = 5) -> str:
    answer = await connection.call("echo", Echo(context=context), Echo, deadline_seconds=seconds)
    return answer.context


@asynccontextmanager
async def raw(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_answers(reader: asyncio.StreamReader, count: int) -> list[packets.CallAnswer]:
    seen: list[packets.CallAnswer] = []
    async with asyncio.timeout(30):
        while len(seen) < count:
            size = await reader.readexactly(4)
            seen.extend(answers(size + await reader.readexactly(int.from_bytes(size, "big"))))
    return seen


async def until_closed(reader: asyncio.StreamReader, *, seconds: float = 5) -> bytes:
    data = b""
    async with asyncio.timeout(seconds):
        while True:
            try:
                piece = await reader.read(65536)
            except ConnectionError:
                return data
            if not piece:
                return data
            data += piece


async def eventually(condition: Callable[[], bool], *, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


class Bench:
    """A handler whose calls end when the test says so."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.calls: list[Call] = []
        self.finish = asyncio.Event()

    async def handle(self, call: Call, request: Echo) -> Echo:
        self.started.append(request.context)
        self.calls.append(call)
        if request.context != "quick":
            await self.finish.wait()
        return Echo(context=request.context[:20])
