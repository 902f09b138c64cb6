"""Hadoop's own QuorumJournalManager and JournalNodes on the work of the journal bench."""

import asyncio
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java, class_path, find_java
from deploy.local.cluster.zookeeper import LOG4J2
from journal.model import TxId
from tests import ROOT
from tests.campaigns.bench.load import ReadyOps, measure, percentile, rate
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.transports import start_nodes
from tests.campaigns.bench.world import OurNodes, World
from tests.interop.hadoop_jars import JarsMissing, server_jar
from tests.interop.hadoop_server import JARS

SOURCE = ROOT / "tests/interop/java/org/apache/hadoop/hdfs/server/namenode"
MAIN = "org.apache.hadoop.hdfs.server.namenode.JournalLoad"
COMPILE_SECONDS = 60.0
START_SECONDS = 60.0
DRIVE_SECONDS = 300.0
MEASURE_SECONDS = 3.0
TURNS = 2
"""Each makes three journals on our nodes, which make eight without a name."""
OUR_SECONDS = 1.5


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
        """Start three of Hadoop's JournalNodes, each in its own JVM; return their RPC ports."""
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

    def drive(
        self, ports: Sequence[int], journal: str, *, seconds: float = MEASURE_SECONDS
    ) -> HadoopFigures:
        """Run Hadoop's writer on the nodes at these ports, ours or theirs; the journal is new."""
        uri = _uri(ports, journal)
        with (self._folder / "drive.log").open("wb") as log:
            done = subprocess.run(
                self._command(768, "drive", uri, str(seconds)),
                stdout=subprocess.PIPE,
                stderr=log,
                timeout=DRIVE_SECONDS,
                check=False,
            )
        if done.returncode != 0:
            said = (self._folder / "drive.log").read_text(errors="replace")
            why = next((line for line in said.splitlines() if "Exception" in line), "no reason")
            raise LocalClusterError(f"Hadoop's writer failed: {why}\n{said[-2000:]}")
        return HadoopFigures(**json.loads(done.stdout))

    def take_turns(self, running: ExitStack, ports: Sequence[int]) -> "Turns":
        """Start Hadoop's writer on the nodes at these ports, warm, and idle until asked."""
        log = running.enter_context((self._folder / "turns.log").open("wb"))
        process = subprocess.Popen(
            self._command(768, "turns", _uri(ports, "turns")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        running.callback(process.wait, START_SECONDS)
        running.callback(process.kill)
        return Turns(process)

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


class Turns:
    """A JVM that commits single edits while it is asked to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._answer()

    def p50_ms(self, seconds: float) -> float:
        """Commit for ``seconds``; raise LocalClusterError if the JVM has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        if not told:
            raise LocalClusterError("Hadoop's writer has ended")
        return told


def _uri(ports: Sequence[int], journal: str) -> str:
    return f"qjournal://{';'.join(f'127.0.0.1:{port}' for port in ports)}/{journal}"


@dataclass(slots=True)
class Found:
    """What the three pairs of writer and nodes did, turn by turn."""

    own: list[HadoopFigures] = field(default_factory=list)
    mixed: list[HadoopFigures] = field(default_factory=list)
    ours: list[tuple[float, float]] = field(default_factory=list)
    """Milliseconds of a single commit, and edits a second of 256 callers."""


async def hadoop_rows(world: World) -> list[Row]:
    """Measure our writer on our nodes, Hadoop's on both, in turns; a row says what is lacking."""
    found = Found()
    try:
        with ExitStack() as running:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
            driver = await asyncio.to_thread(Driver, folder)
            theirs = driver.start_nodes(running)
            nodes = start_nodes(running, folder / "ours", lanes="127.0.0.1:0")
            for turn in range(TURNS):
                name = f"turn{turn}"
                found.own.append(await asyncio.to_thread(driver.drive, theirs, name))
                found.ours.append(await _our_turn(OurNodes(nodes.grpc, []), turn))
                found.mixed.append(await asyncio.to_thread(driver.drive, nodes.hadoop, name))
    except (JarsMissing, LocalClusterError) as missing:
        return [unmeasured("Hadoop's journal", "-", "-", str(missing).splitlines()[0][:200])]
    for who, figures in {"Hadoop, 1": found.own, "mixed, 1": found.mixed}.items():
        world.latencies[who] = [took / 1000 for one in figures for took in one.single_ms]
    own, mixed = _median(found.own), _median(found.mixed)
    return [
        *_bars(found),
        *rows_of(own, "Hadoop"),
        *rows_of(mixed, "Hadoop's writer on our nodes", own),
    ]


async def _our_turn(nodes: OurNodes, turn: int) -> tuple[float, float]:
    single, _ = await _of(nodes, 1, f"ours{turn}")
    _, many = await _of(nodes, 256, f"many{turn}")
    return single, many


async def _of(nodes: OurNodes, callers: int, name: str) -> tuple[float, float]:
    writer = nodes.writer(f"{name}")
    await writer.format()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    system = ReadyOps(writer, TxId(1))
    system.make(20_000 if callers == 1 else 200_000)
    took = await measure(callers, system.write, OUR_SECONDS)
    await writer.close()
    return percentile(took, 0.5) * 1000, rate(took, OUR_SECONDS)


def _median(figures: Sequence[HadoopFigures]) -> HadoopFigures:
    def of(name: str) -> float:
        return float(statistics.median(getattr(one, name) for one in figures))

    names = [each.name for each in fields(HadoopFigures) if each.name != "single_ms"]
    return HadoopFigures(single_ms=[], **{name: of(name) for name in names})


def _bars(found: Found) -> list[Row]:
    """Hold each turn against the turn next to it."""
    own50 = [one.single_p50_ms for one in found.own]
    own_rate = [one.batch_ops_per_second for one in found.own]
    mixed50 = [one.single_p50_ms for one in found.mixed]
    mixed_rate = [one.batch_ops_per_second for one in found.mixed]
    ours50, ours_rate = ([one[which] for one in found.ours] for which in (0, 1))
    return [
        _held("commit p50 / Hadoop's, 1 caller", ours50, own50, "<= 1", "ms"),
        _held("ops/s, 256 callers / Hadoop's, 64 KB batches", ours_rate, own_rate, ">= 1", "1/s"),
        _held("Java writer, our nodes / its own, p50", mixed50, own50, "<= 1", "ms"),
        _held("Java writer, our nodes / its own, edits/s", mixed_rate, own_rate, ">= 1", "1/s"),
    ]


def _held(figure: str, mine: Sequence[float], theirs: Sequence[float], bar: str, unit: str) -> Row:
    ratio = statistics.median(one / other for one, other in zip(mine, theirs, strict=True))
    holds = ratio <= 1 if bar.startswith("<") else ratio >= 1
    medians = statistics.median(mine), statistics.median(theirs)
    return Row(figure, ratio, "ratio", bar, holds, f"{medians[0]:,.4g} to {medians[1]:,.4g} {unit}")


def rows_of(figures: HadoopFigures, who: str, other: HadoopFigures | None = None) -> list[Row]:
    """Return the figures as rows without a bar: they are what ours are held against."""

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
