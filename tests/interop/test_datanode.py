"""Our DataNodes under Hadoop's NameNode and client, and on directories of Hadoop's DataNodes."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from datanode.process.jmx import jmx_page
from deploy.local.cluster.processes import http_get
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.process.block_beans import block_beans
from tests.datanode.test_jmx_page import Node
from tests.interop.hadoop_server import Hadoop, JavaObject
from tests.interop.our_datanodes import POLL, OurDataNodes, java_name_node, our_data_nodes
from tests.namenode_sim.datanodes.few_nodes import Few

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

DATA = bytes(range(251)) * 8000
"""2 MB, in many blocks of 4 KiB unless a test asks for larger ones."""


@dataclass(slots=True)
class World:
    """A NameNode of Hadoop's, our DataNodes, and a client of Hadoop's."""

    hadoop: Hadoop
    cluster: JavaObject
    fs: JavaObject
    nodes: OurDataNodes
    folder: Path

    def put(self, data: bytes, path: str, *, replication: int) -> None:
        """``hadoop fs -put``."""
        local = self.folder / "local"
        local.write_bytes(data)
        configuration = self.hadoop.configuration({})
        configuration.set("fs.defaultFS", str(self.fs.getUri()))
        configuration.set("fs.hdfs.impl.disable.cache", "true")
        configuration.set("dfs.replication", str(replication))
        configuration.set("dfs.blocksize", str(1 << 20))
        self.shell(configuration, "-put", "-f", str(local), path)

    def shell(self, configuration: JavaObject, *command: str) -> None:
        shell = self.hadoop.hadoop.fs.FsShell(configuration)
        assert shell.run(self.hadoop.strings(*command)) == 0, command

    def read(self, path: str) -> bytes:
        """``hadoop fs -get``."""
        target = self.folder / "read"
        target.unlink(missing_ok=True)
        self.fs.copyToLocalFile(False, self.hadoop.path(path), self.hadoop.path(str(target)), True)
        return target.read_bytes()

    def replicas(self, path: str) -> set[int]:
        """Return how many DataNodes have each block of a file."""
        status = self.fs.getFileStatus(self.hadoop.path(path))
        blocks = self.fs.getFileBlockLocations(status, 0, status.getLen())
        return {len(block.getHosts()) for block in blocks}

    def wait_for_replicas(self, path: str, count: int) -> None:
        self.hadoop.wait_until(
            lambda: self.replicas(path) == {count}, f"{count} replicas of {path}", seconds=60
        )


def made(hadoop: Hadoop, cluster: JavaObject, nodes: OurDataNodes, folder: Path) -> World:
    """Make a world with its own client: the cluster's wants no replicas where it has no nodes."""
    configuration = hadoop.configuration({**POLL, "dfs.replication": "3"})
    uri = hadoop.gateway.jvm.java.net.URI.create(f"hdfs://127.0.0.1:{nodes.namenode_port}")
    fs = hadoop.hadoop.fs.FileSystem.newInstance(uri, configuration)
    return World(hadoop, cluster, fs, nodes, folder)


@pytest.fixture
def world(hadoop: Hadoop, tmp_path: Path) -> Iterator[World]:
    with java_name_node(hadoop, tmp_path) as cluster, our_data_nodes(tmp_path, cluster) as nodes:
        yield made(hadoop, cluster, nodes, tmp_path)


def test_put_and_cat_through_one(world: World) -> None:
    world.nodes.start("dn1")
    world.put(DATA, "/one", replication=1)
    assert world.read("/one") == DATA
    assert world.replicas("/one") == {1}
    checksum = world.fs.getFileChecksum(world.hadoop.path("/one"))
    assert "MD5-of" in str(checksum.getAlgorithmName())
    status = world.nodes.status("dn1")
    assert status["replicas"] == 2
    assert status["obeyed"] == "nn1"


def test_three_replicas_then_one_then_three(world: World) -> None:
    for name in ("dn1", "dn2", "dn3"):
        world.nodes.start(name)
    world.put(DATA, "/three", replication=3)
    world.wait_for_replicas("/three", 3)
    path = world.hadoop.path("/three")
    world.fs.setReplication(path, 1)
    world.wait_for_replicas("/three", 1)
    assert world.read("/three") == DATA
    world.fs.setReplication(path, 3)
    world.wait_for_replicas("/three", 3)
    assert world.read("/three") == DATA


