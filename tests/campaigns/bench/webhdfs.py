"""`./run bench webhdfs`: files up and down over WebHDFS, ours next to Hadoop's in one run.

Each side is a cluster of processes with one DataNode and one replica; curl is the client of both.
"""

import filecmp
import getpass
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import class_path, find_java
from deploy.local.cluster.layout import Layout, plan
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.site import datanode_overrides, site_xml
from deploy.local.cluster.zookeeper import LOG4J2
from tests.campaigns.bench.cpu import cpu_seconds
from tests.campaigns.bench.hadoop_cluster import START_SECONDS, HadoopCluster
from tests.campaigns.bench.report import Row, publish, unmeasured
from tests.interop.hadoop_jars import JarsMissing, server_jar
from tests.interop.hadoop_server import JARS

SPEED_BAR: Final = 0.8
GROWTH_BARS: Final = {"NameNode": 32.0, "DataNode": 128.0}
"""MB over the idle process, for 64 transfers: half of one for each at the NameNode; at the DataNode
2 MB: an upload's packets on their way, the buffer that takes them in, and what HTTP reads ahead."""
_UNIT: Final = "x Hadoop's speed"
_MEGABYTE: Final = 1024 * 1024
_WARM_UPS: Final = 1
_TRANSFER_SECONDS: Final = 900.0
_KEYS: Final = {
    "dfs.webhdfs.enabled": "true",
    "dfs.replication": "1",
    "dfs.datanode.hostname": "127.0.0.1",
    "dfs.namenode.safemode.extension": "0",
}
_HEAPS: Final = {"datanode": 1024}
"""MB; its pipeline and its HTTP side are one process."""
_WHAT: Final = {"up": "upload", "down": "download"}


@dataclass(slots=True)
class Side:
    """One cluster, and what each of its rounds took, in seconds."""

    url: str
    pids: dict[str, int]
    took: dict[str, list[float]] = field(default_factory=lambda: {"up": [], "down": []})
    cpu: dict[str, list[float]] = field(default_factory=lambda: {"up": [], "down": []})
    """Of the DataNode."""

    def round(self, local: Path, back: Path | None = None) -> None:
        """Send a file, read it (into ``back``), delete it."""
        self._timed("up", self.sending(local, "/file"))
        self._timed("down", self.reading("/file", back))
        _run([*_CURL, "-X", "DELETE", self._address("/file", "DELETE")])

    def sending(self, local: Path, path: str) -> list[str]:
        """Return the command that makes a file of a local one."""
        return [*_CURL, "-T", str(local), self._address(path, "CREATE", "overwrite=true")]

    def reading(self, path: str, into: Path | None = None) -> list[str]:
        return [*_CURL, "-o", str(into or os.devnull), self._address(path, "OPEN")]

    def _address(self, path: str, op: str, more: str = "") -> str:
        return f"{self.url}/webhdfs/v1{path}?op={op}&user.name={getpass.getuser()}&{more}"

    def _timed(self, way: str, command: Sequence[str]) -> None:
        began, used = time.monotonic(), cpu_seconds(self.pids["DataNode"])
        _run(command)
        self.took[way].append(time.monotonic() - began)
        self.cpu[way].append(cpu_seconds(self.pids["DataNode"]) - used)


_CURL: Final = ("curl", "--silent", "--show-error", "--fail", "--location")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_TRANSFER_SECONDS
    )
    if done.returncode:
        raise LocalClusterError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")


def speed_rows(ours: Side, theirs: Side, megabytes: int) -> list[Row]:
    """Return our speed in Hadoop's, each round against the one next to it, and our CPU."""
    rows = []
    for way, what in _WHAT.items():
        pairs = list(zip(ours.took[way], theirs.took[way], strict=True))
        ratios = [their / our for our, their in pairs]
        ratio = statistics.median(ratios)
        rates = [megabytes / statistics.median(one) for one in zip(*pairs, strict=True)]
        rows.append(
            Row(
                f"{what} of {megabytes} MB", ratio, _UNIT, f">= {SPEED_BAR}", ratio >= SPEED_BAR,
                f"{rates[0]:.0f} MB/s, Hadoop's {rates[1]:.0f} MB/s; {len(ratios)} rounds in turn: "
                f"{min(ratios):.2f}-{max(ratios):.2f}",
            )
        )  # fmt: skip
        used = [statistics.median(side.cpu[way]) * 100 / megabytes for side in (ours, theirs)]
        peer = f"Hadoop's {used[1]:.2f}"
        rows.append(Row(f"{what}, CPU of our DataNode", used[0], "s/100 MB", "-", None, peer))
    return rows


