"""A standalone cluster of two workers, which have nothing of the driver's but what is shared."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ha.daemon.java import find_jars, find_java, quick_start_flags
from namenode_sim.image.reader import load_image
from tests import ROOT
from tests.namenode_sim.namespace.dump import differences
from tests.spark.merge import job_tree

_DEPLOY = "org.apache.spark.deploy"
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "sun.nio.ch", "sun.nio.cs", "sun.security.action",
)  # fmt: skip
"""What Spark's own scripts open to its classes."""
DEADLINE_SECONDS = 60.0


@contextmanager
def standalone(folder: Path, *, workers: int) -> Iterator[str]:
    """Run a cluster for the time of a ``with``; yield its URL."""
    with ExitStack() as stack:
        master = stack.enter_context(
            _process(folder / "master", f"{_DEPLOY}.master.Master", "--port", "0")
        )
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        logs = [stack.enter_context(_worker(folder / f"worker-{n}", url)) for n in range(workers)]
        for log in logs:
            _said(log, r"(Successfully registered) with master")
        yield url


def _worker(home: Path, url: str) -> AbstractContextManager[Path]:
    limits = ("--cores", "1", "--memory", "600m", "--work-dir", str(home / "work"))
    return _process(home, f"{_DEPLOY}.worker.Worker", *limits, url)


@contextmanager
def _process(home: Path, name: str, *arguments: str) -> Iterator[Path]:
    """Run a JVM that stands in ``home`` and logs to ``home``/log, until the block ends."""
    home.mkdir(parents=True)
    java, jars = find_java(), find_jars()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(jars.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # else a worker looks for Spark's sources
        "SPARK_LOCAL_DIRS": str(home),
        "PYSPARK_PYTHON": sys.executable,
    }
    flags = quick_start_flags(java, heap_megabytes=256)
    flags += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    command = [
        str(java.executable), *flags, "-cp", f"{jars}/*", name, "--host", "127.0.0.1",
        "--webui-port", "0", *arguments,
    ]  # fmt: skip
    log = home / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=home, env=environ, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE_SECONDS / 4)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text("utf-8", "replace")):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{log} does not say {pattern!r}: {log.read_text('utf-8', 'replace')}")


pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

SMALL: Mapping[str, str] = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Cluster:
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


@pytest.mark.long
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
