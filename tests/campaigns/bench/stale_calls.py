"""Calls that lie in a frozen NameNode's sockets: what it makes of them when it goes on."""

import asyncio

from ha.conf.topology import HostPort
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto

DEADLINE_SECONDS = 30.0
READERS = 4
SENT_SECONDS = 0.02
"""For the bytes to leave us; on loopback they need far less."""


class StaleCalls:
    """Readers and a writer that are connected to one NameNode before it freezes."""

    def __init__(self, loop: asyncio.Runner, address: HostPort) -> None:
        self._loop = loop
        self._connections = [loop.run(_connect(address)) for _ in range(READERS + 1)]
        self._asked: list[asyncio.Task[str]] = []

    def ask(self, path: str) -> None:
        """Ask each reader whether there is ``path``, and the writer for a directory next to it."""

        async def send() -> None:
            writer, *readers = self._connections
            self._asked += [asyncio.create_task(_read(reader, path)) for reader in readers]
            self._asked.append(asyncio.create_task(_write(writer, f"{path}-stale")))
            await asyncio.sleep(SENT_SECONDS)

        self._loop.run(send())

    def answers(self) -> list[str]:
        """Return what was served that must not be: nothing, if all is well."""

        async def gather() -> list[str]:
            return [told for told in await asyncio.gather(*self._asked) if told]

        return self._loop.run(gather())

    def close(self) -> None:
        for connection in self._connections:
            self._loop.run(connection.close())


def make(loop: asyncio.Runner, address: HostPort, path: str) -> None:
    """Make a directory, and see that this NameNode acknowledges it."""

    async def ask() -> str:
        connection = await _connect(address)
        try:
            return await _write(connection, path)
        finally:
            await connection.close()

    if not loop.run(ask()):
        raise RuntimeError(f"the active at {address} did not acknowledge {path}")


async def _connect(address: HostPort) -> RpcConnection:
    return await RpcConnection.open(
        address.host, address.port, protocol=CLIENT_PROTOCOL, deadline_seconds=DEADLINE_SECONDS
    )


async def _read(reader: RpcConnection, path: str) -> str:
    request = calls.GetFileInfoRequestProto(src=path)
    try:
        answer = await reader.call(
            "getFileInfo",
            request,
            calls.GetFileInfoResponseProto,
            deadline_seconds=DEADLINE_SECONDS,
        )
    except (RpcError, RemoteFault):
        return ""
    return "" if answer.HasField("fs") else f"a stale read: there is no {path}"


async def _write(writer: RpcConnection, path: str) -> str:
    request = calls.MkdirsRequestProto(
        src=path, masked=FsPermissionProto(perm=0o755), createParent=True
    )
    try:
        await writer.call(
            "mkdirs", request, calls.MkdirsResponseProto, deadline_seconds=DEADLINE_SECONDS
        )
    except (RpcError, RemoteFault):
        return ""
    return f"a write of a deposed active: {path}"