def unmeasured_rows(megabytes: int, why: str) -> list[Row]:
    return [
        unmeasured(f"{what} of {megabytes} MB", _UNIT, f">= {SPEED_BAR}", why)
        for what in _WHAT.values()
    ]


def memory_rows(grown: Mapping[tuple[str, str], float], at_once: int, each: int) -> list[Row]:
    """Return how many MB each daemon of ours grew over its idle size, uploads before downloads."""
    return [
        Row(
            f"{name}, {at_once} {_WHAT[way]}s at once", more, "MB more", f"<= {bar:g}",
            more <= bar, f"of {each} MB each",
        )
        for (name, way), more in grown.items()
        for bar in (GROWTH_BARS[name],)
    ]  # fmt: skip


def _grown(side: Side, local: Path, at_once: int) -> dict[tuple[str, str], float]:
    idle = {name: _megabytes(pid, "VmRSS") for name, pid in side.pids.items()}
    paths = [f"/f{number}" for number in range(at_once)]
    grown = {}
    for way, commands in {
        "up": [side.sending(local, path) for path in paths],
        "down": [side.reading(path) for path in paths],
    }.items():
        for pid in side.pids.values():
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
        _together(commands)
        for name, pid in side.pids.items():
            grown[name, way] = _megabytes(pid, "VmHWM") - idle[name]
    return grown


def _together(commands: Sequence[Sequence[str]]) -> None:
    with ExitStack() as all_ended:
        running = []
        for command in commands:
            one = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            all_ended.enter_context(one)
            all_ended.callback(one.kill)  # before it is waited for, where another one hangs
            running.append(one)
        ended = [(one.communicate(timeout=_TRANSFER_SECONDS)[1], one.returncode) for one in running]
    failed = [said for said, code in ended if code]
    if failed:
        raise LocalClusterError(f"{len(failed)} of {len(ended)} transfers failed: {failed[0]}")


