"""A gRPC proxy before one JournalNode that loses requests or answers, call by call.

It stands on the wire, so that neither our client nor our node knows of it.  Calls are counted
from 1 in the order in which they come; each message on the stream of writes counts as one.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum, auto
from typing import Any

import grpc
import grpc.aio

Context = Any
"""grpc.aio has no types."""

_SERVICE = "/nnha.journal.JournalNode/"


class Fate(Enum):
    """What becomes of one call."""

    PASS = auto()
    LOSE_REQUEST = auto()
    LOSE_ANSWER = auto()
    HANG = auto()
    HOLD = auto()
    """Until ``opened``."""


Judge = Callable[[int, str], Fate]


def always_pass(_number: int, _method: str) -> Fate:
    return Fate.PASS


class Proxy:
    """Listens on a port of its own and forwards to a node."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.judge: Judge = always_pass
        self.calls: list[str] = []
        self.held, self.opened = asyncio.Event(), asyncio.Event()
        self._streams = 0
        self.quiet = asyncio.Event()
        """No stream is open: nothing is judged any more that a closed writer has sent."""
        self.quiet.set()
        self.port = 0
        self._target = f"{target[0]}:{target[1]}"
        self._server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        self._channel: Any = None

    async def start(self) -> None:
        options = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))
        self._channel = grpc.aio.insecure_channel(self._target, options=options)
        self._server.add_generic_rpc_handlers((_Router(self),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(0)
        await self._channel.close()

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    def arm(self, judge: Judge) -> None:
        """Count from 1 again, and judge by this."""
        self.calls.clear()
        self.judge = judge

    def fate(self, method: str) -> Fate:
        self.calls.append(method)
        return self.judge(len(self.calls), method)

    async def unary(self, method: str, request: bytes, context: Context) -> bytes:
        fate = self.fate(method)
        if fate is Fate.HANG:
            await asyncio.Event().wait()
        if fate is Fate.HOLD:
            self.held.set()
            await self.opened.wait()
        if fate is Fate.LOSE_REQUEST:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the request was lost")
        answer = b""
        try:
            answer = await self._channel.unary_unary(_SERVICE + method)(request)
        except grpc.aio.AioRpcError as error:
            await context.abort(
                error.code(), error.details(), tuple(error.trailing_metadata() or ())
            )
        if fate is Fate.LOSE_ANSWER:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer was lost")
        return answer

    async def stream(
        self, requests: AsyncIterable[bytes], context: Context
    ) -> AsyncIterator[bytes]:
        upstream = self._channel.stream_stream(_SERVICE + "Write")()
        self._streams += 1
        self.quiet.clear()
        try:
            async for request in requests:
                fate = self.fate("Write")
                if fate is Fate.HANG:
                    await asyncio.Event().wait()
                if fate is Fate.LOSE_REQUEST:
                    await context.abort(grpc.StatusCode.UNAVAILABLE, "the request was lost")
                await upstream.write(request)
                reply = await upstream.read()
                if fate is Fate.LOSE_ANSWER:
                    await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer was lost")
                yield reply
        except grpc.aio.AioRpcError as error:
            await context.abort(
                error.code(), error.details(), tuple(error.trailing_metadata() or ())
            )
        finally:
            upstream.cancel()
            self._streams -= 1
            if not self._streams:
                self.quiet.set()


@asynccontextmanager
async def behind_proxies(addresses: Sequence[tuple[str, int]]) -> AsyncIterator[list[Proxy]]:
    async with AsyncExitStack() as running:
        proxies = [Proxy(address) for address in addresses]
        for proxy in proxies:
            await proxy.start()
            running.push_async_callback(proxy.stop)
        yield proxies


class _Router(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc has no types
    """Hands each method of the service to the proxy, as bytes."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: Context) -> Context:
        method = handler_call_details.method.removeprefix(_SERVICE)
        if method == "Write":
            return grpc.stream_stream_rpc_method_handler(self._proxy.stream)

        async def unary(request: bytes, context: Context) -> bytes:
            return await self._proxy.unary(method, request, context)

        return grpc.unary_unary_rpc_method_handler(unary)
