"""mkdirs through the active NameNode's RPC from threads of one Hadoop client JVM."""

import os
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

from deploy.local.cluster import open_cluster
from deploy.local.hadoop_client import client_argv
from deploy.local.java import Java
from tests import ROOT
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.world import World

SOURCE = ROOT / "tests/interop/java/nnha/MkdirsLoad.java"
MAIN = "nnha.MkdirsLoad"
SECONDS = 1.0
ROUNDS = 5
LOAD_SECONDS = 120.0
BARS: Final = {1: 1200, 16: 5500, 64: 6000}
HADOOP: Final = {1: 1140, 16: 5350, 64: 5655}


def mkdirs(world: World) -> list[Row]:
    """A whole local cluster, and Hadoop's client compiled for the load."""
    directory = world.directory / "cluster"
    with open_cluster(directory) as cluster:
        classes = directory / "classes"
        argv = client_argv(cluster.java, cluster.conf_dir, MAIN, log_directory=directory / "tmp")
        if not _compiled(cluster.java, argv[argv.index("-cp") + 1], classes):
            why = "there is no Java compiler"
            return [unmeasured(_name(n), "1/s", f">= {bar:,}", why) for n, bar in BARS.items()]
        cluster.up()
        argv[argv.index("-cp") + 1] += f"{os.pathsep}{classes}"
        done = subprocess.run(
            [*argv, str(SECONDS), str(ROUNDS)],
            capture_output=True,
            text=True,
            timeout=LOAD_SECONDS,
            check=True,
        )
        cluster.down()
    rates: defaultdict[int, list[float]] = defaultdict(list)
    for line in done.stdout.splitlines():
        threads, rate = line.split()
        rates[int(threads)].append(float(rate))
    return [_row(threads, statistics.median(rates[threads])) for threads in BARS]


def _name(threads: int) -> str:
    return f"mkdirs by RPC, {threads} threads"


def _row(threads: int, value: float) -> Row:
    bar = BARS[threads]
    peer = f"Hadoop {HADOOP[threads]:,}"
    return Row(_name(threads), value, "1/s", f">= {bar:,}", value >= bar, peer)


def _compiled(java: Java, class_path: str, classes: Path) -> bool:
    classes.mkdir(parents=True)
    compiler = ["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
    done = subprocess.run(
        [java.executable, *compiler, "-cp", class_path, "-d", classes, SOURCE],
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0
