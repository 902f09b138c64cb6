"""What a NameNode serves to a client that costs little: rate and CPU a call, ours and Hadoop's."""

import asyncio
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message

from deploy.local.cluster.errors import LocalClusterError
from ha.rpc.packets import decode_answer
from hadoop.blocks import Block, BlockId, GenerationStamp
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs
from tests.campaigns.bench.blocks_sides import Side, both_sides
from tests.campaigns.bench.cheap_client import OUTSTANDING, CheapClient, Driven
from tests.campaigns.bench.namenode_calls import until_out_of_safe_mode
from tests.campaigns.bench.played_datanodes import PlayedDataNode, living
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.world import World
from tests.interop.hadoop_jars import JarsMissing

TURNS: Final = 5
"""The first of them only warms up, and finds how many calls a row takes."""
SECONDS: Final = 3.0
CONNECTIONS: Final = (1, 64)
LISTED: Final = 1000
DATANODES: Final = 3
FIRST_CALLS: Final = 2048
MARGIN: Final = 1.15
BLOCK_BYTES: Final = 1 << 20
WRITER: Final = "cheap"
RATE_BARS: Final = {"getFileInfo": 1.3}
"""Times Hadoop's rate; 1 for every other."""
FOLDERS: Final = 40
MKDIRS, CREATE, BLOCKS = "mkdirs", "create", "addBlock + complete"
INFO, LOCATIONS, LISTING = "getFileInfo", "getBlockLocations, a block", f"getListing of {LISTED:,}"
RENAME, DELETE = "rename", "delete"
OPERATIONS: Final = (MKDIRS, CREATE, BLOCKS, INFO, LOCATIONS, LISTING, RENAME, DELETE)
_MODE: Final = hdfs.FsPermissionProto(perm=0o755)

WHOSE: Final = ("ours", "Hadoop's")
Found = dict[tuple[int, str], list[dict[str, Driven]]]
"""By the connections and the side: each turn's calls by their operation."""


