"""Checks each gRPC call before its handler runs: the caller, its rights, and its request.

The rights are checked before the request is read, so that a caller without them costs no more
than one HTTP/2 window.  Found by fuzzing: a path that is not UTF-8 stops gRPC's server, and a
request that cannot be decoded ends its call with the name of a Python exception, and a traceback
in the log.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc._cython import cygrpc

from ha.daemon.awake_timeout import AwakeTimeout
from ha.security.caller import Caller
from ha.security.decision import Denied
from journal.errors import BadRequest, Unavailable
from journal.node.faces.calls import action_of
from journal.node.faces.grpc_access import GrpcAccess, known_as
from journal.node.faces.grpc_room import OpenStream, OpenStreams, ReadingRoom
from journal.node.metrics import GRPC_LIMITS
from journal.node.settings import NodeSettings
from journal.refusals import REFUSAL_KEY, kind_of, refusal

Context = Any
"""grpc.aio.ServicerContext; grpc has no types."""
_Code = grpc.StatusCode
_TOLD_BY_REQUEST: Final = frozenset({"Format"})
"""Calls of which the request says which right they need (``action_of``)."""


class _AnsweringServer(cygrpc.AioServer):  # type: ignore[misc]
    """gRPC's server, but it refuses calls of unknown methods without decoding the method's name.

    gRPC's own loop decodes the name, which any client can choose: bytes that are not UTF-8 end the
    loop and so the server (grpcio 1.85).
    """

    async def _request_call(self) -> object:
        """Refuse each unknown call, and never return: the caller, gRPC's loop, must get none."""
        loop, noes = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        while True:
            state = await super()._request_call()
            context = cygrpc._ServicerContext(state, None, None, loop)
            no = loop.create_task(_abort(context, _Code.UNIMPLEMENTED, "no such call"))
            noes.add(no)
            no.add_done_callback(noes.discard)


