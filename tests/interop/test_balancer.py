"""Hadoop's own Balancer and Mover on a cluster of ours, with DataNodes of ours and of Hadoop's."""

import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.cluster import site
from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.hadoop_server import Hadoop, JavaObject
from tests.interop.mixed.programs import run_hadoops_datanodes
from tests.interop.our_cluster import DFSCK, STORAGE_POLICY_ADMIN, OurCluster, programs_on
from tests.needs import HADOOP_SERVER, MOUNT

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300), MOUNT.mark]

KEYS = {
    "dfs.block.access.token.enable": "true",  # Hadoop's DataNodes and balancer check ours, too
    "dfs.namenode.safemode.extension": "0",
    "dfs.heartbeat.interval": "1s",
    "dfs.blocksize": "1m",
    "dfs.namenode.redundancy.interval.seconds": "1s",
}
OF_TOOLS = {
    "dfs.balancer.getBlocks.min-block-size": "1",
    "dfs.balancer.max-no-move-interval": "20000",
    "dfs.heartbeat.interval": "1s",
    "dfs.namenode.redundancy.interval.seconds": "1s",
}
BALANCER = "org.apache.hadoop.hdfs.server.balancer.Balancer$Cli"
MOVER = "org.apache.hadoop.hdfs.server.mover.Mover$Cli"
NEWCOMER = "dn3"
LEFT_FREE = "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space"
"""Hadoop's DataNode fills no disk beyond a gigabyte of this."""
PLACES = ("disk", "archive")
DISK_MEGABYTES = 32
FILES, FILE_BYTES = 12, 1 << 20
REPLICATION = 2


