"""The active killed under a client that appends to a file, with our DataNodes and Hadoop's."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deploy.local.cluster.cluster import open_cluster, zkfc_of
from deploy.local.cluster.layout import NAMENODES, Layout
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import Supervisor
from deploy.local.workload.java_client import JavaClient, open_java_client, start_java_client
from deploy.local.workload.trial import other, settle
from ha.conf.topology import HostPort
from ha.service.model import ServiceState
from hadoop.proto import client_namenode_pb2 as calls
from tests.campaigns.bench import namenode_calls
from tests.campaigns.bench.appending_client import BLOCK_BYTES, Appender
from tests.campaigns.bench.failover_world import BETWEEN_ROUNDS, JOURNAL_EPOCH
from tests.campaigns.bench.hadoop_cluster import hadoop_cluster
from tests.campaigns.bench.namenode_calls import until
from tests.campaigns.bench.report import Row, unmeasured

KILLS: Final = 5
STALL_BAR: Final = 0.6
TIMES_BAR: Final = 5.0
_DATANODES: Final = 3
_STALL: Final = "kill -9 of the active: longest stall of an appending client"
_TIMES: Final = f"{_STALL}, times shorter"
_LOCATED: Final = "new active: until it tells all locations"
_FILE: Final = "/bench/located"
_FILE_BLOCKS: Final = 8
_BEFORE, _AFTER = 40, 40
_POLL_SECONDS: Final = 0.01
_KEYS: Final = {"dfs.namenode.fs-limits.min-block-size": "4096"}


@dataclass(slots=True)
class Killed:
    """What followed on each kill at one side, in seconds."""

    stalls: list[float] = field(default_factory=list)
    located: list[float] = field(default_factory=list)
    """From the kill until the successor reported where a file's replicas are."""
    located_after_active: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster with DataNodes, and a Java client that has a file open."""

    layout: Layout
    supervisor: Supervisor
    restart: Callable[[str], None]
    """Start a NameNode again, until it could take over."""
    appender: Appender

    def address(self, namenode: str) -> HostPort:
        return HostPort(HOST, self.layout.namenodes[namenode].rpc)

    def active(self) -> str:
        """Wait for an active NameNode and return it."""
        return asyncio.run(self._active())

    async def _active(self) -> str:
        found: list[str] = []

        async def one_is() -> bool:
            for name in NAMENODES:
                if await namenode_calls.state_of(self.address(name)) is ServiceState.ACTIVE:
                    found.append(name)
            return bool(found)

        await until(one_is, "a NameNode to be active", 180.0)
        return found[0]

    def kill(self, into: Killed) -> None:
        """Kill the active; when its successor serves, start it again and wait for it."""
        old = self.active()
        new = self.address(other(old))
        with self.appender.writing(_BEFORE):
            began = time.monotonic()
            self.supervisor.processes[old].kill()
            active, located = asyncio.run(_watch(new))
            self.appender.wait_for(_AFTER)
        into.stalls.append(self.appender.longest_seconds(began))
        into.located.append(located - began)
        into.located_after_active.append(max(0.0, located - active))
        self.restart(old)
        asyncio.run(namenode_calls.until_out_of_safe_mode(self.address(old)))


async def _watch(address: HostPort) -> tuple[float, float]:
    return await asyncio.gather(
        namenode_calls.until_active(address, _POLL_SECONDS), _until_located(address)
    )


async def _until_located(address: HostPort) -> float:
    connection = await namenode_calls.connected(address)
    request = calls.GetBlockLocationsRequestProto(src=_FILE, offset=0, length=2**40)

    async def all_told() -> bool:
        answer = await namenode_calls.ask(
            connection, "getBlockLocations", request, calls.GetBlockLocationsResponseProto
        )
        blocks = answer.locations.blocks
        return len(blocks) == _FILE_BLOCKS and all(len(one.locs) == _DATANODES for one in blocks)

    await until(all_told, f"{address} to tell where {_FILE} is", 180.0, _POLL_SECONDS)
    seen = time.monotonic()
    await connection.close()
    return seen


@contextmanager
def _ours(directory: Path) -> Iterator[Side]:
    keys = _KEYS | JOURNAL_EPOCH | BETWEEN_ROUNDS
    with open_cluster(directory, more_keys=keys, datanodes=_DATANODES) as cluster:
        cluster.up()
        process = start_java_client(
            cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir
        )

        def restart(name: str) -> None:
            cluster.start(name)
            settle(cluster, name)

        with open_java_client(process) as client, _appending(client) as appender:
            yield Side(cluster.layout, cluster.supervisor, restart, appender)


@contextmanager
def _theirs(directory: Path) -> Iterator[Side]:
    with hadoop_cluster(directory, datanodes=_DATANODES, more_keys=_KEYS) as cluster:
        process = start_java_client(
            cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir
        )

        def restart(name: str) -> None:
            logged = cluster.log_size(zkfc_of(name))
            cluster.start_namenode(name)
            cluster.wait_for_candidate(name, logged)

        for name in NAMENODES:
            asyncio.run(namenode_calls.until_out_of_safe_mode(cluster.address(name)))
        with open_java_client(process) as client, _appending(client) as appender:
            yield Side(cluster.layout, cluster.supervisor, restart, appender)


@contextmanager
def _appending(client: JavaClient) -> Iterator[Appender]:
    files = client.files()
    files.write(_FILE, [bytes(BLOCK_BYTES * _FILE_BLOCKS)], block_size=BLOCK_BYTES)
    appender = Appender(files, "/bench/appended", _DATANODES)
    with appender.open():
        yield appender


def failover_rows(kills: int = KILLS) -> list[Row]:
    """Kills in turn at both clusters.

    Raises:
        JarsMissing, LocalClusterError: if Hadoop's jar is not here, or a part fails.
    """
    folder = fresh_directory("bench-stalls")
    found = [Killed(), Killed()]
    with ExitStack() as running:
        theirs = running.enter_context(_theirs(folder / "hadoop"))
        ours = running.enter_context(_ours(folder / "ours"))
        for turn in range(kills):
            pairs = list(zip((ours, theirs), found, strict=True))
            for side, one in pairs if turn % 2 == 0 else reversed(pairs):
                side.kill(one)
    return _rows(*found)


def unmeasured_rows(why: str) -> list[Row]:
    return [
        unmeasured(_STALL, "s", f"<= {STALL_BAR:g}", why),
        unmeasured(_TIMES, "x", f">= {TIMES_BAR:g}", why),
        unmeasured(_LOCATED, "s", "-", why),
    ]


def _rows(ours: Killed, theirs: Killed) -> list[Row]:
    stall, beside = statistics.median(ours.stalls), statistics.median(theirs.stalls)
    located, their_located = statistics.median(ours.located), statistics.median(theirs.located)
    after = statistics.median(ours.located_after_active)
    their_after = statistics.median(theirs.located_after_active)
    times = beside / stall
    return [
        Row(_STALL, stall, "s", f"<= {STALL_BAR:g}", stall <= STALL_BAR,
            f"median of {_told(ours.stalls)}; Hadoop's {beside:.3f} s, {_told(theirs.stalls)}"),
        Row(_TIMES, times, "x", f">= {TIMES_BAR:g}", times >= TIMES_BAR,
            "medians of the same run"),
        Row(_LOCATED, after, "s", "-", None,
            f"Hadoop's {their_after:.3f} s; from the kill on {located:.3f} s, Hadoop's "
            f"{their_located:.3f} s: {their_located / located:.1f} x"),
    ]  # fmt: skip


def _told(seconds: Sequence[float]) -> str:
    return f"{len(seconds)}: {min(seconds):.3f}-{max(seconds):.3f} s"
