"""Hadoop's own NNThroughputBenchmark against our NameNode and Hadoop's, in turns."""

import re
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import class_path, find_java
from deploy.local.cluster.zookeeper import LOG4J2
from tests.campaigns.bench.blocks_sides import Side, both_sides
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.world import World
from tests.interop.hadoop_jars import JarsMissing, server_jar
from tests.interop.hadoop_server import JARS

MAIN: Final = "org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark"
OPERATIONS: Final = ("mkdirs", "create", "open", "fileStatus", "rename", "delete")
THREADS: Final = (16, 64)
ROUNDS: Final = 2
COUNT: Final = 4000
"""Directories or files of one run: a second or so of work."""
WARM_UP: Final = 20_000
"""Files that each NameNode makes first: a JVM compiles what it has done often."""
RUN_SECONDS: Final = 120.0
HEAP_MEGABYTES: Final = 512
_RATE: Final = re.compile(r"Ops per sec: ([0-9.]+)")
_BAR: Final = ">= 1"
_UNIT: Final = "x Hadoop's rate"

Found = dict[tuple[str, int, str], list[float]]


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
    for side in sides:
        _rate(command, side, "create", 16, WARM_UP)
    for turn in range(ROUNDS):
        for operation in OPERATIONS:
            for threads in THREADS:
                for side in sides if turn % 2 == 0 else sides[::-1]:
                    rate = _rate(command, side, operation, threads, COUNT)
                    found[operation, threads, side.whose].append(rate)
    return found


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


def _rate(command: Sequence[str], side: Side, operation: str, threads: int, count: int) -> float:
    """Return operations a second, as it counts them; its own clean-up is not counted."""
    many = "-dirs" if operation == "mkdirs" else "-files"
    options = ["-op", operation, "-threads", str(threads), many, str(count)]
    if operation != "mkdirs":
        options += ["-blockSize", str(1 << 20)]
    done = subprocess.run(
        [*command, "-fs", f"hdfs://{side.address}", *options],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    rates = _RATE.findall(done.stdout + done.stderr)
    if done.returncode != 0 or not rates:
        said = (done.stdout + done.stderr)[-2000:]
        raise LocalClusterError(f"{operation} at {side.whose} NameNode failed: {said}")
    return float(rates[-1])


def _row(operation: str, threads: int, found: Found, names: Sequence[str]) -> Row:
    ours, theirs = (found[operation, threads, name] for name in names)
    ratio = statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
    figures = (statistics.median(ours), statistics.median(theirs))
    return Row(
        f"NNThroughputBenchmark {operation}, {threads} threads",
        ratio,
        _UNIT,
        _BAR,
        ratio >= 1,
        f"{figures[0]:,.0f}/s, Hadoop's NameNode {figures[1]:,.0f}/s",
    )
