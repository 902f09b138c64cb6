"""What the tasks of an export do: each reads one piece of the image and writes files of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ha.record import dataclass
from spark.engine.outcome import attempt_name
from spark.tables.arrow import INODE_TYPES, Batch, InodeBatches
from spark.tables.cursors import Ints
from spark.tables.entry_columns import edges_of
from spark.tables.images import Piece, open_tables, read_piece
from spark.tables.inode_columns import DIRECTORY, InodeColumns, decode_inodes
from spark.tables.message_stream import Chunk
from spark.tables.tallies import Tallies
from spark.tables.tree import Parents, fingerprint

ROW_GROUP_ROWS: Final = 1 << 18
_BEHIND_ID: Final = ("parent_id", pa.int64())
COLUMNS: Final = tuple(name for name in INODE_TYPES if name != "target")
"""What an export contains of each inode, but for its directory."""
SCHEMA: Final = pa.schema(
    [("id", pa.int64()), _BEHIND_ID, *((name, INODE_TYPES[name]) for name in COLUMNS[1:])]
)


@dataclass(frozen=True, slots=True)
class EdgeTask:
    """Read a piece of INODE_DIR; ``work`` takes the files."""

    piece: Piece
    work: str


@dataclass(frozen=True, slots=True)
class InodeTask:
    """Read a piece of INODE: ``tree`` are the saved parents, ``out`` takes the Parquet file."""

    piece: Piece
    work: str
    tree: str
    out: str


@dataclass(frozen=True, slots=True)
class InodePart:
    """What such a task made: its files, how many messages it saw, and how many rows it wrote.

    ``fingerprint`` is of the ids of the rows but the root's (`spark.tables.tree.fingerprint`).
    """

    parquet: str
    directories: str
    tallies: str
    inodes: int
    rows: int
    fingerprint: int


def write_edges(task: EdgeTask) -> str:
    """Save the edges of a piece as (parent, child) rows; returns the file."""
    image = open_tables(task.piece.path)

    def edges(chunk: Chunk) -> Ints:
        return np.stack(edges_of(chunk, image.references))

    parts = list(read_piece(task.piece, edges))
    path = Path(task.work) / attempt_name("edges")
    with path.open("wb") as file:
        np.save(file, np.concatenate(parts, axis=1) if parts else np.zeros((2, 0), np.int64))
    return str(path)


def save_parents(parents: Parents, folder: Path) -> None:
    """Save the tree where tasks can map it into memory."""
    folder.mkdir()
    np.save(folder / "directories.npy", parents.directories)
    np.save(folder / "reachable.npy", parents.reachable)
    np.save(folder / "slots.npy", parents.slots)
    np.save(folder / "facts.npy", np.array([parents.base, parents.root], np.int64))
    if parents.children is not None:
        np.save(folder / "children.npy", parents.children)


def load_parents(folder: Path) -> Parents:
    """Load the tree that was saved; what is large stays in the file."""
    base, root = np.load(folder / "facts.npy").tolist()
    children = folder / "children.npy"
    return Parents(
        np.load(folder / "directories.npy"),
        np.load(folder / "reachable.npy"),
        np.load(children, mmap_mode="r") if children.exists() else None,
        np.load(folder / "slots.npy", mmap_mode="r"),
        base,
        root,
    )


class _InodeWriter:
    """Inodes of the current tree to Parquet, directories to a side file, counts to arrays."""

    def __init__(self, parents: Parents, batches: InodeBatches) -> None:
        self.tallies = Tallies.nothing(len(parents.directories))
        self.directories: list[Batch] = []
        self.inodes = 0
        self.fingerprint = 0
        self._parents = parents
        self._batches = batches

    def rows(self, chunk: Chunk) -> Batch:
        """Return the rows of a chunk that belong to the current tree."""
        decoded = decode_inodes(chunk.data, chunk.starts, chunk.ends)
        self.inodes += len(decoded)
        batch = self._batches.of(decoded, chunk)
        parents, ids = self._parents, decoded.id
        slots = parents.slots_of(ids)
        top = ids == parents.root
        keep = parents.current(ids, slots)
        # An inode in no directory takes any slot: it is the root, or it is left out.
        above = (
            parents.directories[np.maximum(slots, 0)]
            if len(parents.directories)
            else np.zeros(len(ids), np.int64)
        )
        columns = [batch.column(0), pa.array(above, mask=top), *batch.columns[1:]]
        self._count(decoded, slots, keep & ~top)
        self.fingerprint += fingerprint(ids[keep & ~top])
        rows = pa.record_batch(columns, schema=SCHEMA)
        if not keep.all():
            rows = rows.filter(pa.array(keep))
        self._note_directories(rows)
        return rows

    def _count(self, decoded: InodeColumns, slots: Ints, counted: Ints) -> None:
        directory = decoded.type == DIRECTORY
        if counted.all():
            self.tallies.count(slots, directory, decoded.length)
        else:
            self.tallies.count(slots[counted], directory[counted], decoded.length[counted])

    def _note_directories(self, rows: Batch) -> None:
        wanted = rows.select(["id", "parent_id", "name"])
        found = wanted.filter(pc.equal(rows.column("type"), "DIRECTORY"))
        if found.num_rows:
            self.directories.append(found)


DIRECTORY_SCHEMA: Final = pa.schema(
    [("id", pa.int64()), ("parent_id", pa.int64()), ("name", pa.string())]
)


def write_inodes(task: InodeTask) -> InodePart:
    """Write the inodes of a piece, and what is to be known of its directories."""
    image = open_tables(task.piece.path)
    writer = _InodeWriter(load_parents(Path(task.tree)), InodeBatches(image.strings, COLUMNS))
    out = Path(task.out) / attempt_name("part")
    rows = write_parquet(out, SCHEMA, read_piece(task.piece, writer.rows))
    work = Path(task.work)
    directories, tallies = work / attempt_name("directories"), work / attempt_name("tallies")
    with pa.OSFile(str(directories), "wb") as file, pa.ipc.new_file(file, DIRECTORY_SCHEMA) as ipc:
        for batch in writer.directories:
            ipc.write_batch(batch)
    counted = writer.tallies
    with tallies.open("wb") as npy:
        np.save(npy, np.stack((counted.files, counted.subdirectories, counted.bytes)))
    return InodePart(
        str(out), str(directories), str(tallies), writer.inodes, rows, writer.fingerprint
    )


def write_parquet(path: Path, schema: pa.Schema, batches: Iterator[Batch]) -> int:
    """Write record batches in row groups of a good size; returns how many rows."""
    total = held = 0
    waiting: list[Batch] = []
    form = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}
    with pq.ParquetWriter(str(path), schema, **form) as parquet:
        for batch in batches:
            waiting.append(batch)
            held += batch.num_rows
            if held >= ROW_GROUP_ROWS:
                parquet.write_table(pa.Table.from_batches(waiting), row_group_size=held)
                total += held
                waiting, held = [], 0
        if held:
            parquet.write_table(pa.Table.from_batches(waiting), row_group_size=held)
    return total + held
