"""What gRPC's library lets through from strangers, and must not reach it or us.

Found by fuzzing: a path that is not UTF-8 ends the library's server for everybody, and a request
that is no message ends a call with the name of a Python exception, and a traceback in the log.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc._cython import cygrpc

from journal.errors import BadRequest
from journal.refusals import REFUSAL_KEY, kind_of, refusal

Context = Any
"""grpc.aio.ServicerContext; grpc has no types."""
_NO_MESSAGE: Final = object()
"""In place of a request that cannot be read."""


class _KnownCallsOnly(cygrpc.AioServer):  # type: ignore[misc]
    """The library's server, but for calls of other names than those that it was told of.

    It asks the core for each of its own methods, and once more for all others, only to refuse
    them.  The name of such a call is a stranger's bytes, and where they are not UTF-8 the loop that
    asks ends, with the server (grpcio 1.85).  Without that question the core keeps such calls
    until their callers give up, a thousand at most, and refuses more.
    """

    async def _request_call(self) -> object:
        never: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        return await never


class ReadableCalls(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses a request that is no message as any other bad request."""

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        call: Any,  # noqa: ANN401 - grpc has no types
    ) -> Any:  # noqa: ANN401
        """The handler of a call, behind the reading of its request."""
        handler = await continuation(call)
        if handler is None:
            return None
        read, name = handler.request_deserializer, call.method.rpartition("/")[2]

        def read_or_not(data: bytes) -> object:
            try:
                return read(data)
            except DecodeError:
                return _NO_MESSAGE

        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                _stream(name, handler.stream_stream), read_or_not, handler.response_serializer
            )
        return grpc.unary_unary_rpc_method_handler(
            _single(name, handler.unary_unary), read_or_not, handler.response_serializer
        )


def guarded_server(
    interceptors: Sequence[Any], maximum_concurrent_rpcs: int, options: Sequence[tuple[str, int]]
) -> Any:  # noqa: ANN401 - grpc has no types
    """A grpc.aio server that strangers do not end; the first interceptor is asked first."""
    chain = (*interceptors, ReadableCalls())
    server = grpc.aio.server()
    server._server = _KnownCallsOnly(
        server._loop, None, (), chain, tuple(options), maximum_concurrent_rpcs
    )
    return server


def _single(
    name: str, handle: Callable[[Any, Context], Awaitable[Any]]
) -> Callable[[Any, Context], Awaitable[Any]]:
    async def answer(request: Any, context: Context) -> Any:  # noqa: ANN401 - any request
        if request is _NO_MESSAGE:
            await _refuse(name, context)
        return await handle(request, context)

    return answer


def _stream(
    name: str, handle: Callable[[Any, Context], AsyncIterator[Any]]
) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def answers(requests: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401
        unread = False

        async def readable() -> AsyncIterator[Any]:
            nonlocal unread
            async for request in requests:
                if request is _NO_MESSAGE:
                    unread = True
                    return
                yield request

        async for one in handle(readable(), context):
            yield one
        if unread:
            await _refuse(name, context)

    return answers


async def _refuse(name: str, context: Context) -> None:
    no = BadRequest(f"the request is no message of {name}")
    said = refusal(no)
    await context.abort(
        kind_of(no).status, said.message,
        trailing_metadata=((REFUSAL_KEY, said.SerializeToString()),),
    )  # fmt: skip