@pytest.mark.row("B24", "B25", "B26")
def test_append_truncate_and_recovery_of_a_lease(world: World) -> None:
    for name in ("dn1", "dn2", "dn3"):
        world.nodes.start(name)
    world.put(DATA[:1_500_000], "/grown", replication=3)
    path = world.hadoop.path("/grown")
    out = world.fs.append(path)
    out.write(DATA[1_500_000:1_600_000])
    out.hflush()
    assert world.read("/grown") == DATA[:1_600_000]
    out.write(DATA[1_600_000:])
    out.close()
    assert world.read("/grown") == DATA
    if not world.fs.truncate(path, 1_000_001):
        world.hadoop.wait_until(lambda: world.fs.isFileClosed(path), "the truncate to end")
    assert world.read("/grown") == DATA[:1_000_001]

    world.fs.mkdirs(world.hadoop.path("/kept"))
    kept = world.hadoop.path("/kept/file")
    world.put(DATA, "/kept/file", replication=3)
    world.fs.allowSnapshot(world.hadoop.path("/kept"))
    world.fs.createSnapshot(world.hadoop.path("/kept"), "before")
    if not world.fs.truncate(kept, 700_001):
        world.hadoop.wait_until(lambda: world.fs.isFileClosed(kept), "the truncate to end")
    assert world.read("/kept/file") == DATA[:700_001]
    assert world.read("/kept/.snapshot/before/file") == DATA

    left = world.hadoop.path("/left")
    out = world.fs.create(left)
    out.write(DATA[:3000])
    out.hflush()
    world.hadoop.wait_until(lambda: bool(world.fs.recoverLease(left)), "the lease to be recovered")
    assert world.read("/left") == DATA[:3000]


@pytest.mark.row("B22")
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_one_is_killed_in_mid_write(world: World, victim: int) -> None:
    names = ["dn1", "dn2", "dn3"]
    started = [world.nodes.start(name) for name in names]
    path = world.hadoop.path("/written")
    out = world.fs.create(path)
    out.write(DATA[:1500])
    out.hflush()
    started[victim].kill()
    out.write(DATA[1500:9000])
    out.close()
    assert world.read("/written") == DATA[:9000]
    world.nodes.start(names[victim])
    world.wait_for_replicas("/written", 3)


@pytest.mark.row("B17")
def test_a_damaged_replica_is_found_and_replaced(world: World) -> None:
    for name in ("dn1", "dn2", "dn3"):
        world.nodes.start(name)
    # With a node to spare: Hadoop's NameNode deletes the damaged one after the new copy only.
    world.put(DATA[: 1 << 20], "/precious", replication=2)
    world.wait_for_replicas("/precious", 2)
    victim = next(name for name in ("dn1", "dn2") if block_files(world.folder / name))
    assert world.nodes.supervisor.stop(victim) == 0
    (file,) = block_files(world.folder / victim)
    damaged = bytearray(file.read_bytes())
    damaged[777_777] ^= 16
    file.write_bytes(damaged)
    world.nodes.start(victim)  # its scanner begins with a pass over all
    world.hadoop.wait_until(
        lambda: not file.exists() or file.read_bytes() != damaged, "the replica to be replaced"
    )
    world.wait_for_replicas("/precious", 2)
    assert world.read("/precious") == DATA[: 1 << 20]


def block_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("blk_*") if path.suffix != ".meta"]