def _megabytes(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


@contextmanager
def _our_side(folder: Path) -> Iterator[Side]:
    with open_cluster(folder, datanodes=1, more_keys=_KEYS) as cluster:
        cluster.up()
        yield _side(cluster.layout, cluster.supervisor)


@contextmanager
def _their_side(folder: Path) -> Iterator[Side]:
    """Run Hadoop's NameNode, without HA, and DataNode; raises JarsMissing, too."""
    layout = plan(folder, datanodes=1)
    (datanode,), (namenode, *_) = layout.datanodes, layout.namenodes
    ports = layout.namenodes[namenode]
    layout.conf_dir.mkdir(parents=True)
    keys = _KEYS | datanode_overrides(layout, datanode) | {
        "dfs.namenode.rpc-address": f"{HOST}:{ports.rpc}",
        "dfs.namenode.http-address": f"{HOST}:{ports.http}",
        "dfs.namenode.name.dir": layout.name_dir(namenode).as_uri(),
    }  # fmt: skip
    core = {"fs.defaultFS": f"hdfs://{HOST}:{ports.rpc}"}
    (layout.conf_dir / "core-site.xml").write_text(site_xml(core))
    (layout.conf_dir / "hdfs-site.xml").write_text(site_xml(keys))
    (folder / "log4j2.properties").write_text(LOG4J2.format(level="info"))
    jars = os.pathsep.join((str(layout.conf_dir), class_path(*JARS, first=server_jar())))
    with Supervisor(folder) as supervisor:
        cluster = HadoopCluster(layout, supervisor, find_java(), jars, more_heap=_HEAPS)
        cluster.start("format", "namenode", "-format", "-nonInteractive")
        if supervisor.processes["format"].wait(START_SECONDS) != 0:
            raise LocalClusterError(f"format: {supervisor.processes['format'].ended_early()}")
        supervisor.forget("format")
        cluster.start(namenode, "namenode")
        cluster.start(datanode, "datanode")
        yield _side(layout, supervisor)


def _side(layout: Layout, supervisor: Supervisor) -> Side:
    """Wait until a NameNode would send an upload on to the DataNode."""
    (datanode,) = layout.datanodes
    sides = {name: Side(layout.url(name), {}) for name in layout.namenodes}

    def ready() -> list[str]:
        return [name for name, side in sides.items() if _takes_files(side)]

    what = "an active with a DataNode"
    wait_until(lambda: bool(ready()), what=what, deadline_seconds=START_SECONDS)
    name = ready()[0]
    pids = {"NameNode": supervisor.processes[name].pid}
    sides[name].pids |= {**pids, "DataNode": supervisor.processes[datanode].pid}
    return sides[name]


def _takes_files(side: Side) -> bool:
    try:
        _run(side.sending(Path(os.devnull), "/ready"))
    except LocalClusterError:
        return False
    return True


def _patterned(path: Path, megabytes: int) -> Path:
    with path.open("wb") as file:
        for number in range(megabytes):
            file.write(number.to_bytes(4, "big") * (_MEGABYTE // 4))
    return path


def _measured(folder: Path, rounds: int, megabytes: int) -> list[Row]:
    """Measure the speed of both sides in turns; what comes back in the first is compared."""
    local, back = _patterned(folder / "local", megabytes), folder / "back"
    with ExitStack() as running:
        theirs = running.enter_context(_their_side(folder / "hadoop"))
        ours = running.enter_context(_our_side(folder / "ours"))
        for side in (ours, theirs):
            for _ in range(_WARM_UPS):
                side.round(local, back)
                if not filecmp.cmp(local, back, shallow=False):
                    raise LocalClusterError("what was read is not what was written")
            for figures in (*side.took.values(), *side.cpu.values()):
                figures.clear()
        for number in range(rounds):
            for side in (ours, theirs) if number % 2 == 0 else (theirs, ours):
                side.round(local)
        return speed_rows(ours, theirs, megabytes)


def _remembered(folder: Path, at_once: int, megabytes: int) -> list[Row]:
    local = _patterned(folder / "small", megabytes)
    with _our_side(folder / "many") as ours:
        ours.round(local)
        return memory_rows(_grown(ours, local, at_once), at_once, megabytes)


def _speed(folder: Path, rounds: int, megabytes: int) -> list[Row]:
    if os.environ.get("NNHA_INTEROP") != "1":
        why = "Hadoop's daemons are not asked for by NNHA_INTEROP=1"
        return unmeasured_rows(megabytes, why)
    try:
        return _measured(folder, rounds, megabytes)
    except JarsMissing as missing:
        return unmeasured_rows(megabytes, str(missing).splitlines()[0][:200])


SCENES: Final = ("speed", "memory")


@click.command()
@click.option("--only", multiple=True, type=click.Choice(SCENES), help="Not both scenes.")
@click.option("--rounds", default=5, show_default=True, help="Turns of each side.")
@click.option("--megabytes", default=1024, show_default=True, help="Of the file that is timed.")
@click.option("--at-once", default=64, show_default=True, help="Transfers whose memory counts.")
@click.option("--each", default=32, show_default=True, help="Megabytes of each of these.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(
    *, only: tuple[str, ...], rounds: int, megabytes: int, at_once: int, each: int, as_json: bool
) -> None:
    """Measure uploads and downloads over WebHDFS, with NNHA_INTEROP=1 next to Hadoop's."""
    if shutil.which("curl") is None:
        raise click.UsageError("curl is the client, and is not on PATH")
    before = os.getloadavg()
    with TemporaryDirectory(prefix="nnha-bench-") as name:
        folder = Path(name)
        scenes: dict[str, Callable[[], list[Row]]] = {
            "speed": lambda: _speed(folder, rounds, megabytes),
            "memory": lambda: _remembered(folder, at_once, each),
        }
        rows = [row for name in only or SCENES for row in _played(name, scenes[name])]
    load = {"before": before, "after": os.getloadavg()}
    raise SystemExit(publish("webhdfs", rows, as_json=as_json, more={"load": load}))


def _played(name: str, scene: Callable[[], list[Row]]) -> list[Row]:
    """Play a scene; one that breaks off says so, and the other has its rows all the same."""
    try:
        return scene()
    except LocalClusterError as failure:
        why = f"broke off: {str(failure).splitlines()[0][:200]}"
        return [Row(f"scene {name}", None, "-", "played to its end", False, why)]
