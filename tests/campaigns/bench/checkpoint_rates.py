"""Rates of the merge's single steps on one core, each next to what it cannot be faster than."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from namenode_sim.edits.attributes import delimited
from spark.engine.outcome import InlineEngine
from spark.image.inodes import heads
from spark.image.messages import chunks
from spark.image.opened import LARGE, OpenedImage, open_image
from spark.image.ranges import ImageRange, read_window
from spark.image.varints import ByteWindow
from spark.merge.stages import ignore_progress
from spark.merge.write.assemble import Assembly, Layout
from spark.merge.write.parts import unchanged
from spark.tables.arrow import InodeBatches
from spark.tables.images import open_tables, read_piece
from tests.campaigns.bench.report import Row

_ROUNDS: Final = 3
_COPY_BYTES: Final = 4 * 1024 * 1024
_LEEWAY: Final = 0.9
"""A tenth, for taking the parts from another thread."""


def rate_rows(image: Path, folder: Path) -> list[Row]:
    """Measure indexing, decoding and assembling an image; best of three rounds, by CPU time."""
    work = folder / "rates"
    work.mkdir()
    opened = open_image(InlineEngine(), image, work)
    decode_cpu, _ = best(lambda: decode(image))
    rate = opened.section_header().numInodes / decode_cpu
    rows = [
        _scan_row(opened),
        _millions("full decode to Arrow, one core", rate, 1, "all columns of the table of inodes"),
        _assembly_row(opened, image, work),
    ]
    shutil.rmtree(work)
    return rows


def _scan_row(opened: OpenedImage) -> Row:
    count = opened.section_header().numInodes
    read_cpu, _ = best(lambda: [len(window.data) for _, window in windows(opened)])
    held = list(windows(opened))
    index_cpu, _ = best(lambda: index_only(held))
    scan_cpu, _ = best(lambda: scan(held))
    peer = (
        f"index alone {count / index_cpu / 1e6:.1f}; with reading the file "
        f"{count / (scan_cpu + read_cpu) / 1e6:.1f}"
    )
    return _millions("index + thin scan, one core", count / scan_cpu, 8, peer)


def _millions(figure: str, rate: float, bar: float, peer: str) -> Row:
    value = rate / 1e6
    return Row(figure, value, "M inodes/s", f">= {bar:g}", value >= bar, peer)


def best(run: Callable[[], object]) -> tuple[float, float]:
    """Return CPU and wall seconds of the quickest round: disturbances only slow one down."""
    cpu = wall = float("inf")
    for _ in range(_ROUNDS):
        began, spent = time.perf_counter(), time.process_time()
        run()
        cpu = min(cpu, time.process_time() - spent)
        wall = min(wall, time.perf_counter() - began)
    return cpu, wall


def _assembly_row(opened: OpenedImage, image: Path, work: Path) -> Row:
    """Measure one pass that copies and hashes, against a copy and then a pass that hashes."""
    megabytes, target = image.stat().st_size / 1e6, work / image.name
    cpu, wall = best(lambda: assemble(opened, target))
    if digest_of(target) != digest_of(image):
        raise AssertionError("what was put together of all parts is not the image")
    copy_cpu, copy_wall = best(lambda: copy(image, target))
    hash_cpu, _ = best(lambda: digest_of(image))
    both = megabytes / (copy_cpu + hash_cpu)
    peer = (
        f"copy {megabytes / copy_cpu:,.0f}, MD5 {megabytes / hash_cpu:,.0f}; by the wall clock "
        f"{megabytes / wall:,.0f}, copy {megabytes / copy_wall:,.0f}"
    )
    least = both * _LEEWAY
    bar = f">= {least:,.0f} ({_LEEWAY:g} x a copy, then MD5)"
    return Row(
        "assembling and MD5 in one pass",
        megabytes / cpu,
        "MB/s",
        bar,
        megabytes / cpu >= least,
        peer,
    )


def assemble(opened: OpenedImage, target: Path) -> str:
    """Put the image together again, of its own ranges; return its digest."""
    layout = Layout(delimited(opened.header), {}, {name: lambda: iter(()) for name in LARGE})
    with Assembly(opened, layout, target, ignore_progress) as assembly:
        for name, ranges in (("INODE", opened.inodes), ("INODE_DIR", opened.directories)):
            for item in ranges:
                assembly.put(name, unchanged(item))
            assembly.end(name)
    return assembly.md5


def copy(image: Path, target: Path) -> None:
    """Copy as durably as an assembled image."""
    with image.open("rb") as source, target.open("wb", buffering=0) as file:
        while data := source.read(_COPY_BYTES):
            file.write(data)
        os.fsync(file.fileno())


Held = list[tuple[ImageRange, ByteWindow]]


def windows(opened: OpenedImage) -> Iterator[tuple[ImageRange, ByteWindow]]:
    return ((item, read_window(item)) for item in opened.inodes)


def index_only(held: Held) -> int:
    """Find where each message lies."""
    return sum(
        len(chunk.starts) for item, window in held for chunk in chunks(window, 0, item.length)
    )


def scan(held: Held) -> int:
    """Find each message, and each inode's id, type and name, as the merge's scan does."""
    return sum(
        len(heads(window, chunk).ids)
        for item, window in held
        for chunk in chunks(window, 0, item.length)
    )


def decode(image: Path) -> int:
    """Decode every column of the table of inodes, as Arrow."""
    tables = open_tables(str(image))
    batches = InodeBatches(tables.strings)
    found = (read_piece(piece, batches.batch) for piece in tables.inode_pieces)
    return sum(batch.num_rows for piece in found for batch in piece)


def digest_of(path: Path) -> str:
    """Return a file's MD5, read as assembling does."""
    found = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while data := file.read(_COPY_BYTES):
            found.update(data)
    return found.hexdigest()
