"""The merge on Spark itself: Hadoop's own result, killed workers, a killed driver, damage."""

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from namenode_sim.image.errors import ImageError
from namenode_sim.image.reader import load_image
from spark.engine.session import ATTEMPTS, SparkSettings, spark_started
from spark.engine.spark import SparkEngine
from spark.merge.job import MergedOn, merge_on
from spark.merge.stages import Progress
from spark.merge.workdir import PREFIX
from tests.namenode_sim.image.image_world import real
from tests.namenode_sim.namespace.dump import differences
from tests.spark.merge import job_tree
from tests.spark.merge.test_kill import assert_nothing_is_visible, killed

# Starts a Spark; each killed worker is followed by one that loads its modules anew.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DEADLINE_SECONDS = 40.0
KILLS_PER_STAGE = ATTEMPTS - 1
"""All of them may meet the same task, and Spark gives a task up that failed ATTEMPTS times."""
KILLS = 3 * KILLS_PER_STAGE


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    with spark_started(SparkSettings("local[2]", tmp_path_factory.mktemp("spark"))) as started:
        yield started.engine


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return job_tree.tree_directory(tmp_path_factory.mktemp("name"))


def assert_right(done: MergedOn, out: Path) -> None:
    assert done.single_process_because is None
    assert differences(load_image(done.merged.image), job_tree.whole_tree()) == []
    names = sorted(path.name for path in out.iterdir())
    assert names == [job_tree.MERGED_NAME, f"{job_tree.MERGED_NAME}.md5"]


def test_hadoops_own_checkpoint_holds_the_same(engine: SparkEngine, tmp_path: Path) -> None:
    source = real("name-dir/VERSION").parent
    done = merge_on(engine, source / f"fsimage_{0:019d}", source, tmp_path, tmp_path)
    theirs = load_image(source / f"fsimage_{26:019d}")
    assert differences(load_image(done.merged.image), theirs) == []
    assert (done.merged.to_txid, done.single_process_because) == (26, None)


def children_of(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in found]


def python_workers(jvm: int) -> list[int]:
    """Return the JVM's Python workers: what its one daemon has forked."""
    daemons = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _parent(int(entry.name)) == jvm
    ]
    return [worker for daemon in daemons for worker in children_of(daemon)]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def test_killed_workers_change_nothing(engine: SparkEngine, current: Path, tmp_path: Path) -> None:
    jvm = engine.context._gateway.proc.pid
    stages: list[str] = []

    def told(at: Progress) -> None:
        if at.unit != "parts" or len(stages) == KILLS or stages.count(at.stage) == KILLS_PER_STAGE:
            return
        if at.done != at.total and (workers := python_workers(jvm)):
            stages.append(at.stage)
            os.kill(workers[len(stages) % len(workers)], signal.SIGKILL)

    done = merge_on(
        engine,
        current / job_tree.BASE_NAME,
        current,
        tmp_path,
        tmp_path,
        told,
        range_bytes=job_tree.RANGE_BYTES,
    )
    assert_right(done, tmp_path)
    assert (len(stages), len(set(stages))) == (KILLS, 3), stages


def test_a_killed_driver_takes_its_spark_along(
    engine: SparkEngine, current: Path, tmp_path: Path
) -> None:
    jvm = int(killed(current, tmp_path, "told", "20", engine="local[2]"))
    assert list(tmp_path.glob(f"{PREFIX}*")) != []
    assert_nothing_is_visible(tmp_path)
    # At once, whether or not the dead run's executors are still writing.
    done = merge_on(engine, current / job_tree.BASE_NAME, current, tmp_path, tmp_path)
    assert_right(done, tmp_path)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while Path(f"/proc/{jvm}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{jvm}").exists()
    assert_right(done, tmp_path)


def test_damage_that_a_task_finds_is_told_in_its_words(
    engine: SparkEngine, current: Path, tmp_path: Path
) -> None:
    """Keep the digest right, so that only reading the inodes can show it."""
    image = tmp_path / job_tree.BASE_NAME
    data = bytearray((current / job_tree.BASE_NAME).read_bytes())
    at = data.index(b"\x08\x02\x10")  # an INode: a directory, and its id
    data[at] = 0x7F
    image.write_bytes(data)
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    image.with_name(f"{image.name}.md5").write_text(f"{digest} *{image.name}\n")
    out = tmp_path / "out"
    with pytest.raises(ImageError, match=f"{image.name}.*INODE"):
        merge_on(engine, image, current, out, out)
    assert list(out.iterdir()) == []
