"""What the tests of the start-up options share: name directories in use, journals, commands."""

import asyncio
import contextlib
import getpass
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ha.conf.configuration import Configuration, load_configuration
from ha.daemon.http.endpoint import Endpoint
from ha.rpc.server import RpcServer
from ha.service.reconfiguration import check_is
from journal.model import JournalId, NamespaceInfo, TxId
from journal.reader.reader import JournalReader
from journal.writer.writer import QuorumWriter
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.ops import EndLogSegment, Mkdir, Op, StartLogSegment
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.startup.questions import Consent
from namenode_sim.transfer.image_server import ImageServer
from namenode_sim.transfer.namenode_protocol import Facts, namenode_protocol
from tests.journal.writer.journal_cluster import QUICK, Nodes
from tests.namenode_sim.image.image_world import EDITS
from tests.worlds.files import info, write_segment
from tests.worlds.name_dirs import format_name_dirs

WHO = Permission("a", "b", 0o755)
NEVER_ASK = Consent(force=False, ask=None)
FORCE = Consent(force=True, ask=None)


def mkdir(path: str) -> Mkdir:
    return Mkdir(0, path, 7, 7, WHO)


ROLLED = (*EDITS, EndLogSegment())
"""The first segment of a directory in use."""
OPEN = (StartLogSegment(), mkdir("/late"), mkdir("/later"))
"""What was written after it, into a segment that was never closed."""


def in_use(directory: Path, namespace_info: NamespaceInfo | None = None) -> Namespace:
    """Make a name directory that was in use without HA; return what it holds."""
    format_name_dirs([directory], namespace_info or info(), Namespace.empty("hdfs"))
    current = directory / "current"
    write_segment(current, 1, ROLLED)
    write_segment(current, len(ROLLED) + 1, OPEN, closed=False)
    (current / "seen_txid").write_text(f"{len(ROLLED) + 1}\n")
    return held_by((*ROLLED, *OPEN))


def held_by(ops: Sequence[Op]) -> Namespace:
    namespace = Namespace.empty("hdfs")
    for txid, op in enumerate(ops, start=1):
        namespace.apply(TxId(txid), op)
    return namespace


@dataclass
class World:
    """One nameservice: its JournalNodes, and the configuration that its NameNodes read."""

    folder: Path
    nodes: Nodes
    conf_dir: Path

    def conf(self, *overrides: str) -> Configuration:
        return load_configuration(self.conf_dir, overrides, environment={})

    def place(self, *overrides: str) -> NameNodeIdentity:
        return NameNodeIdentity.from_configuration(self.conf(*overrides))

    @property
    def name_dir(self) -> Path:
        return self.folder / "name"

    def writer(self, namespace: NamespaceInfo) -> QuorumWriter:
        return QuorumWriter(
            self.nodes.addresses,
            journal_id=JournalId("ns1"),
            nameservice_id="ns1",
            namespace=namespace,
            settings=QUICK,
        )

    async def journal_ops(self, namespace: NamespaceInfo, first: int = 1) -> list[tuple[int, Op]]:
        reader = JournalReader(
            self.nodes.addresses,
            journal_id=JournalId("ns1"),
            nameservice_id="ns1",
            namespace=namespace,
        )
        try:
            return [
                pair
                async for chunk in reader.edits(TxId(first))
                for pair in decode_all(chunk.records, chunk.layout_version)
            ]
        finally:
            await reader.close()

    async def command(self, *arguments: str, stdin: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ha.cli.main",
            "namenode",
            "--conf-dir",
            str(self.conf_dir),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate(stdin.encode())
        return process.returncode or 0, out.decode()


KEYS: Mapping[str, str] = {
    "dfs.nameservices": "ns1",
    "dfs.ha.namenodes.ns1": "nn1,nn2",
    "dfs.ha.namenode.id": "nn1",
    "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:1",
    "dfs.namenode.rpc-address.ns1.nn2": "127.0.0.1:2",
    "dfs.namenode.http-address.ns1.nn2": "127.0.0.1:2",
    "dfs.qjm.operations.timeout": "5s",
    "dfs.qjournal.select-input-streams.timeout.ms": "5000",
}


@asynccontextmanager
async def world(folder: Path, **keys: str) -> AsyncIterator[World]:
    nodes = Nodes(folder / "journal")
    try:
        await nodes.start()
        uri = ";".join(f"{host}:{port}" for host, port in nodes.addresses)
        site = {
            **KEYS,
            "dfs.namenode.name.dir": str(folder / "name"),
            "dfs.namenode.shared.edits.dir": f"qjournal://{uri}/ns1",
            **keys,
        }
        write_site(folder / "conf", site)
        yield World(folder, nodes, folder / "conf")
    finally:
        await nodes.stop()


def write_site(conf_dir: Path, site: Mapping[str, str]) -> None:
    conf_dir.mkdir(exist_ok=True)
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in site.items()
    )
    (conf_dir / "core-site.xml").write_text("<configuration/>")
    (conf_dir / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")


@asynccontextmanager
async def peer(facts: Facts, directory: Path) -> AsyncIterator[list[str]]:
    """Run another NameNode as a bootstrap sees it; yield the overrides that point to it."""
    rpc = RpcServer([namenode_protocol(lambda: facts, check_is(getpass.getuser()))])
    images = ImageServer(facts.namespace, lambda: [directory])
    http = Endpoint(status=dict, healthy=lambda: None, routes=images.routes)
    async with contextlib.AsyncExitStack() as stack:
        rpc_port = await rpc.start("127.0.0.1", 0)
        stack.push_async_callback(rpc.stop)
        http_port = await http.start("127.0.0.1", 0)
        stack.push_async_callback(http.stop)
        yield [
            f"dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:{rpc_port}",
            f"dfs.namenode.http-address.ns1.nn2=127.0.0.1:{http_port}",
        ]


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def copy_dir(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o700)
