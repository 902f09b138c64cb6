"""Hadoop's formats: edits and images, each figure next to a limit measured in the same run.

Rates are of CPU time, which other work on the machine hardly changes; the wall time stands next to
it.  Images are loaded in a process of their own, so that its memory is the namespace's.
"""

import gc
import hashlib
import io
import json
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import click

from journal.frame import scan
from journal.model import TxId
from namenode_sim.edits.codec import decode_all, encode
from namenode_sim.edits.ops import Delete, Op
from namenode_sim.edits.values import NO_RPC_IDS
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.namespace import Namespace
from tests.campaigns.bench import formats_load
from tests.campaigns.bench.formats_world import INFO, big_namespace, edits, save
from tests.campaigns.bench.report import Row, publish

INODES = 500_000
EDITS = 200_000
ROUNDS = 3
LONG_EDIT = Delete("/" + "d" * 160, 0, NO_RPC_IDS)  # 200 bytes with its frame


@dataclass(frozen=True, slots=True)
class Rate:
    """Things per second, by both clocks."""

    cpu: float
    wall: float

    def beside(self, peer: str) -> str:
        return f"{peer}; by the wall clock {self.wall:,.0f}/s"


@contextmanager
def no_collection() -> Iterator[None]:
    """Measure without the garbage collector looking through all that the bench holds."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def rate(count: int, run: Callable[[], object], rounds: int = ROUNDS) -> Rate:
    """Return the best of some rounds: what disturbs a round only ever makes it slower."""
    best_cpu = best_wall = float("inf")
    for _ in range(rounds):
        with no_collection():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            best_cpu = min(best_cpu, time.process_time() - cpu)
            best_wall = min(best_wall, time.perf_counter() - wall)
    return Rate(count / best_cpu, count / best_wall)


_BARE = struct.Struct(">BiqqqqI16sI")


def bare_structs(count: int) -> Callable[[], object]:
    """Return the limit of encoding: one struct and one checksum an op, no varying fields."""

    def run() -> None:
        pack = _BARE.pack
        for txid in range(count):
            frame = pack(9, 60, txid, 1, 2, 3, 4, b"0123456789abcdef", 5)
            frame + crc32(frame).to_bytes(4, "big")

    return run


def edit_rows(log: list[tuple[TxId, Op]], records: bytes) -> list[Row]:
    """Measure ops to bytes, bytes to ops, and the check of a segment."""
    count = len(log)
    bare = rate(count, bare_structs(count))
    encoded = rate(count, lambda: [encode(op, txid) for txid, op in log])
    checked = rate(count, lambda: scan(records))
    decoded = rate(count, lambda: sum(1 for _ in decode_all(records)))
    long_records = b"".join([encode(LONG_EDIT, TxId(txid)) for txid in range(1, count)])
    long_checked = rate(len(long_records), lambda: scan(long_records))
    checksum = rate(len(long_records), lambda: crc32(long_records))
    megabytes, limit = long_checked.cpu / 1e6, checksum.cpu / 1e6
    size = len(records) / count
    return [
        Row("op to bytes", encoded.cpu, "ops/s", ">= 250,000", encoded.cpu >= 250_000,
            encoded.beside(f"bare structs and CRC {bare.cpu:,.0f}/s")),
        Row("bytes to op", decoded.cpu, "ops/s", ">= 150,000", decoded.cpu >= 150_000,
            decoded.beside(f"frames only {checked.cpu:,.0f}/s")),
        Row("segment validation", checked.cpu, "ops/s", ">= 1,500,000", checked.cpu >= 1_500_000,
            checked.beside(f"ops of {size:.0f} bytes")),
        Row("segment validation, ops of 200 bytes", megabytes, "MB/s", ">= 300", megabytes >= 300,
            f"crc32 of the same bytes {limit:,.0f} MB/s"),
    ]  # fmt: skip


def save_row(data_size: int, count: int, run: Callable[[], object], data: bytes) -> Row:
    """Measure a namespace saved to an image in memory, digest included."""
    saved = rate(count, run)
    digest = rate(data_size, lambda: hashlib.md5(data, usedforsecurity=False))
    per_inode = data_size / count
    return Row(
        "image save", saved.cpu, "inodes/s", ">= 500,000", saved.cpu >= 500_000,
        saved.beside(f"MD5 of the same bytes {digest.cpu / per_inode:,.0f} inodes/s"),
    )  # fmt: skip


def load_rows(image: Path) -> list[Row]:
    """Load an image, each time in a new process; the best of them counts."""
    found: list[formats_load.Loaded] = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "tests.campaigns.bench.formats_load", str(image)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append(formats_load.Loaded(**json.loads(output)))
    cpu = max(one.cpu_rate for one in found)
    wall = max(one.wall_rate for one in found)
    parse = max(one.parse_rate for one in found)
    memory = min(one.bytes_per_inode for one in found)
    peer = f"protobuf parsing only {parse:,.0f}/s; by the wall clock {wall:,.0f}/s"
    on_disk = f"{found[0].image_bytes_per_inode:.0f} bytes in the image; Hadoop 2.7.3: 287"
    return [
        Row("image load", cpu, "inodes/s", ">= 350,000", cpu >= 350_000, peer),
        Row("memory of a loaded inode", memory, "bytes", "<= 290", memory <= 290, on_disk),
    ]


def replay_rows(image: Path, log: list[tuple[TxId, Op]], records: bytes) -> list[Row]:
    """Measure edits on a loaded namespace: ready-made ops, and from their bytes."""
    count = len(log)
    # Each round needs a namespace of its own; a second one is enough to see a disturbed first.
    ready = max((formats_load.replay(image, log) for _ in range(2)), key=lambda found: found[0])
    decoded = formats_load.replay(image, decode_all(records))
    return [
        Row("replay", count / ready[0], "ops/s", ">= 60,000", count / ready[0] >= 60_000,
            f"by the wall clock {count / ready[1]:,.0f}/s"),
        Row("replay from bytes", count / decoded[0], "ops/s", "-", None,
            f"by the wall clock {count / decoded[1]:,.0f}/s"),
    ]  # fmt: skip


def namespace_rows(namespace: Namespace, image: Path) -> list[Row]:
    """Measure saving; then the namespace may go, so that it is not in the way."""
    data = image.read_bytes()
    count = len(namespace.tree.inodes)
    return [
        save_row(len(data), count, lambda: write_namespace(namespace, io.BytesIO(), INFO), data)
    ]


def prepare(folder: Path) -> tuple[Namespace, Path, list[tuple[TxId, Op]], bytes]:
    namespace = big_namespace(INODES)
    log = list(edits(namespace, EDITS))
    records = b"".join([encode(op, txid) for txid, op in log])
    return namespace, save(namespace, folder), log, records


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, as_json: bool) -> None:
    """Measure the formats: edits and images to bytes and back, replay, memory of an inode."""
    with tempfile.TemporaryDirectory() as folder:
        namespace, image, log, records = prepare(Path(folder))
        rows = edit_rows(log, records) + namespace_rows(namespace, image)
        del namespace
        rows += load_rows(image) + replay_rows(image, log, records)
    raise SystemExit(publish("formats", rows, as_json=as_json))
