"""Write a namespace as Parquet files: inodes with their directories, and directories with sums.

The pieces of the image are read by tasks on any engine; what one process holds is a number per
inode and the directories.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from ha.record import dataclass, replace
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest, digest_path
from namenode_sim.namespace.inode import ROOT_ID
from spark.engine.model import Engine, TaskFailed
from spark.tables import export_tasks
from spark.tables.cursors import Ints
from spark.tables.directories import write_directories
from spark.tables.export_output import FACTS, published, refuse_in_the_way
from spark.tables.images import ImageTables, find_root, open_tables, piece_bytes, split
from spark.tables.inode_columns import DIRECTORY, decode_inodes
from spark.tables.message_stream import Chunk
from spark.tables.tallies import Tallies
from spark.tables.tree import Parents, TreeError, parents_of

FORMAT: Final = 1

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.  ``not_in_tree`` are the inodes that only snapshots have."""

    out: Path
    txid: int
    inodes: int
    directories: int
    not_in_tree: int


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """Pieces of a stage that are done."""

    stage: str
    done: int
    total: int


TellExport = Callable[[ExportProgress], None]


def export(
    image: Path, out: Path, engine: Engine, *, at: str, overwrite: bool = False,
    tell: TellExport = lambda _: None,
) -> Exported:  # fmt: skip
    """Write an image's current tree to a folder, which appears when it is whole.

    The callback is called with each task that is done.

    Args:
        image: an fsimage; its digest is checked if it lies next to it.
        out: the folder; the tasks of the engine must reach it by this path.
        engine: runs the tasks.
        at: the time of the export, for export.json.
        overwrite: whether an older export of that name may be replaced.

    Raises:
        ExportRefused: if something is there already that may not be replaced, or another export
            writes there.
        ImageError: if the image is damaged; names file and offset.
        TaskFailed: if the engine fails.
        OSError: if something cannot be read or written.
    """
    refuse_in_the_way(out, overwrite=overwrite)
    if digest_path(image).exists():
        check_digest(image)
    found = open_tables(str(image.absolute()))
    with published(out.absolute()) as fresh:
        try:
            inodes, directories = _write(_cut(found, engine), engine, tell, fresh)
        except ImageError:
            # A boundary may have been guessed wrongly; read as a whole, the image shows what is
            # true.
            inodes, directories = _write(found, engine, tell, fresh)
        facts = {
            "image": image.name,
            "txid": found.txid,
            "inodes": inodes,
            "directories": directories,
            "not_in_tree": found.inodes - inodes,
            "at": at,
            "format": FORMAT,
        }
        (fresh / FACTS).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    return Exported(out, found.txid, inodes, directories, found.inodes - inodes)


def _cut(image: ImageTables, engine: Engine) -> ImageTables:
    """Cut the image into as many pieces as suit the engine; leave it whole for a serial one."""
    if engine.parallelism == 1:
        return image
    inodes, entries = (
        tuple(split(pieces, piece_bytes(pieces, engine.parallelism)))
        for pieces in (image.inode_pieces, image.entry_pieces)
    )
    return replace(image, inode_pieces=inodes, entry_pieces=entries)


def _write(image: ImageTables, engine: Engine, tell: TellExport, fresh: Path) -> tuple[int, int]:
    """Write all tables into a folder; return how many inodes and directories there are."""
    folders = [fresh / name for name in ("work", "inodes", "directories")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    work, inodes, directories = folders
    stages = _Stages(image, engine, tell, work)
    parents = stages.tree()
    counts = stages.finish(parents, stages.inodes(inodes), directories)
    shutil.rmtree(work)
    return counts


class _Stages:
    """The stages of an export, one after the other."""

    def __init__(self, image: ImageTables, engine: Engine, tell: TellExport, work: Path) -> None:
        self._image = image
        self._engine = engine
        self._tell = tell
        self._work = work

    def tree(self) -> Parents:
        """Find which directory each inode lies in."""
        image = self._image
        tasks = [export_tasks.EdgeTask(piece, str(self._work)) for piece in image.entry_pieces]
        files = self._run("directories", export_tasks.write_edges, tasks)
        edges = [np.load(path, mmap_mode="r") for path in files]
        root = ROOT_ID
        if edges and not any((pair[0] == ROOT_ID).any() for pair in edges):
            root = find_root(image, _nameless)
        try:
            parents = parents_of(((pair[0], pair[1]) for pair in edges), root)
        except TreeError as problem:
            raise ImageError(f"{image.path}: section INODE_DIR: {problem}") from problem
        export_tasks.save_parents(parents, self._work / "tree")
        for path in files:
            Path(path).unlink()
        return export_tasks.load_parents(self._work / "tree")

    def inodes(self, out: Path) -> list[export_tasks.InodePart]:
        tree, work = str(self._work / "tree"), str(self._work)
        tasks = [
            export_tasks.InodeTask(piece, work, tree, str(out))
            for piece in self._image.inode_pieces
        ]
        parts = self._run("inodes", export_tasks.write_inodes, tasks)
        wanted = {part.parquet for part in parts}
        for number, part in enumerate(parts):
            Path(part.parquet).rename(out / f"part-{number:05d}.parquet")
        for left in out.iterdir():  # of attempts whose results were lost
            if left.suffix != ".parquet" and str(left) not in wanted:
                left.unlink()
        return parts

    def finish(
        self, parents: Parents, parts: Sequence[export_tasks.InodePart], out: Path
    ) -> tuple[int, int]:
        """Write the table of directories, and check all sums; count inodes and directories."""
        image = self._image
        seen, rows = sum(part.inodes for part in parts), sum(part.rows for part in parts)
        if seen != image.inodes:
            raise ImageError(
                f"{image.path}: section INODE announces {image.inodes} inodes and holds {seen}"
            )
        tallies = Tallies.nothing(len(parents.directories))
        for part in parts:
            tallies.add(Tallies(*np.load(part.tallies)))
        children = int((tallies.files + tallies.subdirectories).sum()) + 1
        expected = _reachable_children(parents) + 1
        same = sum(part.fingerprint for part in parts) % (1 << 64) == parents.fingerprint()
        if rows != expected or children != rows or not same:
            raise ImageError(
                f"{image.path}: its directories have {expected - 1} children, and {rows - 1} "
                "inodes for them, but not the same ones: some are missing or there twice"
            )
        tables = [pa.ipc.open_file(pa.memory_map(part.directories)).read_all() for part in parts]
        try:
            count = write_directories(
                out / "part-00000.parquet", pa.concat_tables(tables), parents, tallies
            )
        except ImageError as problem:
            raise ImageError(f"{image.path}: section INODE_DIR: {problem}") from problem
        return rows, count

    def _run(self, stage: str, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        results: dict[int, R] = {}
        try:
            for number, result in self._engine.run(stage, function, tasks):
                results[number] = result
                self._tell(ExportProgress(stage, len(results), len(tasks)))
        except TaskFailed as failure:
            if failure.kind == ImageError.__name__:
                raise ImageError(failure.cause) from failure
            raise
        return [results[number] for number in range(len(tasks))]


def _reachable_children(parents: Parents) -> int:
    slots: Iterable[Ints] = np.array_split(parents.slots, max(len(parents.slots) >> 20, 1))
    return sum(int(parents.reachable[slot[slot >= 0]].sum()) for slot in slots)


def _nameless(chunk: Chunk) -> Ints:
    rows = decode_inodes(chunk.data, chunk.starts, chunk.ends)
    ids: Ints = rows.id[(rows.type == DIRECTORY) & (rows.name_at == rows.name_end)]
    return ids
