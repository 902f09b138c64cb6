"""Who may ask a JournalNode what over gRPC: asked before each handler.

gRPC tells a handler who its peer is, but nobody when a connection begins or ends: so each call,
and each stream of batches once, asks the kernel anew.
"""

import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import grpc
import grpc.aio

from ha.security.access_control import AccessControl
from ha.security.caller import Caller, unproven
from ha.security.peer_uid import End, end_of
from ha.security.rights import JOURNALNODE
from journal.node.faces.calls import action_of

Context = Any
"""grpc.aio.ServicerContext; grpc has no types."""
_FAMILIES: Final = ("ipv4:", "ipv6:")


class CheckedCalls(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Has no handler run for a caller who may not ask for it.

    ``port`` tells ours; it is known once the server is bound.
    """

    def __init__(self, access: AccessControl, host: str, port: Callable[[], int]) -> None:
        self._access = access
        self._hosts = addresses(host)
        self._port = port

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        call: Any,  # noqa: ANN401 - grpc has no types
    ) -> Any:  # noqa: ANN401
        """The handler of a call, behind the access."""
        handler = await continuation(call)
        if handler is None:
            return None  # there is no such call, and gRPC says so
        name = call.method.rpartition("/")[2]
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                self._stream(name, handler.stream_stream),
                handler.request_deserializer,
                handler.response_serializer,
            )
        return grpc.unary_unary_rpc_method_handler(
            self._single(name, handler.unary_unary),
            handler.request_deserializer,
            handler.response_serializer,
        )

    def _single(
        self, name: str, handle: Callable[[Any, Context], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        async def answer(request: Any, context: Context) -> Any:  # noqa: ANN401 - any request
            await self._check(action_of(name, request), context)
            return await handle(request, context)

        return answer

    def _stream(
        self, name: str, handle: Callable[[Any, Context], AsyncIterator[Any]]
    ) -> Callable[[Any, Context], AsyncIterator[Any]]:
        async def answers(requests: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401
            await self._check(name, context)
            async for one in handle(requests, context):
                yield one

        return answers

    async def _check(self, name: str, context: Context) -> None:
        caller = self._caller(context.peer())
        denied = self._access.refusal(caller, "grpc", JOURNALNODE, name)
        if denied is not None:
            code = grpc.StatusCode
            status = code.UNAUTHENTICATED if denied.unproven else code.PERMISSION_DENIED
            await context.abort(status, denied.reason)

    def _caller(self, peer: str) -> Caller:
        there = end_of_peer(peer)
        if there is None:
            return unproven("an unknown address")
        found = unproven(str(there))
        for host in self._hosts or (there.host,):
            found = self._access.caller_of(there, End(host, self._port()))
            if found.proven:
                break
        return found


def end_of_peer(peer: str) -> End | None:
    """The other end, as gRPC writes it: ``ipv4:127.0.0.1:1234``, ``ipv6:%5B::1%5D:1234``."""
    if not peer.startswith(_FAMILIES):
        return None
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    return end_of((host.strip("[]"), int(port))) if port.isdecimal() else None


def addresses(host: str) -> Sequence[str]:
    """The addresses that a server listens on; none where it listens on all of the machine's."""
    with suppress(ValueError):
        return () if ipaddress.ip_address(host).is_unspecified else (host,)
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found))
    return ()
