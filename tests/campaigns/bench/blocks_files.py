"""Files of one block, written by clients through the NameNode alone; DataNodes are played."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from ha.rpc.client import RpcConnection
from hadoop.blocks import PoolId
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import checked_block
from tests.campaigns.bench.blocks_sides import Side
from tests.campaigns.bench.namenode_calls import ask, connected, until_out_of_safe_mode
from tests.campaigns.bench.played_datanodes import PlayedDataNode, living
from tests.campaigns.bench.report import Row, unmeasured

CLIENTS: Final = 16
DATANODES: Final = 3
_FILES: Final = f"one-block files by {CLIENTS} clients"
_UNIT: Final = "x Hadoop's rate"
TURN_SECONDS: Final = 3.0
_WARM_UPS: Final = 3
"""A JVM compiles what it has done often."""

AGAIN_SECONDS: Final = 0.002
"""Hadoop answers a report before it has taken it in; a file cannot be completed until then."""

_LENGTH: Final = 7_654_321
_BLOCK_SIZE: Final = 128 * 1024 * 1024
_CREATE: Final = calls.CreateRequestProto(
    src="",
    masked=hdfs.FsPermissionProto(perm=0o644),
    clientName="",
    createFlag=1,
    createParent=True,
    replication=3,
    blockSize=_BLOCK_SIZE,
)


@dataclass(slots=True)
class Written:
    """How fast files were written at one NameNode, turn by turn."""

    per_second: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Milliseconds of the NameNode's CPU for a file."""
    own_share: list[float] = field(default_factory=list)
    """How much of the time the load itself was at work."""


@dataclass(frozen=True, slots=True)
class Load:
    """Clients and DataNodes of one NameNode."""

    clients: Sequence[RpcConnection]
    datanodes: Mapping[str, PlayedDataNode]
    pool: PoolId
    numbers: "itertools.count[int]"

    async def run(self, seconds: float) -> int:
        """Let all clients write for ``seconds``; return how many files were completed."""
        end = time.monotonic() + seconds
        return sum(
            await asyncio.gather(*(self._write(each, end) for each in enumerate(self.clients)))
        )

    async def _write(self, client: tuple[int, RpcConnection], end: float) -> int:
        number, connection = client
        files = 0
        while time.monotonic() < end:
            await self._write_one(connection, f"bench-{number}", f"/load/c{number}")
            files += 1
        return files

    async def _write_one(self, connection: RpcConnection, holder: str, folder: str) -> None:
        request = calls.CreateRequestProto()
        request.CopyFrom(_CREATE)
        request.src, request.clientName = f"{folder}/f{next(self.numbers):07d}", holder
        created = await ask(connection, "create", request, calls.CreateResponseProto)
        file_id = created.fs.fileId
        added = await ask(
            connection,
            "addBlock",
            calls.AddBlockRequestProto(src=request.src, clientName=holder, fileId=file_id),
            calls.AddBlockResponseProto,
        )
        block = checked_block(added.block.b, self.pool)
        places = [self.datanodes[each.id.datanodeUuid] for each in added.block.locs]
        if len(places) != DATANODES:
            raise RuntimeError(f"{request.src} has {len(places)} places for its block")
        await asyncio.gather(*(node.received(block, _LENGTH) for node in places))
        added.block.b.numBytes = _LENGTH
        done = calls.CompleteRequestProto(
            src=request.src, clientName=holder, last=added.block.b, fileId=file_id
        )
        while not (await ask(connection, "complete", done, calls.CompleteResponseProto)).result:
            await asyncio.sleep(AGAIN_SECONDS)


async def measured(sides: Sequence[Side], rounds: int) -> tuple[Written, Written]:
    """Measure both NameNodes in turn, each with a namespace that was empty at first."""
    found = [Written() for _ in sides]
    async with AsyncExitStack() as running:
        loads = []
        for side in sides:
            await asyncio.to_thread(side.restart_from, side.empty_images)
            await until_out_of_safe_mode(side.address)
            loads.append(await _load(side, running))
        for _ in range(_WARM_UPS):
            for load in loads:
                await load.run(TURN_SECONDS)
        for turn in range(rounds):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                await _turn(sides[which], loads[which], found[which])
    return found[0], found[1]


async def _turn(side: Side, load: Load, found: Written) -> None:
    began, used, own = time.monotonic(), side.cpu_seconds(), time.process_time()
    files = await load.run(TURN_SECONDS)
    took = time.monotonic() - began
    found.per_second.append(files / took)
    found.cpu.append((side.cpu_seconds() - used) * 1000 / files)
    found.own_share.append((time.process_time() - own) / took)


async def _load(side: Side, running: AsyncExitStack) -> Load:
    nodes = [await PlayedDataNode.registered(side.address, n, 1) for n in range(DATANODES)]
    for node in nodes:
        await node.report([(node.storages[0], 0, b"")], await node.heartbeat(wants_lease=True))
    await running.enter_async_context(living(nodes))
    clients = [await connected(side.address) for _ in range(CLIENTS)]
    for client in clients:
        running.push_async_callback(client.close)
    by_uuid = {node.identity.uuid: node for node in nodes}
    return Load(clients, by_uuid, nodes[0].identity.namespace.pool, itertools.count())


def files_row(ours: Written, theirs: Written) -> Row:
    """Return the rate next to Hadoop's; each turn against the turn next to it."""
    ratios = [our / their for our, their in zip(ours.per_second, theirs.per_second, strict=True)]
    ratio = statistics.median(ratios)
    return Row(
        _FILES,
        ratio,
        _UNIT,
        ">= 1",
        ratio >= 1,
        f"{statistics.median(ours.per_second):,.0f} /s, Hadoop's "
        f"{statistics.median(theirs.per_second):,.0f} /s; {len(ratios)} turns: "
        f"{min(ratios):.2f}-{max(ratios):.2f}; CPU of the NameNode a file "
        f"{statistics.median(ours.cpu):.2f} ms, {statistics.median(theirs.cpu):.2f} ms; "
        f"the load's share of a core {statistics.median(ours.own_share):.2f}, "
        f"{statistics.median(theirs.own_share):.2f}",
    )


def unmeasured_rows(why: str) -> list[Row]:
    return [unmeasured(_FILES, _UNIT, ">= 1", why)]
