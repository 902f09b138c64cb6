"""Write a realistic image of any size straight to the file format, in little memory.

As a program: ``python -m tests.worlds.large.images FOLDER --inodes 1m`` writes
``FOLDER/fsimage_…`` with its digest.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import numpy as np

from journal.model import TxId
from namenode_sim.edits.attributes import delimited
from namenode_sim.image import admin_sections
from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.container import ImageWriter, SectionStream
from namenode_sim.image.files import image_name, write_digest
from namenode_sim.image.inodes_writer import ReferenceNumbers
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.snapshots_writer import write_references, write_snapshots
from namenode_sim.image.strings import MASK_BITS
from namenode_sim.namespace.namespace import Namespace
from tests.worlds.large import inodes as large_inodes
from tests.worlds.large.shape import WINDOW, Places, Shape

LAYOUT: Final = -67
NAMESPACE_ID: Final = 4711
LAST_TXID: Final = TxId(1_000_000)
_BATCH: Final = 8 * WINDOW
_CHILDREN: Final = 200_000
"""About this number of directories make a batch."""


def write_big_image(
    folder: Path,
    shape: Shape,
    *,
    parts: int = 0,
    codec: str = "",
    last: TxId = LAST_TXID,
    only: Places | None = None,
) -> Path:
    """Write the image of a shape, and its digest next to it.

    Args:
        folder: where to.
        shape: the namespace.
        parts: how many sub-sections INODE and INODE_DIR have, 0 for none.
        codec: Hadoop's class name of a compression codec, or empty.
        last: the transaction that the image is of.
        only: the inodes that it has, with all directories above them; by default all.
    """
    strings, state = large_inodes.Strings(LAYOUT), small_state(shape, last)
    path = folder / image_name(last)
    with path.open("wb", buffering=1 << 20) as file:
        writer = ImageWriter(file, layout=LAYOUT, codec=codec)
        with writer.section("NS_INFO") as write:
            admin_sections.write_ns_info(write, state, NAMESPACE_ID, LAYOUT)
        with writer.section("ERASURE_CODING") as write:
            admin_sections.write_erasure_coding(write, state)
        with writer.section("INODE", divided=parts > 0) as write:
            _write_inodes(write, shape, strings, parts, only)
        with writer.section("INODE_DIR", divided=parts > 0) as write:
            if only is None:
                _write_entries(write, shape, parts)
            else:
                write(_entries_among(shape, only[only > 0]))
        with writer.section("FILES_UNDERCONSTRUCTION") as write:
            for number, name in open_files(shape, only):
                entry = pb.FileUnderConstructionEntry(inodeId=number, fullPath=name)
                write(delimited(entry.SerializeToString()))
        with writer.section("SNAPSHOT") as write:
            write_snapshots(write, state.snapshots, strings.numbers, LAYOUT, {})
        with writer.section("INODE_REFERENCE") as write:
            write_references(write, ReferenceNumbers(wanted=False), {})
        with writer.section("SECRET_MANAGER") as write:
            admin_sections.write_secrets(write, state)
        with writer.section("CACHE_MANAGER") as write:
            admin_sections.write_cache(write, state)
        with writer.section("STRING_TABLE") as write:
            _write_strings(write, strings)
        digest = writer.finish()
    write_digest(path, digest)
    return path


def small_state(shape: Shape, last: TxId) -> Namespace:
    """Return everything but the tree."""
    state = Namespace.empty("hdfs")
    state.last_applied = last
    state.counters.last_inode_id = shape.last_inode_id
    state.counters.last_block_id = (
        large_inodes.FIRST_BLOCK + large_inodes.MOST_BLOCKS * shape.inodes
    )
    state.counters.generation_stamp_v2 = large_inodes.FIRST_STAMP + shape.inodes
    return state


def _write_inodes(
    write: SectionStream,
    shape: Shape,
    strings: large_inodes.Strings,
    parts: int,
    only: Places | None,
) -> None:
    count = shape.inodes if only is None else len(only)
    header = pb.INodeSection(lastInodeId=shape.last_inode_id, numInodes=count)
    write(delimited(header.SerializeToString()))
    if only is not None:
        in_order = only[np.argsort(shape.id_of(only))]
        write(large_inodes.inode_messages(shape, strings, in_order).tobytes())
        return
    per_part, in_part = -(-shape.inodes // parts) if parts else shape.inodes, 0
    for begin in range(0, shape.inodes, _BATCH):
        positions = shape.stored(begin, begin + _BATCH)
        while len(positions):
            now = positions[: per_part - in_part]
            write(large_inodes.inode_messages(shape, strings, now).tobytes())
            positions, in_part = positions[len(now) :], in_part + len(now)
            if in_part == per_part and parts:
                write.split()
            in_part %= per_part


def _write_entries(write: SectionStream, shape: Shape, parts: int) -> None:
    count = len(shape.parent)
    children = shape.files + np.bincount(shape.parent[1:], minlength=count)
    reached = np.cumsum(children)
    per_batch = min(_CHILDREN, -(-shape.inodes // parts)) if parts else _CHILDREN
    begin, split = 0, shape.inodes // parts if parts else shape.inodes
    while begin < count:
        before = int(reached[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(reached, before + per_batch)), begin + 1)
        write(large_inodes.directory_entries(shape, begin, end).tobytes())
        if parts and int(reached[end - 1]) // split > before // split:
            write.split()
        begin = end


def _entries_among(shape: Shape, only: Places) -> bytes:
    directory, number = shape.owner(only)
    parents = np.where(number >= 0, directory, shape.parent[directory])
    return large_inodes.entries(shape, parents, only).tobytes()


def open_files(shape: Shape, only: Places | None = None) -> Iterator[tuple[int, str]]:
    found = []
    for begin in range(0, shape.inodes if only is None else len(only), _BATCH):
        end = begin + _BATCH
        positions = shape.stored(begin, end) if only is None else only[begin:end]
        known = large_inodes.traits(shape, positions)
        found += [int(each) for each in positions[known.is_open]]
    for position in sorted(found, key=lambda each: int(shape.id_of(np.array([each]))[0])):
        yield int(shape.id_of(np.array([position]))[0]), path_of(shape, position)


def path_of(shape: Shape, position: int) -> str:
    """Return the path of one inode, as the image has it."""
    owners, numbers = shape.owner(np.array([position]))
    names, directory, number = [], int(owners[0]), int(numbers[0])
    while directory or number >= 0:
        column = shape.names(np.array([directory]), np.array([number]))
        names.append(column.data[0, : column.sizes[0]].tobytes().decode())
        if number < 0:
            directory = int(shape.parent[directory])
        number = -1
    return "/" + "/".join(reversed(names))


def _write_strings(write: SectionStream, strings: large_inodes.Strings) -> None:
    entries = list(strings.numbers.entries())
    header = pb.StringTableSection(numEntry=len(entries), maskBits=MASK_BITS)
    write(delimited(header.SerializeToString()))
    for number, text in entries:
        entry = pb.StringTableSection.Entry(id=number, str=text)
        write(delimited(entry.SerializeToString()))


def how_many(text: str) -> int:
    """Parse a number of inodes or ops: 20000, 100k or 5m."""
    factor = {"k": 1000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--inodes", default="1m", show_default=True, help="How many; 20000, 100k, 5m.")
@click.option("--parts", default=0, show_default=True, help="Sub-sections; 0 for none.")
@click.option("--compress", is_flag=True, help="With Hadoop's DefaultCodec.")
@click.option("--seed", default=1, show_default=True)
def main(*, folder: Path, inodes: str, parts: int, compress: bool, seed: int) -> None:
    """Write a generated image into FOLDER, and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = Shape(how_many(inodes), seed)
    codec = ZLIB_CODEC if compress else ""
    click.echo(write_big_image(folder, shape, parts=parts, codec=codec))


if __name__ == "__main__":
    main()
