"""Hadoop's own QuorumJournalManager and JournalNodes on the work of the journal bench."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from deploy.local.errors import LocalClusterError
from deploy.local.java import Java, class_path, find_java
from deploy.local.zookeeper import LOG4J2
from tests import ROOT
from tests.campaigns.bench.report import Row, publish, unmeasured
from tests.campaigns.bench.transports import start_nodes
from tests.campaigns.bench.world import World
from tests.interop.hadoop_jars import JarsMissing, server_jar
from tests.interop.hadoop_server import JARS

SOURCE = ROOT / "tests/interop/java/org/apache/hadoop/hdfs/server/namenode"
MAIN = "org.apache.hadoop.hdfs.server.namenode.JournalLoad"
COMPILE_SECONDS = 60.0
START_SECONDS = 60.0
DRIVE_SECONDS = 300.0
MEASURE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class HadoopFigures:
    """What the Java driver measured, in its own words."""

    single_p50_ms: float
    single_p99_ms: float
    batch_ops_per_second: float
    batch_megabytes_per_second: float
    large_megabytes_per_second: float
    takeover_one_seconds: float
    takeover_64mb_seconds: float
    single_ms: list[float]
    """The distribution of the first two, in equal shares."""


class Driver:
    """The compiled Java main, ready to run."""

    def __init__(self, folder: Path) -> None:
        """Compile it.

        Raises:
            JarsMissing, LocalClusterError: Hadoop's jars, a Java or its compiler are not here.
        """
        self._folder = folder
        self._java: Java = find_java()
        jars = class_path(*JARS, first=server_jar())
        classes = folder / "classes"
        classes.mkdir()
        self._class_path = f"{classes}{os.pathsep}{jars}"
        settings = folder / "log4j2.properties"
        settings.write_text(LOG4J2.format(level="warn"))
        self._options = [f"-Dlog4j2.configurationFile={settings}", f"-Dhadoop.log.dir={folder}"]
        compiler = ["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
        sources = [str(SOURCE / "JournalLoad.java")]
        command = [*compiler, "-cp", jars, "-d", str(classes), *sources]
        done = subprocess.run(
            [self._java.executable, *command],
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise LocalClusterError(f"cannot compile {sources[0]}: {done.stderr[-2000:]}")

    def start_nodes(self, running: ExitStack) -> list[int]:
        """Three of Hadoop's JournalNodes, each in a JVM of its own; their RPC ports."""
        nodes = []
        for number in range(3):
            log = running.enter_context((self._folder / f"jn{number}.log").open("wb"))
            process = subprocess.Popen(
                self._command(512, "node", str(self._folder / f"jn{number}")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            running.callback(process.wait, START_SECONDS)
            running.callback(process.kill)
            nodes.append(process)
        ports = []
        for process in nodes:
            assert process.stdout is not None
            assert process.stdin is not None
            running.callback(process.stdout.close)
            running.callback(process.stdin.close)
            answer = process.stdout.readline().split()
            if len(answer) != 2:
                raise LocalClusterError(f"Hadoop's JournalNode did not start; see {self._folder}")
            ports.append(int(answer[0]))
        return ports

    def drive(self, ports: Sequence[int], *, seconds: float = MEASURE_SECONDS) -> HadoopFigures:
        """Hadoop's writer on the nodes at these ports, whosever they are; they have no journal."""
        uri = f"qjournal://{';'.join(f'127.0.0.1:{port}' for port in ports)}/bench"
        with (self._folder / "drive.log").open("wb") as log:
            done = subprocess.run(
                self._command(768, "drive", uri, str(seconds)),
                stdout=subprocess.PIPE,
                stderr=log,
                timeout=DRIVE_SECONDS,
                check=False,
            )
        if done.returncode != 0:
            said = (self._folder / "drive.log").read_text(errors="replace")[-2000:]
            raise LocalClusterError(f"Hadoop's writer failed: {said}")
        return HadoopFigures(**json.loads(done.stdout))

    def _command(self, heap_megabytes: int, *arguments: str) -> list[str]:
        return [
            str(self._java.executable),
            f"-Xmx{heap_megabytes}m",
            *self._options,
            "-cp",
            self._class_path,
            MAIN,
            *arguments,
        ]


def hadoop_rows(world: World | None = None) -> list[Row]:
    """Hadoop's figures for the journal bench: its writer on its own JournalNodes and on ours.

    Where Hadoop's jar, a Java or its compiler is not here, one row says so.
    """
    try:
        with ExitStack() as running:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
            driver = Driver(folder)
            with ExitStack() as nodes:
                own = driver.drive(driver.start_nodes(nodes))
            with ExitStack() as nodes:
                ports = start_nodes(nodes, folder / "ours", lanes="off").hadoop
                ours = driver.drive(ports)
    except (JarsMissing, LocalClusterError) as missing:
        return [unmeasured("Hadoop's journal", "-", "-", str(missing).splitlines()[0][:200])]
    if world is not None:
        for name, figures in {"Hadoop, 1": own, "mixed, 1": ours}.items():
            world.latencies[name] = [took / 1000 for took in figures.single_ms]
    return [*rows_of(own, "Hadoop"), *rows_of(ours, "Hadoop's writer on our nodes", own)]


def rows_of(figures: HadoopFigures, who: str, other: HadoopFigures | None = None) -> list[Row]:
    """The figures as rows without a bar: they are what ours are held against."""

    def row(what: str, value: float, unit: str, beside: float | None) -> Row:
        peer = "-" if beside is None else f"on Hadoop's nodes: {beside:,.4g} {unit}"
        return Row(f"{who}: {what}", value, unit, "-", None, peer)

    return [
        row(what, getattr(figures, name), unit, None if other is None else getattr(other, name))
        for what, name, unit in (
            ("commit p50, 1 caller", "single_p50_ms", "ms"),
            ("commit p99, 1 caller", "single_p99_ms", "ms"),
            ("edits/s, 64 KB batches", "batch_ops_per_second", "1/s"),
            ("bytes/s, 64 KB batches", "batch_megabytes_per_second", "MB/s"),
            ("bytes/s, 256 KB batches", "large_megabytes_per_second", "MB/s"),
            ("takeover, 1 edit", "takeover_one_seconds", "s"),
            ("takeover, 64 MB", "takeover_64mb_seconds", "s"),
        )
    ]


if __name__ == "__main__":
    raise SystemExit(publish("hadoop", hadoop_rows(), as_json="--json" in sys.argv))
