"""A link for tools: it finds out which of a JournalNode's two protocols a port speaks.

A Java NameNode needs the nodes' Hadoop RPC port in ``dfs.namenode.shared.edits.dir``, ours their
gRPC port.  With one file for both a tool must be content with either.
"""

import asyncio
from typing import Final, TypeVar

from google.protobuf.message import Message

from ha.names import waited_for
from ha.security.caller import Role
from ha.security.own_tls import context_for, falls_back
from journal.errors import Unavailable
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.link import Link, WriteStream

M = TypeVar("M", bound=Message)

_HTTP2_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What every HTTP/2 client says first: the preface and empty settings (RFC 9113, 3.4)."""
_FRAME_HEAD_BYTES: Final = 9
_TYPE_AT: Final = 3
_SETTINGS: Final = 4


async def speaks_grpc(host: str, port: int) -> bool:
    """Return whether what listens there answers as an HTTP/2 server.

    A frozen node accepts connections and says nothing: then this waits, on a plain socket, which
    can be given up at once.  gRPC, once it has begun to connect to such a node, holds up the end of
    our process for seconds.  Raises ``OSError`` without a connection.
    """
    secured = context_for(Role.JOURNALNODE)
    try:
        if secured is not None:
            _, writer = await asyncio.open_connection(host, port, ssl=secured)
            chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
            writer.close()
            return bool(chosen == "h2")
    except OSError as failure:
        if not falls_back(failure):
            raise
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_HTTP2_HELLO)
        head = await reader.readexactly(_FRAME_HEAD_BYTES)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return False
    finally:
        writer.close()
    return head[_TYPE_AT] == _SETTINGS


class ProbedLink:
    """One connection to one node; see ``Link``."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._link: Link | None = None
        self._closed = False
        self._finding = asyncio.Lock()

    async def call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        """Call over the protocol that the port speaks."""
        link = self._link or await self._find_link(timeout_seconds)
        return await link.call(method, request, reply, timeout_seconds)

    async def _find_link(self, timeout_seconds: float) -> Link:
        try:
            async with asyncio.timeout(timeout_seconds), self._finding:
                if self._link is None:
                    grpc = await speaks_grpc(self._host, self._port)
                    if self._closed:  # in the meantime
                        raise Unavailable("the connection is closed")
                    kind = GrpcLink if grpc else HadoopLink
                    self._link = kind(self._host, self._port)
                return self._link
        except TimeoutError as late:
            silent = f"no answer in {timeout_seconds:g} s"
            raise Unavailable(waited_for(late) or silent) from None
        except ConnectionRefusedError as failure:
            raise Unavailable("connection refused") from failure
        except OSError as failure:
            raise Unavailable(failure.strerror or repr(failure)) from failure

    def open_write_stream(self) -> WriteStream:
        """Open a stream over the protocol that was found; tools ask before they write."""
        if self._link is None:
            raise Unavailable("which protocol the port speaks is not known yet")
        return self._link.open_write_stream()

    async def wait_until_reconnected(self) -> None:
        """Return when a connection that is broken now is made again; else wait for ever."""
        if self._link is not None:
            await self._link.wait_until_reconnected()

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""
        self._closed = True
        if self._link is not None:
            await self._link.close()
