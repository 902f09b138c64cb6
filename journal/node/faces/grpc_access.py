"""Who may ask a JournalNode what over gRPC: asked before each handler.

gRPC tells a handler who its peer is, but nobody when a connection begins or ends: so each call,
and each stream of batches once, asks the kernel anew.
"""

import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import grpc
import grpc.aio

from ha.security.access_control import AccessControl
from ha.security.caller import Caller, unproven
from ha.security.peer_uid import End, end_of
from ha.security.rights import JOURNALNODE
from journal.node.faces.calls import action_of

if TYPE_CHECKING:
    from ha.security.open_connections import Opened

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
            ended: list[str] = []
            opened = self._watched(context, ended.append)
            try:
                async for one in handle(_until(ended, requests, context), context):
                    yield one
            finally:
                if opened is not None and self._access.tls is not None:
                    self._access.tls.connections.remove(opened)

        return answers

    async def _check(self, name: str, context: Context) -> None:
        caller = self._caller_of(context)
        denied = self._access.refusal(caller, "grpc", JOURNALNODE, name)
        if denied is not None:
            code = grpc.StatusCode
            status = code.UNAUTHENTICATED if denied.unproven else code.PERMISSION_DENIED
            await context.abort(status, denied.reason)

    def _caller_of(self, context: Context) -> Caller:
        shown = _certificate(context)
        if shown is None:
            return self._caller(context.peer())
        there = end_of_peer(context.peer())
        return self._access.certified(shown, "over the relay" if there is None else str(there))

    def _watched(self, context: Context, end: Callable[[str], None]) -> "Opened | None":
        """Have a stream told when the certificate of its connection counts no more."""
        tls, shown = self._access.tls, _certificate(context)
        if tls is None or shown is None:
            return None
        leaf = tls.leaf(shown)
        return None if isinstance(leaf, str) else tls.connections.add(leaf, end)

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


def _certificate(context: Context) -> bytes | None:
    """What the caller has shown, in PEM; None over a connection without TLS."""
    found = context.auth_context().get("x509_pem_cert")
    return bytes(found[0]) if found else None


async def _until(ended: Sequence[str], requests: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401
    """The requests of a stream as long as its caller counts; gRPC cannot close its connection."""
    async for request in requests:
        if ended:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, ended[0])
        yield request


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