@dataclass(slots=True)
class Turn:
    """One side's files in one turn, made, asked for and deleted."""

    client: CheapClient
    nodes: Sequence[PlayedDataNode]
    root: str
    counts: Mapping[str, int]
    found: dict[str, Driven] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """How many files are made: each can be completed, and deleted, once."""
        return max(self.counts[name] for name in (CREATE, BLOCKS, DELETE))

    async def play(self) -> None:
        """Make files, ask for them and delete them, as many as the counts say."""
        files, renames = self.files, self.counts[RENAME]
        listing = calls.GetListingRequestProto(
            src=f"{self.root}/list", startAfter=b"", needLocation=False
        )
        await self._drive("mkdirs", FOLDERS, lambda n: self._mkdirs(f"d{n}"))
        await self._drive("create", LISTED, lambda n: self._create(f"{self.root}/list/f{n:04}"))
        await self._drive("complete", LISTED, lambda n: calls.CompleteRequestProto(
            src=f"{self.root}/list/f{n:04}", clientName=WRITER
        ))  # fmt: skip
        await self._play(MKDIRS, "mkdirs", lambda n: self._mkdirs(f"d{n % FOLDERS}/m{n}"))
        self.found[CREATE] = await self._drive(
            "create", files, lambda n: self._create(self._file(n))
        )
        await self._give_blocks(self.counts[BLOCKS])
        await self._play(INFO, "getFileInfo", lambda n: calls.GetFileInfoRequestProto(
            src=self._file(n % files)
        ))  # fmt: skip
        await self._play(LOCATIONS, "getBlockLocations", self._locations)
        await self._play(LISTING, "getListing", lambda _: listing)
        await self._play(RENAME, "rename", lambda n: calls.RenameRequestProto(
            src=self._renamed(n), dst=self._renamed(n + files)
        ))  # fmt: skip
        await self._play(DELETE, "delete", lambda n: calls.DeleteRequestProto(
            src=self._renamed(n + ((renames - n - 1) // files + 1) * files), recursive=False
        ))  # fmt: skip

    async def _play(self, name: str, method: str, request: Callable[[int], Message]) -> None:
        self.found[name] = await self._drive(method, self.counts[name], request)

    async def _drive(
        self, method: str, count: int, request: Callable[[int], Message], *, keep: bool = False
    ) -> Driven:
        """Make the calls in a thread: DataNodes live only while they send heartbeats."""
        requests = [request(number) for number in range(count)]
        return await asyncio.to_thread(self.client.drive, method, requests, keep=keep)

    async def _give_blocks(self, count: int) -> None:
        """Add a block to each file, have the DataNodes report it, and complete the file."""
        added = await self._drive(
            "addBlock", count, lambda n: calls.AddBlockRequestProto(
                src=self._file(n), clientName=WRITER
            ), keep=True,
        )  # fmt: skip
        blocks = [_located(answer).b for answer in added.answers]
        for block in blocks:
            block.numBytes = BLOCK_BYTES
        known = [
            Block(BlockId(one.blockId), GenerationStamp(one.generationStamp)) for one in blocks
        ]
        await asyncio.gather(*(
            node.received(block, BLOCK_BYTES) for block in known for node in self.nodes
        ))  # fmt: skip
        done = await self._drive(
            "complete", count, lambda n: calls.CompleteRequestProto(
                src=self._file(n), clientName=WRITER, last=blocks[n]
            ), keep=True,
        )  # fmt: skip
        if not all(_completed(one) for one in done.answers):
            raise LocalClusterError("a file was not completed, although its block was reported")
        self.found[BLOCKS] = Driven(
            count, added.seconds + done.seconds, added.server_cpu + done.server_cpu,
            added.client_cpu + done.client_cpu, [],
        )  # fmt: skip

    def _locations(self, number: int) -> Message:
        path = self._file(number % self.counts[BLOCKS])
        return calls.GetBlockLocationsRequestProto(src=path, offset=0, length=BLOCK_BYTES)

    def _file(self, number: int) -> str:
        return f"{self.root}/d{number % FOLDERS}/f{number}"

    def _renamed(self, number: int) -> str:
        """Return the path of a file before the rename of this number, round after round."""
        path, times = self._file(number % self.files), number // self.files
        return f"{path}-{times}" if times else path

    def _mkdirs(self, name: str) -> Message:
        return calls.MkdirsRequestProto(src=f"{self.root}/{name}", masked=_MODE, createParent=True)

    def _create(self, path: str) -> Message:
        return calls.CreateRequestProto(
            src=path, masked=_MODE, clientName=WRITER, createFlag=3, createParent=True,
            replication=DATANODES, blockSize=BLOCK_BYTES,
        )  # fmt: skip


def _located(answer: bytes) -> hdfs.LocatedBlockProto:
    return calls.AddBlockResponseProto.FromString(decode_answer(answer).body).block


def _completed(answer: bytes) -> bool:
    return calls.CompleteResponseProto.FromString(decode_answer(answer).body).result


async def cheap_calls(world: World) -> list[Row]:
    """Measure one active NameNode of each, with three JournalNodes of its own, in turns."""
    try:
        with both_sides(world.directory / "calls") as sides:
            for side in sides:
                await asyncio.to_thread(side.restart_from, side.empty_images)
            found = await _turns(sides)
    except (JarsMissing, LocalClusterError) as missing:
        return [unmeasured("calls of a cheap client", "-", "-", str(missing).splitlines()[0])]
    return [row for each in CONNECTIONS for name in OPERATIONS for row in _rows(name, each, found)]


async def _turns(sides: Sequence[Side]) -> Found:
    found: Found = defaultdict(list)
    async with AsyncExitStack() as running:
        nodes = {}
        for side in sides:
            await until_out_of_safe_mode(side.address)
            mine = [await PlayedDataNode.registered(side.address, n, 1) for n in range(DATANODES)]
            for node in mine:
                lease = await node.heartbeat(wants_lease=True)
                await node.report([(node.storages[0], 0, b"")], lease)
            await running.enter_async_context(living(mine))
            nodes[side.whose] = mine
        for turn in range(TURNS):
            for connections in CONNECTIONS:
                for side in sides if turn % 2 == 0 else sides[::-1]:
                    mine = nodes[side.whose]
                    before = found[connections, side.whose]
                    with closing(
                        CheapClient(side.address, connections, side.cpu_seconds)
                    ) as client:
                        one = Turn(client, mine, f"/{connections}-{turn}", _counts(before))
                        await one.play()
                    before.append(one.found)
    return {key: done[1:] for key, done in found.items()}


def _counts(before: Sequence[Mapping[str, Driven]]) -> Mapping[str, int]:
    """Return how many calls take longer than ``SECONDS``, by the turns until now."""
    if not before:
        return dict.fromkeys(OPERATIONS, FIRST_CALLS)
    most = {name: max(one[name].rate for one in before) for name in OPERATIONS}
    return {name: _whole(rate * SECONDS * MARGIN) for name, rate in most.items()}


def _whole(calls_wanted: float) -> int:
    """Return a number of calls of which each connection has as many: no file is asked for twice."""
    return (int(calls_wanted / OUTSTANDING) + 1) * OUTSTANDING


def _rows(name: str, connections: int, found: Found) -> list[Row]:
    ours, theirs = ([one[name] for one in found[connections, whose]] for whose in WHOSE)
    pairs = list(zip(ours, theirs, strict=True))
    where = "1 connection" if connections == 1 else f"{connections} connections"
    figure = f"{name}, {OUTSTANDING} calls under way on {where}"
    least = RATE_BARS.get(name, 1.0)
    rates = [mine.rate / other.rate for mine, other in pairs]
    costs = [_server(mine) / _server(other) for mine, other in pairs]
    rate, cost = statistics.median(rates), statistics.median(costs)
    return [
        Row(f"{figure}: rate", rate, "x Hadoop's", f">= {least:g}", rate >= least,
            f"{_middle(ours, _rate)} to {_middle(theirs, _rate)} /s; "
            f"{min(rates):.2f}-{max(rates):.2f} x"),
        Row(f"{figure}: NameNode's CPU a call", cost, "x Hadoop's", "<= 1", cost <= 1,
            f"{_middle(ours, _server)} to {_middle(theirs, _server)} us, client's "
            f"{_middle(ours, _client)} to {_middle(theirs, _client)} us; "
            f"{min(costs):.2f}-{max(costs):.2f} x"),
    ]  # fmt: skip


def _rate(one: Driven) -> float:
    return one.rate


def _server(one: Driven) -> float:
    return one.server_cpu * 1e6 / one.calls


def _client(one: Driven) -> float:
    return one.client_cpu * 1e6 / one.calls


def _middle(some: Sequence[Driven], figure: Callable[[Driven], float]) -> str:
    return f"{statistics.median(figure(one) for one in some):,.4g}"