@pytest.mark.row("B33")
def test_each_starts_on_the_other_s_directory(hadoop: Hadoop, tmp_path: Path) -> None:
    with java_name_node(hadoop, tmp_path) as cluster, our_data_nodes(tmp_path, cluster) as nodes:
        world = made(hadoop, cluster, nodes, tmp_path)
        nodes.start("ours")
        world.put(DATA, "/by-ours", replication=1)
        uuid = nodes.status("ours")["uuid"]
        assert nodes.supervisor.stop("ours") == 0

        theirs = java_data_node(hadoop, cluster, tmp_path / "ours")
        hadoop.wait_until(lambda: bool(theirs.isDatanodeFullyStarted()), "Java's DataNode")
        assert str(theirs.getDatanodeUuid()) == uuid
        world.wait_for_replicas("/by-ours", 1)
        assert world.read("/by-ours") == DATA
        out = world.fs.append(hadoop.path("/by-ours"))
        out.write(b"appended by Java")
        out.close()
        world.put(DATA, "/by-java", replication=1)
        theirs.shutdown()

        nodes.start("again", tmp_path / "ours")
        assert nodes.status("again")["uuid"] == uuid
        assert world.read("/by-ours") == DATA + b"appended by Java"
        assert world.read("/by-java") == DATA
        out = world.fs.append(hadoop.path("/by-java"))
        out.write(b"appended by ours")
        out.close()
        assert world.read("/by-java") == DATA + b"appended by ours"


def java_data_node(hadoop: Hadoop, cluster: JavaObject, directory: Path) -> JavaObject:
    configuration = hadoop.hadoop.hdfs.HdfsConfiguration(cluster.getConfiguration(0))
    configuration.set("dfs.datanode.data.dir", directory.as_uri())
    for key in ("dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"):
        configuration.set(key, "127.0.0.1:0")
    node = hadoop.hadoop.hdfs.server.datanode.DataNode.instantiateDataNode(
        hadoop.strings(), configuration
    )
    node.runDatanodeDaemon()
    return node


def names_that_hadoop_lacks(cluster: JavaObject) -> set[str]:
    """Return attributes of our beans for blocks and DataNodes that Hadoop's do not have."""
    port, few = int(cluster.getNameNode().getHttpAddress().getPort()), Few(["a"])
    answer = http_get(f"http://127.0.0.1:{port}/jmx", deadline_seconds=30)
    assert answer is not None
    theirs: dict[str, Any] = defaultdict(dict)  # a DataNode's beans may end with its id
    for one in json.loads(answer[1])["beans"]:
        theirs[one["name"].partition("-")[0]] |= one
    beans = block_beans(few.cluster, LivenessRules(), 0, few.now)
    ours = {f"Hadoop:service=NameNode,name={name}": found for name, found in beans.items()}
    ours |= {str(one["name"]): one for one in json.loads(jmx_page(Node(), "").body)["beans"]}
    lacks = {f"{name} {one}" for name, found in ours.items() for one in found.keys() - theirs[name]}
    for name in ("Hadoop:service=NameNode,name=NameNodeInfo",):
        live = [json.loads(str(beans[name]["LiveNodes"])) for beans in (ours, theirs)]
        (of_ours, *_), (of_hadoop, *_) = (list(nodes.values()) for nodes in live)
        lacks |= of_ours.keys() - of_hadoop
    return lacks


@pytest.mark.row("B33")
@pytest.mark.parametrize("first", ["java", "ours"])
def test_b33_both_stand_in_one_pipeline(hadoop: Hadoop, tmp_path: Path, first: str) -> None:
    with java_name_node(hadoop, tmp_path) as cluster, our_data_nodes(tmp_path, cluster) as nodes:
        world = made(hadoop, cluster, nodes, tmp_path)
        theirs = [java_data_node(hadoop, cluster, tmp_path / "java1")]
        nodes.start("ours1")
        if first == "java":
            theirs.append(java_data_node(hadoop, cluster, tmp_path / "java2"))
        else:
            nodes.start("ours2")
        for number in range(4):  # pipelines in several orders
            world.put(DATA, f"/mixed{number}", replication=3)
            world.wait_for_replicas(f"/mixed{number}", 3)
            assert world.read(f"/mixed{number}") == DATA
        assert not (lacking := names_that_hadoop_lacks(cluster)), lacking
        path = hadoop.path("/mixed0")
        out = world.fs.append(path)
        out.write(DATA[:777])
        out.hflush()
        assert world.fs.recoverLease(path) in (True, False)
        hadoop.wait_until(lambda: bool(world.fs.recoverLease(path)), "the lease to be recovered")
        assert world.read("/mixed0") == DATA + DATA[:777]
        for node in theirs:
            node.shutdown()
