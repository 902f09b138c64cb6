"""Hadoop's distcp copies what changed between two snapshots, and goes on when the active dies."""

import filecmp
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.java import find_jars, find_java
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.hadoop_client import client_argv
from tests.interop.hadoop_jars import DISTCP, JarsMissing, jar_of
from tests.interop.hadoop_server import Hadoop
from tests.interop.our_cluster import OurCluster, programs_on
from tests.needs import HADOOP_DISTCP

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(300)]

OLD, NEW = 20, 200
"""Files before the first snapshot, and those that come before the second."""
SECONDS = 120.0
KEYS = {"dfs.namenode.safemode.extension": "0", "dfs.heartbeat.interval": "1s"}
OPTIONS = {"mapreduce.client.completion.pollinterval": "100", "dfs.replication": "1"}


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster, Hadoop's shell on it, and distcp in a process of its own."""

    ours: OurCluster
    argv: Sequence[str]

    @property
    def cluster(self) -> Cluster:
        return self.ours.cluster

    def begin(self, log: Path, *words: str) -> "subprocess.Popen[bytes]":
        with log.open("wb") as out:
            return subprocess.Popen(
                [*self.argv, *words], stdout=out, stderr=subprocess.STDOUT, cwd=log.parent
            )

    def run(self, log: Path, *words: str) -> None:
        self.ends_well(self.begin(log, *words), log)

    def ends_well(self, running: "subprocess.Popen[bytes]", log: Path) -> None:
        try:
            assert running.wait(SECONDS) == 0, log.read_text()[-3000:]
        finally:
            running.kill()

    def count(self, folder: str) -> int:
        """Return how many files are whole in a folder, which need not be there yet."""
        fs = self.ours.hadoop.hadoop.fs.FileSystem.get(self.ours.configuration())
        where = self.ours.hadoop.path(folder)
        found = fs.listStatus(where) if fs.exists(where) else []
        return sum(not one.getPath().getName().startswith(".") for one in found)


@pytest.fixture
def scene(hadoop: Hadoop, tmp_path: Path) -> Iterator[Scene]:
    try:
        jar = jar_of(DISTCP)
    except JarsMissing as missing:
        HADOOP_DISTCP.skip(str(missing))
    with open_cluster(tmp_path / "cluster", datanodes=1, more_keys=KEYS) as cluster:
        cluster.up()
        java = find_java()
        argv = client_argv(
            java, cluster.conf_dir, "org.apache.hadoop.tools.DistCp", log_directory=tmp_path
        )
        place = argv.index("-cp") + 1
        argv[place] += f":{jar}:{find_jars()}/*"
        options = [f"-D{name}={value}" for name, value in OPTIONS.items()]
        with programs_on(cluster, hadoop) as ours:
            yield Scene(ours, [*argv, *options])


def test_what_changed_between_two_snapshots_is_copied_through_a_kill_of_the_active(
    scene: Scene, tmp_path: Path
) -> None:
    ours, log = scene.ours, tmp_path / "distcp.log"
    fill(tmp_path / "src" / "old", OLD)
    ours.shell("-put", str(tmp_path / "src"), "/src")
    ours.shell("-mkdir", "/dst")
    for folder in ("/src", "/dst"):
        ours.dfsadmin("-allowSnapshot", folder)
    ours.shell("-createSnapshot", "/src", "s1")
    scene.run(log, "-update", "/src/.snapshot/s1", "/dst")
    ours.shell("-createSnapshot", "/dst", "s1")

    fill(tmp_path / "new", NEW)
    ours.shell("-put", str(tmp_path / "new"), "/src/new")
    ours.shell("-mv", "/src/old", "/src/moved")
    ours.shell("-rm", "/src/moved/0", "/src/moved/1")
    ours.shell("-appendToFile", str(tmp_path / "new" / "0"), "/src/moved/2")
    ours.shell("-mv", "/src/moved/3", "/src/three")
    ours.shell("-createSnapshot", "/src", "s2")
    running = scene.begin(log, "-update", "-diff", "s1", "s2", "/src", "/dst")
    wait_until(
        lambda: scene.count("/dst/new"),
        what="the first files",
        deadline_seconds=SECONDS,
        abandon=lambda: None if running.poll() is None else log.read_text()[-3000:],
    )
    begun = monotonic()
    scene.cluster.kill(scene.cluster.wait_for_active())
    assert running.poll() is None
    scene.ends_well(running, log)
    assert scene.count("/dst/new") == NEW, monotonic() - begun
    assert differences(ours, tmp_path, "/src/.snapshot/s2", "/dst") == []

    ours.shell("-createSnapshot", "/dst", "s2")
    scene.run(log, "-update", "-rdiff", "s2", "s1", "/dst", "/dst")
    assert differences(ours, tmp_path, "/src/.snapshot/s1", "/dst") == []


def fill(folder: Path, count: int) -> None:
    draw = random.Random(folder.name)
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / str(number)).write_bytes(draw.randbytes(draw.randrange(3000)))


def differences(ours: OurCluster, folder: Path, one: str, other: str) -> list[str]:
    """Compare two trees of the cluster, byte by byte."""
    places = [folder / "got" / f"{number}-{one.rpartition('/')[2]}" for number in (0, 1)]
    for path, place in zip((one, other), places, strict=True):
        place.parent.mkdir(exist_ok=True)
        ours.shell("-get", path, str(place))
    trees = [{str(f.relative_to(p)): f for f in p.rglob("*")} for p in places]
    names = set(trees[0]) ^ set(trees[1])
    same = [name for name in set(trees[0]) & set(trees[1]) if trees[0][name].is_file()]
    names.update(n for n in same if not filecmp.cmp(trees[0][n], trees[1][n], shallow=False))
    return sorted(names)
