"""Hadoop's own NNThroughputBenchmark against our NameNode and Hadoop's, in turns.

Each row has a JVM of its own, which takes two to four times the CPU of the NameNode: the rates are
those of the client and of the machine.  What is held against Hadoop is the NameNode's CPU a call.
"""

import re
import statistics
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import class_path, find_java
from deploy.local.cluster.zookeeper import LOG4J2
from tests.campaigns.bench.blocks_sides import Side, both_sides
from tests.campaigns.bench.cpu import cpu_seconds
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.world import World
from tests.interop.hadoop_jars import JarsMissing, server_jar
from tests.interop.hadoop_server import JARS

MAIN: Final = "org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark"
OPERATIONS: Final = ("mkdirs", "create", "open", "fileStatus", "rename", "delete")
THREADS: Final = (16, 64)
TURNS: Final = 5
"""The first of them only warms up, and finds how many calls a row takes."""
SECONDS: Final = 3.0
FIRST_COUNT: Final = 8000
MARGIN: Final = 1.2
RUN_SECONDS: Final = 300.0
HEAP_MEGABYTES: Final = 512
SAMPLE_SECONDS: Final = 0.01
_RATE: Final = re.compile(r"Ops per sec: ([0-9.]+)")
_ELAPSED: Final = re.compile(r"Elapsed Time: ([0-9.]+)")
_BAR: Final = "<= 1"
_UNIT: Final = "x Hadoop's"


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: calls a second, and microseconds of CPU a call."""

    rate: float
    server: float
    client: float


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    server: float
    client: float


Found = dict[tuple[str, int, str], list[Ran]]


def nnthroughput(world: World) -> list[Row]:
    """Measure one active NameNode of each, with three JournalNodes of its own."""
    try:
        with both_sides(world.directory / "nnthroughput") as sides:
            for side in sides:
                side.restart_from(side.empty_images)
            found = _turns(sides, _command(world.directory))
    except (JarsMissing, LocalClusterError) as missing:
        return [unmeasured("NNThroughputBenchmark", _UNIT, _BAR, str(missing).splitlines()[0])]
    return [
        _row(operation, threads, found, [side.whose for side in sides])
        for operation in OPERATIONS
        for threads in THREADS
    ]


def _turns(sides: Sequence[Side], command: Sequence[str]) -> Found:
    found: Found = defaultdict(list)
    for turn in range(TURNS):
        for operation in OPERATIONS:
            for threads in THREADS:
                for side in sides if turn % 2 == 0 else sides[::-1]:
                    before = found[operation, threads, side.whose]
                    fastest = max((one.rate for one in before), default=0.0)
                    count = int(fastest * SECONDS * MARGIN) or FIRST_COUNT
                    before.append(_run(command, side, operation, threads, count))
    return {key: runs[1:] for key, runs in found.items()}


def _command(folder: Path) -> list[str]:
    settings = folder / "nnthroughput.properties"
    settings.write_text(LOG4J2.format(level="info"))
    return [
        str(find_java().executable),
        f"-Xmx{HEAP_MEGABYTES}m",
        f"-Dlog4j2.configurationFile={settings}",
        f"-Dhadoop.log.dir={folder}",
        "-cp",
        class_path(*JARS, first=server_jar()),
        MAIN,
    ]


def _run(command: Sequence[str], side: Side, operation: str, threads: int, count: int) -> Ran:
    """Return what one run took in its measured phase; making files and its clean-up are not."""
    many = "-dirs" if operation == "mkdirs" else "-files"
    options = ["-op", operation, "-threads", str(threads), many, str(count)]
    if operation != "mkdirs":
        options += ["-blockSize", str(1 << 20)]
    process = subprocess.Popen(
        [*command, "-fs", f"hdfs://{side.address}", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    ended = threading.Timer(RUN_SECONDS, process.kill)
    ended.start()
    try:
        with process, _Sampler(side, process.pid) as sampler:
            assert process.stdout is not None
            said, rate, measured_until = "", 0.0, 0.0
            for line in process.stdout:
                said += line
                if _ELAPSED.search(line):
                    measured_until = time.monotonic()
                if match := _RATE.search(line):
                    rate = float(match[1])
    finally:
        ended.cancel()
    if process.returncode != 0 or not rate:
        raise LocalClusterError(f"{operation} at {side.whose} NameNode failed: {said[-2000:]}")
    return sampler.between(measured_until - count / rate, measured_until, count, rate)


class _Sampler:
    """Looks at the CPU clocks of a NameNode and its client all the while."""

    def __init__(self, side: Side, client: int) -> None:
        self._side, self._client = side, client
        self._samples: list[_Sample] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "_Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def between(self, begin: float, end: float, count: int, rate: float) -> Ran:
        """Return what this number of calls cost, by the looks next to these moments."""
        first = min(self._samples, key=lambda one: abs(one.at - begin))
        last = min(self._samples, key=lambda one: abs(one.at - end))
        server, client = last.server - first.server, last.client - first.client
        return Ran(rate, server * 1e6 / count, client * 1e6 / count)

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            try:
                client = cpu_seconds(self._client)
            except OSError:
                return  # it has ended
            self._samples.append(_Sample(time.monotonic(), self._side.cpu_seconds(), client))


def _row(operation: str, threads: int, found: Found, names: Sequence[str]) -> Row:
    ours, theirs = (found[operation, threads, name] for name in names)
    pairs = list(zip(ours, theirs, strict=True))
    costs = [our.server / their.server for our, their in pairs]
    rates = [our.rate / their.rate for our, their in pairs]
    cost = statistics.median(costs)

    def middles(figure: str) -> str:
        both = (statistics.median(getattr(one, figure) for one in side) for side in (ours, theirs))
        return " to ".join(f"{value:,.0f}" for value in both)

    return Row(
        f"NNThroughputBenchmark {operation}, {threads} threads: NameNode's CPU a call",
        cost,
        _UNIT,
        _BAR,
        cost <= 1,
        f"{middles('server')} us ({min(costs):.2f}-{max(costs):.2f} x), client's "
        f"{middles('client')} us; {middles('rate')} /s: {statistics.median(rates):.2f} x "
        f"({min(rates):.2f}-{max(rates):.2f})",
    )