@dataclass(slots=True)
class Files:
    """What was written, and a thread that goes on writing."""

    fs: JavaObject
    hadoop: Hadoop
    written: dict[str, bytes] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    ends: threading.Event = field(default_factory=threading.Event)

    def write(self, path: str, data: bytes) -> None:
        stream = self.fs.create(self.hadoop.path(path))
        try:
            stream.write(data)
        finally:
            stream.close()
        self.written[path] = data

    def read(self, path: str) -> bytes:
        stream = self.fs.open(self.hadoop.path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def go_on(self) -> None:
        chance, number = random.Random(5), 0
        while not self.ends.wait(0.2):
            number += 1
            try:
                self.write(f"/written/{number}", chance.randbytes(20_000))
            except Py4JJavaError as problem:
                self.failed.append(str(problem)[:500])

    def differ(self) -> list[str]:
        return [path for path, data in self.written.items() if self.read(path) != data]


@dataclass(slots=True)
class Scene:
    """A cluster, and what is written to it."""

    ours: OurCluster
    cluster: Cluster
    files: Files

    def run(self, tool: str, *words: str) -> None:
        self.ours.hadoop.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
        ran = self.ours.run_hidden(tool, *words, more=OF_TOOLS)
        assert ran.status == 0, ran.said

    def blocks(self, name: str, kind: str = "") -> int:
        """Count the blocks on a DataNode's disk."""
        found = (self.cluster.layout.data_dir(name) / kind).rglob("finalized/**/blk_*.meta")
        return len(list(found))


@pytest.fixture(scope="module")
def scene(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("balancer")
    with ExitStack() as running:
        cluster = open_cluster(folder, datanodes=3, more_keys=KEYS)
        for name in cluster.datanodes:
            for place in PLACES:
                running.enter_context(small_disk(cluster.layout.data_dir(name) / place))
        running.enter_context(cluster)
        try:
            give_types(cluster)
        except JarsMissing as missing:
            HADOOP_SERVER.skip(str(missing))
        cluster.up()
        ours = running.enter_context(programs_on(cluster, hadoop))
        fs = hadoop.hadoop.fs.FileSystem.newInstance(
            ours.configuration({"dfs.replication": str(REPLICATION)})
        )
        running.callback(fs.close)
        yield Scene(ours, cluster, Files(fs, hadoop))


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount one: on a large disk some megabytes are no imbalance."""
    folder.mkdir(parents=True)
    size = f"size={DISK_MEGABYTES}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def give_types(cluster: Cluster) -> None:
    """Give each DataNode a disk and an archive; the last one is Hadoop's."""
    run_hadoops_datanodes(cluster, 1)
    for name in cluster.datanodes:
        places = cluster.layout.data_dir(name)
        value = f"[DISK]{(places / 'disk').as_uri()},[ARCHIVE]{(places / 'archive').as_uri()}"
        key = "dfs.datanode.data.dir"
        if name in cluster.commands:
            argv = [word for word in cluster.commands[name] if not word.startswith(f"-D{key}=")]
            cluster.commands[name] = [*argv, f"-D{key}={value}", f"-D{LEFT_FREE}=0"]
        else:
            own = site.datanode_overrides(cluster.layout, name) | {key: value}
            options = [word for each in own.items() for word in ("-D", "=".join(each))]
            cluster.commands[name] = cluster.command("datanode", *options)


def test_the_balancer_evens_out_while_files_are_written_and_the_active_is_killed(
    scene: Scene,
) -> None:
    files, cluster = scene.files, scene.cluster
    cluster.kill(NEWCOMER)
    chance = random.Random(3)
    for number in range(FILES):
        files.write(f"/before/{number}", chance.randbytes(FILE_BYTES))
    cluster.start(NEWCOMER)
    cluster.wait_for_datanode(NEWCOMER)
    writer = threading.Thread(target=files.go_on)
    killer = threading.Thread(target=kill_the_active_once_blocks_move, args=(scene,))
    for thread in (writer, killer):
        thread.start()
    try:
        scene.run(BALANCER, "-threshold", "5")
    finally:
        files.ends.set()
        for thread in (writer, killer):
            thread.join()
    counts = [scene.blocks(name) for name in cluster.datanodes]
    assert min(counts) > FILES // 3, counts
    assert files.failed == []
    assert files.differ() == []
    assert "The filesystem under path '/' is HEALTHY" in scene.ours.well(DFSCK, "/")
    assert not scene.files.fs.exists(scene.ours.hadoop.path("/system/balancer.id"))


def kill_the_active_once_blocks_move(scene: Scene) -> None:
    kill_the_active_once(scene, lambda: scene.blocks(NEWCOMER, "disk") >= 3)


def kill_the_active_once(scene: Scene, some_moved: Callable[[], bool]) -> None:
    wait_until(some_moved, what="blocks to move", deadline_seconds=60)
    scene.cluster.kill(scene.cluster.wait_for_active())


def test_the_mover_puts_a_cold_file_into_the_archive(scene: Scene) -> None:
    ours, files = scene.ours, scene.files
    data = random.Random(4).randbytes(3 * FILE_BYTES + 1)
    files.write("/cold/file", data)
    assert set(types(scene, "/cold/file")) == {"DISK"}
    ours.well(STORAGE_POLICY_ADMIN, "-setStoragePolicy", "-path", "/cold", "-policy", "COLD")
    scene.run(MOVER, "-p", "/cold")
    wait_until(
        lambda: types(scene, "/cold/file") == ["ARCHIVE"] * 4 * REPLICATION,
        what="all replicas in the archive",
        deadline_seconds=30,
    )
    assert files.read("/cold/file") == data
    bandwidth = str(7 << 20)
    said = ours.dfsadmin("-setBalancerBandwidth", bandwidth)
    assert f"Balancer bandwidth is set to {bandwidth}" in said
    words = f"Balancer bandwidth is {bandwidth} bytes per second."
    for ports in scene.cluster.layout.datanodes.values():
        asked = ("-getBalancerBandwidth", f"127.0.0.1:{ports.rpc}")
        wait_until(
            lambda asked=asked: words in ours.dfsadmin(*asked),  # type: ignore[misc]
            what="the bandwidth", deadline_seconds=30,
        )  # fmt: skip


@pytest.mark.long
def test_the_mover_goes_on_when_the_active_is_killed(scene: Scene) -> None:
    ours, files, cluster = scene.ours, scene.files, scene.cluster
    cluster.heal()
    data, path = random.Random(6).randbytes(6 * FILE_BYTES), "/colder/file"
    files.write(path, data)
    ours.well(STORAGE_POLICY_ADMIN, "-setStoragePolicy", "-path", "/colder", "-policy", "COLD")
    ours.dfsadmin("-setBalancerBandwidth", str(FILE_BYTES // 2))  # so that the kill comes between
    left: list[int] = []

    def some_moved() -> bool:
        left[:] = [types(scene, path).count("DISK")]
        return left[0] < 6 * REPLICATION

    killer = threading.Thread(target=kill_the_active_once, args=(scene, some_moved))
    killer.start()
    try:
        scene.run(MOVER, "-p", "/colder")
    finally:
        killer.join()
    assert left[0] > 0
    wait_until(
        lambda: types(scene, path) == ["ARCHIVE"] * 6 * REPLICATION,
        what="all replicas in the archive",
        deadline_seconds=30,
    )
    assert files.read(path) == data


def types(scene: Scene, path: str) -> list[str]:
    where, fs = scene.ours.hadoop.path(path), scene.files.fs
    found = fs.getFileBlockLocations(where, 0, 1 << 40)
    return sorted(str(kind) for block in found for kind in block.getStorageTypes())
