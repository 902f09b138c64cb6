"""A NameNode and DataNodes in this process, over real sockets, with a client of files."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_bytes
from typing import Any

from google.protobuf.message import Message

from datanode.process.node import DataNode
from files.namenodes import CallLimits, Namenodes
from files.read import Reader
from files.write import Writer
from ha.conf.topology import HostPort
from ha.rpc.protocol import Call, Method
from ha.rpc.server import RpcServer
from hadoop.block_tokens import KeyRing, first_ring
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanode_protocol.block_keys import wall_ms
from namenode_sim.process.client_service import ClientService
from tests.namenode_sim.client_protocol import namenode_in_memory as memory
from tests.namenode_sim.datanode_protocol.served import NameNode, data_node, name_node

MIB = 1 << 20
HOUR_MS = 3_600_000
LIMITS = CallLimits(connect_seconds=5, attempt_seconds=20, total_seconds=30)

Handle = Callable[[Call, Any], Awaitable[Message]]
Meddle = Callable[[Handle, Call, Message], Awaitable[Message]]


@dataclass(slots=True)
class World:
    """``meddle`` may do something before or after each call to the NameNode."""

    namenode: NameNode
    client: Namenodes
    folder: Path
    hang_up: Callable[[], object]
    datanodes: list[DataNode] = field(default_factory=list)
    meddle: Meddle | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def address(self) -> HostPort:
        return self.client.addresses[0]

    def blocks(self) -> list[Path]:
        """Return the files of all whole replicas, on all disks."""
        return sorted(
            path
            for path in self.folder.rglob("finalized/**/blk_*")
            if not path.name.endswith(".meta")
        )


async def put(
    client: Namenodes, path: str, data: bytes, *, overwrite: bool = False, block_size: int = MIB
) -> None:
    created = await Writer.create(client, path, overwrite=overwrite, block_size=block_size)
    async with created as writer:
        for at in range(0, len(data), 100_000):
            await writer.write(data[at : at + 100_000])


async def get(client: Namenodes, path: str, offset: int = 0, length: int | None = None) -> bytes:
    reader = await Reader.open(client, path, offset=offset)
    async with aclosing(reader.read(offset, length)) as parts:
        return b"".join([part async for part in parts])


async def folder_of_bobs(client: Namenodes, path: str) -> None:
    """Make a directory with a default ACL, by which new files in it may have the mode 664."""
    acl = types.AclEntryProto
    entry = acl(type=acl.USER, scope=acl.DEFAULT, permissions=acl.READ_WRITE, name="bob")
    await client.ask(calls.MkdirsResponseProto, src=path, masked={"perm": 0o755}, createParent=True)
    await client.ask(calls.ModifyAclEntriesResponseProto, src=path, aclSpec=[entry])


async def mode_of(client: Namenodes, path: str) -> int:
    return (await client.ask(calls.GetFileInfoResponseProto, src=path)).fs.permission.perm


def noise(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)


async def _carried_out(handle: Handle, call: Call, request: Message) -> Message:
    return await handle(call, request)


def fresh_ring(serial: int = 1) -> KeyRing:
    """Return the keys of a NameNode that has just started."""
    return first_ring(serial, wall_ms(), HOUR_MS, HOUR_MS, token_bytes)


@asynccontextmanager
async def world(
    folder: Path, datanodes: int = 3, *, algorithm: str | None = None
) -> AsyncIterator[World]:
    """Run a NameNode and DataNodes; with an ``algorithm`` blocks are encrypted on their way."""
    async with AsyncExitStack() as stack:
        namenode = await stack.enter_async_context(name_node(active=True))
        if algorithm is not None:
            namenode.cluster.block_keys = fresh_ring()
        face = ClientService(
            namenode.namespace, memory.MemoryLog(), memory.OpenGate(), memory.SUPERUSER,
            namenode.cluster, settings=Settings(data_algorithm=algorithm),
            groups=memory.NamedGroups(),
        )  # fmt: skip
        server = RpcServer([])
        port = await server.start("127.0.0.1", 0)
        stack.push_async_callback(server.stop)
        client = Namenodes([HostPort("127.0.0.1", port)], user=memory.SUPERUSER, limits=LIMITS)
        await stack.enter_async_context(client)
        made = World(namenode, client, folder, server.abort_connections)

        def through(handle: Handle) -> Handle:
            async def call(of: Call, request: Message) -> Message:
                made.asked.append(of.method)
                return await (
                    made.meddle(handle, of, request) if made.meddle else handle(of, request)
                )

            return call

        protocol = face.protocol()
        methods = {
            name: Method(method.request, through(method.handle))
            for name, method in protocol.methods.items()
        }
        server.serve([replace(protocol, methods=methods)])
        for number in range(datanodes):
            node = await stack.enter_async_context(
                data_node(folder / f"dn{number}", namenode, algorithm=algorithm)
            )
            made.datanodes.append(node)
        yield made
