"""Rates of the merge's single steps on one core, each beside what it cannot be faster than."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from spark.engine.inline import InlineEngine
from spark.image.inodes import heads
from spark.image.messages import chunks
from spark.image.opened import OpenedImage, open_image
from spark.image.ranges import ImageRange, read_window
from spark.image.varints import Window
from spark.tables.arrow import InodeBatches
from spark.tables.images import open_tables, read_piece
from tests.bench.report import Row

_ROUNDS: Final = 3
_COPY_BYTES: Final = 4 * 1024 * 1024


def rate_rows(image: Path, folder: Path) -> list[Row]:
    """Indexing, decoding and assembling an image; the best of three rounds, by CPU time."""
    work = folder / "rates"
    work.mkdir()
    opened = open_image(InlineEngine(), image, work)
    decode_cpu, _ = best(lambda: decode(image))
    rate = opened.section_header().numInodes / decode_cpu
    rows = [
        _scan_row(opened),
        _millions("full decode to Arrow, one core", rate, 1, "all columns of the table of inodes"),
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
    """CPU and wall seconds of the quickest round: what disturbs one only makes it slower."""
    cpu = wall = float("inf")
    for _ in range(_ROUNDS):
        began, spent = time.perf_counter(), time.process_time()
        run()
        cpu = min(cpu, time.process_time() - spent)
        wall = min(wall, time.perf_counter() - began)
    return cpu, wall


Held = list[tuple[ImageRange, Window]]


def windows(opened: OpenedImage) -> Iterator[tuple[ImageRange, Window]]:
    """The ranges of INODE with their bytes."""
    return ((item, read_window(item)) for item in opened.inodes)


def index_only(held: Held) -> int:
    """Where each message lies."""
    return sum(
        len(chunk.starts) for item, window in held for chunk in chunks(window, 0, item.length)
    )


def scan(held: Held) -> int:
    """Where each message lies, and each inode's id, type and name, as the merge's scan does."""
    return sum(
        len(heads(window, chunk).ids)
        for item, window in held
        for chunk in chunks(window, 0, item.length)
    )


def decode(image: Path) -> int:
    """Every column of the table of inodes, as Arrow."""
    tables = open_tables(str(image))
    batches = InodeBatches(tables.strings)
    found = (read_piece(piece, batches.batch) for piece in tables.inode_pieces)
    return sum(batch.num_rows for piece in found for batch in piece)


def digest_of(path: Path) -> str:
    """MD5 of a file, read as assembling does."""
    found = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while data := file.read(_COPY_BYTES):
            found.update(data)
    return found.hexdigest()
