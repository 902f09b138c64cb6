"""A link over Hadoop RPC: gRPC's calls and messages in Hadoop's frames, which cost less in Python.

It goes to a node's ``nnha.journalnode.hadoop-rpc-address``.  The calls are not QJournalProtocol's,
which that port also serves: Hadoop's messages have no digest, no typed refusal and no way back
into a segment, and our writer goes without none of them.
"""

import asyncio
from collections import deque
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from ha.rpc.packets import CallAnswer
from journal.errors import Unavailable
from journal.links.link import WriteStream
from journal.proto import journal_pb2 as pb
from journal.refusals import error_of_fault

PROTOCOL: Final = pb.DESCRIPTOR.services_by_name["JournalNode"].full_name
CONNECT_SECONDS: Final = 5.0
RECONNECT_SECONDS: Final = 0.5

M = TypeVar("M", bound=Message)


class HadoopLink:
    """One connection to one node; see ``Link``."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._connection: RpcConnection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def close(self) -> None:
        """Drop the connection and whatever is under way on it."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    def open_write_stream(self) -> WriteStream:
        """Open a new stream for batches and heartbeats."""
        return _Stream(self)

    async def wait_until_reconnected(self) -> None:
        """Return when a connection that is broken now is made again; else wait for ever."""
        if self._connection is not None and not self._connection.closed:
            await asyncio.get_running_loop().create_future()
        while True:
            try:
                await self.connected()
            except Unavailable:
                await asyncio.sleep(RECONNECT_SECONDS)
            else:
                return

    async def call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        try:
            async with asyncio.timeout(timeout_seconds):
                connection = await self.connected()
        except TimeoutError:
            raise Unavailable("no connection in time") from None
        try:
            return await connection.call(method, request, reply, deadline_seconds=timeout_seconds)
        except RemoteFault as fault:
            raise error_of_fault(fault) from None
        except RpcError as failure:
            raise Unavailable(str(failure)) from None

    async def connected(self) -> RpcConnection:
        """Return the connection; one that has broken is made anew, and the name looked up again."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        async with self._connecting:
            self._require_open()
            if self._connection is None or self._connection.closed:
                try:
                    opened = await RpcConnection.open(
                        self._host,
                        self._port,
                        protocol=PROTOCOL,
                        deadline_seconds=CONNECT_SECONDS,
                    )
                except ConnectFailed as failure:
                    raise Unavailable(str(failure)) from None
                self._connection = opened
                if self._closed:  # in the meantime
                    await opened.close()
            self._require_open()
            return self._connection

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("the connection is closed")


class _Stream:
    """Batches as calls of one connection, answered in the order in which they were sent."""

    def __init__(self, link: HadoopLink) -> None:
        self._link = link
        self._connection: RpcConnection | None = None
        self._under_way: deque[asyncio.Future[CallAnswer]] = deque()
        self._cancelled = False

    async def write(self, request: pb.WriteRequest) -> None:
        if self._connection is None:
            self._connection = await self._link.connected()
        try:
            self._under_way.append(self._connection.begin("Write", request))
        except RpcError as failure:
            raise Unavailable(str(failure)) from None

    async def read(self) -> object:
        """Return the reply to the oldest request that has none yet."""
        if not self._under_way:
            raise Unavailable("nothing is under way")
        try:
            return RpcConnection.finish(await self._under_way.popleft(), pb.WriteReply)
        except RemoteFault as fault:
            raise error_of_fault(fault) from None
        except RpcError as failure:
            raise Unavailable(str(failure)) from None

    def done(self) -> bool:
        """Return whether the stream was cancelled, or its connection is closed."""
        return self._cancelled or (self._connection is not None and self._connection.closed)

    def cancel(self) -> bool:
        """Wait for nothing any more; what was sent may be carried out all the same."""
        self._cancelled = True
        for answer in self._under_way:
            if not answer.cancel():
                answer.exception()  # seen, and of no interest any more
        self._under_way.clear()
        return True

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    async def details(self) -> str | None:
        return "the connection is gone"

    async def trailing_metadata(self) -> Any:  # noqa: ANN401 - gRPC's own type
        """Return nothing, as Hadoop RPC has no trailing metadata."""
        return None
