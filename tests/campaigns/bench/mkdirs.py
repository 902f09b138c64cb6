"""mkdirs by threads of Hadoop's client through the active NameNode, ours and Hadoop's in turns."""

import os
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java, find_java
from deploy.local.workload.hadoop_client import client_argv
from tests import ROOT
from tests.campaigns.bench.hadoop_cluster import hadoop_cluster
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.world import World
from tests.interop.hadoop_jars import JarsMissing

SOURCE = ROOT / "tests/interop/java/nnha/MkdirsLoad.java"
MAIN = "nnha.MkdirsLoad"
SECONDS = 1.0
ROUNDS = 5
BARS: Final = {1: 1200, 16: 5500, 64: 8000}
_WARM_UPS: Final = 3
"""A JVM compiles what it has done often, the client's and the NameNode's."""

Rates = Mapping[int, Sequence[float]]


class Client:
    """A JVM with Hadoop's client of one cluster, compiled for the load."""

    def __init__(self, running: ExitStack, java: Java, conf_dir: Path, classes: Path) -> None:
        argv = client_argv(java, conf_dir, MAIN, log_directory=classes)
        argv[argv.index("-cp") + 1] += f"{os.pathsep}{classes}"
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.callback(self._process.wait)
        running.callback(self._process.kill)

    def rate(self, threads: int, seconds: float) -> float:
        """Return mkdirs a second of ``threads`` threads.

        Raises:
            LocalClusterError: if the client has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{threads} {seconds}\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        if not told:
            raise LocalClusterError("the client's JVM has ended")
        return float(told)


def mkdirs(world: World) -> list[Row]:
    """Measure a whole local cluster of ours, and one of Hadoop's where its jar is here."""
    classes = world.directory / "mkdirs-classes"
    with ExitStack() as running:
        java = find_java()
        cluster = running.enter_context(open_cluster(world.directory / "cluster"))
        if not _compiled(java, cluster.conf_dir, classes):
            why = "there is no Java compiler"
            return [unmeasured(_name(n), "1/s", f">= {bar:,}", why) for n, bar in BARS.items()]
        cluster.up()
        clients = {"ours": Client(running, java, cluster.conf_dir, classes)}
        why = ""
        try:
            theirs = running.enter_context(hadoop_cluster(world.directory / "hadoop-cluster"))
            clients["Hadoop's"] = Client(running, java, theirs.conf_dir, classes)
        except (JarsMissing, LocalClusterError) as missing:
            why = str(missing).splitlines()[0]
        found = _turns(clients)
    rows = [_row(threads, found["ours"][threads], found.get("Hadoop's")) for threads in BARS]
    return rows if not why else [*rows, unmeasured("mkdirs by RPC at Hadoop's", "1/s", "-", why)]


def _turns(clients: Mapping[str, Client]) -> Mapping[str, Rates]:
    found: dict[str, defaultdict[int, list[float]]] = {name: defaultdict(list) for name in clients}
    for client in clients.values():
        for _ in range(_WARM_UPS):
            client.rate(16, SECONDS)
    for turn in range(ROUNDS):
        names = list(clients) if turn % 2 == 0 else list(clients)[::-1]
        for threads in BARS:
            for name in names:
                found[name][threads].append(clients[name].rate(threads, SECONDS))
    return found


def _name(threads: int) -> str:
    return f"mkdirs by RPC, {threads} threads"


def _row(threads: int, ours: Sequence[float], theirs: Rates | None) -> Row:
    """Return the row; where Hadoop's is measured, its rate is a bar, too."""
    value, bar = statistics.median(ours), BARS[threads]
    if theirs is None:
        return Row(_name(threads), value, "1/s", f">= {bar:,}", value >= bar, "-")
    peer = statistics.median(theirs[threads])
    ratio = statistics.median(a / b for a, b in zip(ours, theirs[threads], strict=True))
    holds = value >= bar and ratio >= 1
    told = f"Hadoop's NameNode {peer:,.0f}/s: {ratio:.2f} x"
    return Row(_name(threads), value, "1/s", f">= {bar:,} and >= Hadoop's", holds, told)


def _compiled(java: Java, conf_dir: Path, classes: Path) -> bool:
    classes.mkdir(parents=True)
    argv = client_argv(java, conf_dir, MAIN, log_directory=classes)
    compiler = ["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
    done = subprocess.run(
        [java.executable, *compiler, "-cp", argv[argv.index("-cp") + 1], "-d", classes, SOURCE],
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0
