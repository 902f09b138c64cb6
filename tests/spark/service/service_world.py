"""A checkpoint service and all it works with in one process: JournalNodes, a NameNode, a merger."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.cluster.ports import HOST, free_ports
from ha.conf.configuration import Configuration
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError
from ha.service.model import RequestSource
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto
from journal.model import TxId
from namenode_sim.checkpoint.merge import merge
from namenode_sim.checkpoint.schedule import CheckpointRules
from namenode_sim.edits.segment_file import named_range
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.daemon import run_namenode
from namenode_sim.storage.retention import IMAGE
from spark.ends.sources.cluster import Cluster
from spark.ends.sources.model import Staged
from spark.service.core import Rules
from spark.service.merge_process import Merger
from spark.service.service import CheckpointService
from tests.namenode_sim.startup.startup_world import World, world
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

SECONDS = 30.0
RULES = Rules(
    due=CheckpointRules(period_seconds=3600, edits=6, check_seconds=0.05),
    retry_first_seconds=0.05,
    retry_most_seconds=0.2,
)


@dataclass
class HereMerger:
    """The merge of one process, in a thread of this one; ``before`` is waited for first."""

    before: Callable[[], Awaitable[object]] | None = None
    merged: list[TxId] = field(default_factory=list)
    fetched: list[int] = field(default_factory=list)

    async def merge(self, staged: Staged, out: Path) -> Path:
        if self.before is not None:
            await self.before()
        made = await asyncio.to_thread(merge, staged.image, staged.edits, out)
        self.merged.append(made.to_txid)
        self.fetched.append(staged.fetched_bytes)
        return made.image


@dataclass
class ServiceWorld:
    """One NameNode of a nameservice, and its JournalNodes."""

    servers: World
    conf: Configuration
    cluster: Cluster
    name_dirs: list[Path]
    paths: list[str] = field(default_factory=list)

    async def make_active(self) -> None:
        await self.make_standby()
        async with self._service_client() as client:
            await client.transition_to_active(RequestSource.USER, deadline_seconds=SECONDS)

    async def make_standby(self) -> None:
        async with self._service_client() as client:
            await client.transition_to_standby(RequestSource.USER, deadline_seconds=SECONDS)

    @asynccontextmanager
    async def _service_client(self) -> AsyncIterator[ServiceClient]:
        service = self.cluster.namenodes[0].service
        client = await ServiceClient.open(service, deadline_seconds=SECONDS)
        try:
            yield client
        finally:
            await client.close()

    async def mkdirs(self, *paths: str) -> None:
        rpc = self.cluster.namenodes[0].rpc
        connection = await RpcConnection.open(
            rpc.host, rpc.port, protocol=CLIENT_PROTOCOL, deadline_seconds=SECONDS
        )
        try:
            for path in paths:
                request = calls.MkdirsRequestProto(
                    src=path, masked=FsPermissionProto(perm=0o755), createParent=True
                )
                await connection.call(
                    "mkdirs", request, calls.MkdirsResponseProto, deadline_seconds=SECONDS
                )
                self.paths.append(path)
        finally:
            await connection.close()

    def images(self, directory: int = 0) -> list[int]:
        names = (path.name for path in (self.name_dirs[directory] / "current").iterdir())
        return sorted(int(found[1]) for name in names if (found := IMAGE.fullmatch(name)))

    def first_edits(self) -> list[int]:
        folders = [self.servers.folder / "journal" / f"jn{i}" / "ns1" / "current" for i in range(3)]
        return [
            min(found.first for path in folder.iterdir() if (found := named_range(path.name)))
            for folder in folders
        ]

    @asynccontextmanager
    async def service(
        self, name: str, merger: Merger, rules: Rules = RULES
    ) -> AsyncIterator[CheckpointService]:
        work = self.servers.folder / name
        work.mkdir(exist_ok=True)
        service = CheckpointService(self.cluster, rules, work, merger)
        running = asyncio.create_task(service.run())
        try:
            yield service
            assert not running.done(), running.exception()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@asynccontextmanager
async def service_world(folder: Path, **more: str) -> AsyncIterator[ServiceWorld]:
    """Run an active NameNode with two name directories that keeps one image."""
    name_dirs = [folder / "name1", folder / "name2"]
    rpc, http = free_ports(2)
    keys = {
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.http-address.ns1.nn1": f"{HOST}:{http}",
        "dfs.namenode.name.dir": ",".join(map(str, name_dirs)),
        "dfs.namenode.edits.dir": str(folder / "edits"),
        "dfs.namenode.num.checkpoints.retained": "1",
        "dfs.namenode.num.extra.edits.retained": "0",
        "dfs.namenode.checkpoint.txns": "6",
        "dfs.ha.standby.checkpoints": "false",
        "dfs.ha.log-roll.period": "-1",
        **more,
    }
    async with world(folder, **keys) as servers:
        format_name_dirs(name_dirs, info(), Namespace.empty("hdfs"))
        writer = servers.writer(info())
        await writer.format()
        await writer.close()
        conf, stop = servers.conf(), asyncio.Event()
        running = asyncio.create_task(run_namenode(conf, stop))
        at = ServiceWorld(servers, conf, Cluster.from_configuration(conf), name_dirs)
        try:
            await _until_active(at)
            yield at
        finally:
            stop.set()
            await running


async def _until_active(at: ServiceWorld) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await at.make_active()
            except ServiceError:
                await asyncio.sleep(0.02)  # it does not listen yet
            else:
                return
