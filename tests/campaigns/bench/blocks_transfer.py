"""Blocks through DataNodes: ours and Hadoop's in turn, under Hadoop's NameNode and its client.

NameNodes, client and Hadoop's DataNodes are in one JVM, ours in a process each.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.campaigns.bench.cpu import cpu_seconds
from tests.campaigns.bench.report import Row, unmeasured
from tests.interop.hadoop_server import Hadoop, JavaObject, running_hadoop
from tests.interop.our_datanodes import java_name_node, our_data_nodes

MEGABYTES: Final = 256
ROUNDS: Final = 5
_NAMES: Final = ("dn1", "dn2", "dn3")
_BLOCK_BYTES: Final = 128 * 1024 * 1024
_HEAP_MEGABYTES: Final = 2048
_WARM_UPS: Final = 2
_CAT_BUFFER_BYTES: Final = 4096
"""io.file.buffer.size, with which ``fs -cat`` copies."""
_PUT: Final = f"-put {MEGABYTES} MB x 3"
_CAT: Final = f"-cat {MEGABYTES} MB"
_PUT_BAR: Final = 0.4
_CAT_BAR: Final = 0.6
_UNIT: Final = "x Hadoop's speed"
_SETTINGS: Final = {"dfs.blocksize": str(_BLOCK_BYTES), "dfs.replication": "3"}


@dataclass(slots=True)
class Side:
    """One file system and what it took, in seconds."""

    hadoop: Hadoop
    fs: JavaObject
    local: Path
    pids: list[int] = field(default_factory=list)
    put_seconds: list[float] = field(default_factory=list)
    cat_seconds: list[float] = field(default_factory=list)
    put_cpu: list[float] = field(default_factory=list)
    cat_cpu: list[float] = field(default_factory=list)
    """CPU seconds of all of ``pids``."""

    def round(self) -> None:
        """Put a file, read it, delete it."""
        path = self.hadoop.path("/file")
        self._timed(self._put, self.put_seconds, self.put_cpu)
        self._timed(self._cat, self.cat_seconds, self.cat_cpu)
        self.fs.delete(path, False)

    def forget(self) -> None:
        """Forget what was measured until now: it was to warm up."""
        for figures in (self.put_seconds, self.cat_seconds, self.put_cpu, self.cat_cpu):
            figures.clear()

    def _timed(self, work: Callable[[], None], seconds: list[float], cpu: list[float]) -> None:
        began, used = time.monotonic(), self._used()
        work()
        seconds.append(time.monotonic() - began)
        cpu.append(self._used() - used)

    def _used(self) -> float:
        return sum(cpu_seconds(pid) for pid in self.pids)

    def _put(self) -> None:
        local = self.hadoop.path(self.local.as_uri())
        self.fs.copyFromLocalFile(False, True, local, self.hadoop.path("/file"))

    def _cat(self) -> None:
        io = self.hadoop.hadoop.io.IOUtils
        source = self.fs.open(self.hadoop.path("/file"))
        io.copyBytes(source, io.NullOutputStream(), _CAT_BUFFER_BYTES, True)


def transfer_rows() -> list[Row]:
    """Return ``-put`` of a file with three replicas and ``-cat``, next to Hadoop's DataNodes.

    Raises:
        JarsMissing: if Hadoop's jar is not here.
    """
    with TemporaryDirectory(prefix="nnha-bench-") as folder:
        theirs, ours = _measured(Path(folder))
    return [
        _beside(_PUT, _PUT_BAR, ours.put_seconds, theirs.put_seconds),
        _beside(_CAT, _CAT_BAR, ours.cat_seconds, theirs.cat_seconds),
        _cpu("-put, CPU of a DataNode of ours", ours.put_cpu, len(_NAMES)),
        _cpu("-cat, CPU of a DataNode of ours", ours.cat_cpu, 1),
    ]


def unmeasured_rows(why: str) -> list[Row]:
    bars = ((_PUT, _PUT_BAR), (_CAT, _CAT_BAR))
    return [unmeasured(name, _UNIT, f">= {bar}", why) for name, bar in bars]


def _beside(name: str, bar: float, ours: list[float], theirs: list[float]) -> Row:
    """Return our speed in Hadoop's; each round against the round next to it."""
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    ratio = statistics.median(ratios)
    return Row(
        name, ratio, _UNIT, f">= {bar}", ratio >= bar,
        f"{statistics.median(ours):.2f} s, Hadoop's DataNodes {statistics.median(theirs):.2f} s; "
        f"{len(ratios)} rounds in turn: {min(ratios):.2f}-{max(ratios):.2f}",
    )  # fmt: skip


def _cpu(name: str, seconds: list[float], nodes: int) -> Row:
    used = statistics.median(seconds) / nodes / (MEGABYTES / 100)
    return Row(name, used, "s/100 MB", "-", None, f"median of {len(seconds)} rounds")


def _measured(folder: Path) -> tuple[Side, Side]:
    local = folder / "local"
    local.write_bytes(bytes(range(251)) * (MEGABYTES * 1024 * 1024 // 251))
    with (
        running_hadoop(folder, heap_megabytes=_HEAP_MEGABYTES) as hadoop,
        _sides(hadoop, folder, local) as sides,
    ):
        for _ in range(_WARM_UPS):
            for side in sides:
                side.round()
        for side in sides:
            side.forget()
        for number in range(ROUNDS):
            for side in sides if number % 2 == 0 else reversed(sides):
                side.round()
        return sides


@contextmanager
def _sides(hadoop: Hadoop, folder: Path, local: Path) -> Iterator[tuple[Side, Side]]:
    """Run Hadoop's DataNodes and ours, three each, under a NameNode of their own."""
    their_folder, our_folder = folder / "theirs", folder / "ours"
    our_folder.mkdir()
    with (
        hadoop.cluster(their_folder, data_nodes=len(_NAMES), settings=_SETTINGS) as cluster,
        java_name_node(hadoop, our_folder, settings=_SETTINGS) as alone,
        our_data_nodes(our_folder, alone) as nodes,
    ):
        theirs = Side(hadoop, _client(hadoop, cluster.getNameNodePort()), local)
        ours = Side(hadoop, _client(hadoop, alone.getNameNodePort()), local)
        ours.pids = [nodes.start(name).pid for name in _NAMES]
        yield theirs, ours


def _client(hadoop: Hadoop, port: int) -> JavaObject:
    uri = hadoop.gateway.jvm.java.net.URI.create(f"hdfs://127.0.0.1:{port}")
    return hadoop.hadoop.fs.FileSystem.newInstance(uri, hadoop.configuration(_SETTINGS))