class GuardedCalls(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the right to them, and requests that cannot be decoded.

    Without an ``access`` all calls are allowed.
    """

    def __init__(self, access: GrpcAccess | None, read_seconds: float) -> None:
        self._access = access
        self._reading = ReadingRoom()
        self._streams = OpenStreams()
        self._read_seconds = read_seconds

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        call: Any,  # noqa: ANN401 - grpc has no types
    ) -> Any:  # noqa: ANN401
        """Return a handler that checks the call, reads its requests, and runs gRPC's handler."""
        handler = await continuation(call)
        if handler is None:
            return None  # gRPC answers UNIMPLEMENTED
        name = call.method.rpartition("/")[2]
        read, written = handler.request_deserializer, handler.response_serializer
        if handler.stream_stream is not None:
            guarded = self._stream(name, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(guarded, read, written)
        # A unary call is served as a stream of one request: gRPC would read a unary request before
        # this class can check the caller.  The bytes on the wire are the same.
        single = self._single(name, handler.unary_unary)
        return grpc.stream_unary_rpc_method_handler(single, read, written)

    def _single(
        self, name: str, handle: Callable[[Any, Context], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        async def answer(_requests: object, context: Context) -> Any:  # noqa: ANN401 - any reply
            caller = await self._admit(name, context)
            if caller is None or self._access is None:
                return await handle(await self._read_one(name, caller, context), context)
            # Each call that was allowed gets an outcome in the audit log, also an undecodable one.
            action, granted = name, name not in _TOLD_BY_REQUEST
            try:
                request = await self._read_one(name, caller, context)
                action = action_of(name, request)
                if not granted:
                    await self._check(caller, action, context)
                    granted = True
                reply = await handle(request, context)
            except BaseException as failure:
                if granted:
                    self._access.ended(caller, action, failure)
                raise
            self._access.ended(caller, action, None)
            return reply

        return answer

    def _stream(
        self, name: str, handle: Callable[[Any, Context], AsyncIterator[Any]]
    ) -> Callable[[Any, Context], Awaitable[None]]:
        async def exchange(_requests: object, context: Context) -> None:
            caller = await self._admit(name, context)
            requests = _Requests(name, context)
            end = _ending(context)

            def give_way(reason: str) -> None:
                GRPC_LIMITS.labels("streams").inc()
                end(_Code.RESOURCE_EXHAUSTED, reason)

            stream = OpenStream(known_as(caller), give_way)
            self._streams.add(stream, unlimited=caller is None or caller.trusted)
            opened = None
            if self._access is not None:
                opened = self._access.watched(
                    context, lambda why: end(_Code.PERMISSION_DENIED, why)
                )
            try:
                async for one in handle(requests.readable(), context):
                    await context.write(one)
            finally:
                self._streams.remove(stream)
                if self._access is not None:
                    self._access.forget(opened)
            if requests.unreadable:
                await _refuse(name, context)

        return exchange

    async def _admit(self, name: str, context: Context) -> Caller | None:
        """Return the caller, None without an access; abort the call if it is not allowed."""
        if self._access is None:
            return None
        caller = self._access.caller(context)
        if name not in _TOLD_BY_REQUEST or not self._access.may(caller, name):
            await self._check(caller, name, context)
        self._access.admitted(caller)
        return caller

    async def _check(self, caller: Caller, action: str, context: Context) -> None:
        assert self._access is not None
        denied: Denied | None = self._access.refusal(caller, action)
        if denied is not None:
            code = _Code.UNAUTHENTICATED if denied.unproven else _Code.PERMISSION_DENIED
            await context.abort(code, denied.reason)

    async def _read_one(self, name: str, caller: Caller | None, context: Context) -> Any:  # noqa: ANN401 - any request
        who = known_as(caller)
        try:
            async with AwakeTimeout(self._read_seconds):
                await self._reading.enter(who)
        except TimeoutError:
            await self._give_up(context, "room", f"there was no room to read {name}")
        try:
            async with AwakeTimeout(self._read_seconds):
                request = await context.read()
        except TimeoutError:
            await self._give_up(context, "half_request", f"the request of {name} did not end")
        except DecodeError:
            await _refuse(name, context)
        finally:
            self._reading.leave(who)
        if request is grpc.aio.EOF:
            await _refuse(name, context)
        return request

    async def _give_up(self, context: Context, limit: str, what: str) -> NoReturn:
        GRPC_LIMITS.labels(limit).inc()
        why = f"{what} within {self._read_seconds:g} s"
        try:
            await context.abort(_Code.RESOURCE_EXHAUSTED, why)
        except grpc.aio.AbortError as ended:
            raise ended from Unavailable(why)
        raise AssertionError("abort raises")


class _Requests:
    """The requests of a stream, up to the first that cannot be decoded."""

    def __init__(self, name: str, context: Context) -> None:
        self._name = name
        self._context = context
        self.unreadable = False

    async def readable(self) -> AsyncIterator[Any]:
        while True:
            try:
                request = await self._context.read()
            except DecodeError:
                self.unreadable = True
                return
            if request is grpc.aio.EOF:
                return
            yield request


def guarded_server(
    access: GrpcAccess | None, settings: NodeSettings, options: Sequence[tuple[str, int]]
) -> Any:  # noqa: ANN401 - grpc has no types
    """Make a grpc.aio server with GuardedCalls that refuses unknown calls without decoding."""
    server = grpc.aio.server()
    guards = (GuardedCalls(access, settings.read_request_seconds),)
    server._server = _AnsweringServer(
        server._loop, None, (), guards, tuple(options), settings.max_concurrent_calls
    )
    return server


def _ending(context: Context) -> Callable[[Any, str], None]:
    """Return a function that aborts a stream from any thread, also while it awaits a message."""
    loop = asyncio.get_running_loop()
    ending: set[asyncio.Task[None]] = set()

    def begin(code: Any, reason: str) -> None:  # noqa: ANN401 - grpc has no types
        task = loop.create_task(_abort(context, code, reason), name="end a stream of batches")
        ending.add(task)
        task.add_done_callback(ending.discard)

    def end(code: Any, reason: str) -> None:  # noqa: ANN401
        with suppress(RuntimeError):  # the loop has ended, and the stream with it
            loop.call_soon_threadsafe(begin, code, reason)

    return end


async def _abort(context: Context, code: Any, reason: str) -> None:  # noqa: ANN401 - grpc has no types
    # abort() always raises; and the caller may have disconnected, or have got a refusal before.
    with suppress(grpc.aio.BaseError):
        await context.abort(code, reason)


async def _refuse(name: str, context: Context) -> NoReturn:
    no = BadRequest(f"the request is no message of {name}")
    said = refusal(no)
    trailing = ((REFUSAL_KEY, said.SerializeToString()),)
    try:
        await context.abort(kind_of(no).status, said.message, trailing_metadata=trailing)
    except grpc.aio.AbortError as ended:
        raise ended from no
    raise AssertionError("abort raises")
