"""A DataNode of Java's next to ours: the replicas of both, and what protects connections."""

import re
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

from deploy.local.cluster.processes import http_get, wait_until
from files.namenodes import Namenodes
from files.read import Reader
from files.replica import ReadLimits, ReplicaRead, parts
from hadoop.wire.byte_budget import ByteBudget
from tests.interop.hadoop_server import JavaObject
from tests.interop.our_cluster import OurCluster

AES = "AES/CTR/NoPadding"
SECONDS = 60.0
HANDSHAKES = r'^nnha_datanode_handshakes_total{{protection="{}"}} [1-9]'


@contextmanager
def java_datanode(ours: OurCluster, folder: Path) -> Iterator[None]:
    settings = {
        "dfs.datanode.data.dir": (folder / "java").as_uri(),
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "ignore.secure.ports.for.testing": "true",
        "dfs.data.transfer.protection": "privacy,integrity,authentication",
        "dfs.encrypt.data.transfer.cipher.suites": AES,
    }
    ours.hadoop.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
    kind, conf = ours.hadoop.hadoop.hdfs.server.datanode.DataNode, ours.configuration(settings)
    ours.hadoop.hadoop.security.UserGroupInformation.setConfiguration(conf)
    node = kind.createDataNode(ours.hadoop.strings(), conf)
    try:
        yield
    finally:
        node.shutdown()


async def replicas(namenodes: Namenodes, path: str) -> list[bytes]:
    """Return the bytes of each replica of a file's only block."""
    reader = await Reader.open(namenodes, path)
    block = await reader.block_at(0)
    found = []
    for node in block.locs:
        asked = ReplicaRead(block, node, 0, reader.length)
        budget = ByteBudget(1 << 24)
        async with aclosing(parts(namenodes, asked, "test", ReadLimits(), budget)) as pieces:
            found.append(b"".join([piece async for piece in pieces]))
    return found


def wait_for_replicas(admin: JavaObject, path: JavaObject, count: int) -> None:
    """Wait until the NameNode knows all replicas of a file's only block."""

    def known() -> bool:
        (block,) = admin.getFileBlockLocations(path, 0, 1)
        return len(block.getNames()) == count

    wait_until(known, what=f"replicas of {path}", deadline_seconds=SECONDS)


def protected(ours: OurCluster, protection: str) -> list[str]:
    """Return the DataNodes of ours that have had callers with this protection."""
    found = []
    for node in ours.cluster.datanodes:
        page = http_get(ours.cluster.layout.url(node) + "/metrics", deadline_seconds=SECONDS)
        assert page is not None
        if re.search(HANDSHAKES.format(protection), page[1].decode(), re.MULTILINE):
            found.append(node)
    return found
