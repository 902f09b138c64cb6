"""Loading an image and replaying edits on it; as a process: load one, print the figures as JSON."""

import gc
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.image.container import read_summary, section_messages
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image


@dataclass(frozen=True, slots=True)
class Loaded:
    """Figures of one load."""

    cpu_rate: float
    wall_rate: float
    parse_rate: float
    bytes_per_inode: float
    image_bytes_per_inode: float


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure_load(path: Path) -> Loaded:
    before = resident_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    namespace = load_image(path)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    count = len(namespace.tree.inodes)
    memory = resident_bytes() - before
    return Loaded(
        cpu_rate=count / cpu,
        wall_rate=count / wall,
        parse_rate=count / parse_seconds(path),
        bytes_per_inode=memory / count,
        image_bytes_per_inode=path.stat().st_size / count,
    )


def parse_seconds(path: Path) -> float:
    """Return the limit of loading: CPU seconds to parse every inode's message and look at none."""
    parse = pb.INode.FromString
    with path.open("rb") as file:
        summary = read_summary(file)
        section = summary.find("INODE")
        assert section is not None
        found = section_messages(file, section, summary.codec)
        next(found)
        began = time.process_time()
        for raw in found:
            parse(raw)
        return time.process_time() - began


def replay(path: Path, log: Iterable[tuple[TxId, Op]]) -> tuple[float, float]:
    """Apply edits to a newly loaded namespace; return CPU and wall seconds without loading."""
    namespace = load_image(path)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for txid, op in log:
        namespace.apply(txid, op)
    return time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure_load(Path(sys.argv[1])))))
