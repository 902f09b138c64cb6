"""A standalone cluster of two workers, which have nothing of the driver's but what is shared."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ha.daemon.java import find_jars, find_java
from namenode_sim.image.reader import load_image
from tests import ROOT
from tests.namenode_sim.namespace.dump import differences
from tests.spark.merge import job_tree
from tests.spark.merge.standalone import standalone

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

SMALL: Mapping[str, str] = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where it is, and where its workers have their directories."""

    url: str
    folder: Path

    def executors(self) -> set[Path]:
        """Return the directories that executors stood in, with the code that was sent to them."""
        found = self.folder.glob("worker-*/*/app-*/*/nnha-code.zip")
        return {path.parent for path in found}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with standalone(folder, workers=2) as url:
        yield Cluster(url, folder)


def merge_arguments(current: Path, out: Path) -> list[str]:
    properties = [text for key, value in SMALL.items() for text in ("--conf", f"{key}={value}")]
    places = ["--image", current / job_tree.BASE_NAME, "--edits", current, "--out", out, "--json"]
    return [*map(str, places), *properties]


def assert_merged(ended: "subprocess.CompletedProcess[str]", out: Path) -> dict[str, object]:
    assert ended.returncode == 0, ended.stderr
    facts: dict[str, object] = json.loads(ended.stdout.splitlines()[-1])  # spark-submit mixes
    assert (facts["engine"], facts["to_txid"]) == ("spark", job_tree.LAST_OF_TREE)
    assert differences(load_image(out / job_tree.MERGED_NAME), job_tree.whole_tree()) == []
    assert sorted(path.name for path in out.iterdir()) == [
        job_tree.MERGED_NAME,
        f"{job_tree.MERGED_NAME}.md5",
    ]
    return facts


def test_the_command_merges_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    current, out = job_tree.tree_directory(tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "ha.cli.main", "checkpoint", "merge", "--engine", "spark"]
    ended = subprocess.run(
        [*command, "--master", cluster.url, *merge_arguments(current, out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    facts = assert_merged(ended, out)
    assert {path.parents[2].name for path in cluster.executors()} == {"worker-0", "worker-1"}
    seconds = facts["spark_start_seconds"]
    assert isinstance(seconds, float)
    assert seconds > 0


@pytest.mark.long
def test_spark_submit_merges(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.executors()
    current, out = job_tree.tree_directory(tmp_path), tmp_path / "out"
    home = find_jars().parent
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    submit = [home / "bin" / "spark-submit", "--master", cluster.url, "--driver-memory", "512m"]
    submit += ["--conf", "spark.log.level=ERROR", ROOT / "spark" / "submit.py"]
    ended = subprocess.run(
        [*map(str, submit), *merge_arguments(current, out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environ,
    )
    assert_merged(ended, out)
    assert len(cluster.executors() - before) == 2
