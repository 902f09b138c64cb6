"""The table of directories of an export: paths, depths, and sums over all that lies below."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from namenode_sim.image.errors import ImageError
from spark.tables.arrow import Batch, Column
from spark.tables.cursors import Ints
from spark.tables.export_tasks import write_parquet
from spark.tables.tallies import Tallies, levels_of, subtree_sums
from spark.tables.tree import Parents

SCHEMA: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("parent_id", pa.int64()),
        ("path", pa.string()),
        ("depth", pa.int32()),
        ("files", pa.int64()),
        ("subdirectories", pa.int64()),
        ("bytes", pa.int64()),
        ("subtree_files", pa.int64()),
        ("subtree_directories", pa.int64()),
        ("subtree_bytes", pa.int64()),
    ]
)
_ROWS: Final = 1 << 16


def write_directories(path: Path, found: pa.Table, parents: Parents, tallies: Tallies) -> int:
    """Write the table, by depth; returns how many directories there are.

    Args:
        path: the Parquet file.
        found: id, parent_id and name of the directories of the current tree.
        parents: the tree.
        tallies: what lies in each directory that has children.

    Raises:
        ImageError: if something has children that is no directory.
    """
    order = np.argsort(found.column("id").to_numpy(), kind="stable")
    found = found.take(pa.array(order)).combine_chunks()
    ids = found.column("id").to_numpy()
    above = found.column("parent_id").fill_null(parents.root).to_numpy()
    slots = _slots(ids, parents)
    levels = levels_of(ids, above, parents.root)
    up = np.searchsorted(ids, above)
    direct = [
        np.where(slots >= 0, counts[slots], 0) if len(counts) else np.zeros(len(ids), np.int64)
        for counts in (tallies.files, tallies.subdirectories, tallies.bytes)
    ]
    sums = [subtree_sums(counts, up, levels) for counts in direct]
    names = found.column("name").combine_chunks()
    rows = _rows(ids, above, up, names, levels, [*direct, *sums])
    return write_parquet(path, SCHEMA, rows)


def _slots(ids: Ints, parents: Parents) -> Ints:
    """Return where each directory is among those that have children, or -1."""
    having = parents.directories
    at = np.minimum(np.searchsorted(ids, having), max(len(ids) - 1, 0))
    strange = (ids[at] != having) & parents.reachable
    if strange.any():
        raise ImageError(f"it has children of {having[strange][0]}, which is no directory")
    slots = np.full(len(ids), -1, np.int64)
    slots[at[ids[at] == having]] = np.flatnonzero(ids[at] == having)
    return slots


def _rows(
    ids: Ints, above: Ints, up: Ints, names: Column, levels: list[Ints], counts: list[Ints]
) -> Iterator[Batch]:
    """Level by level, as the paths of one need only those of the one before."""
    paths = pa.array([""])
    place = np.zeros(len(ids), np.int64)
    for depth, level in enumerate(levels):
        if depth:
            parts = paths.take(pa.array(place[up[level]])), names.take(pa.array(level))
            paths = pc.binary_join_element_wise(*parts, "/")
        place[level] = np.arange(len(level))
        batch = pa.record_batch(
            [
                pa.array(ids[level]),
                pa.array(above[level], mask=np.full(len(level), depth == 0)),
                paths if depth else pa.array(["/"]),
                pa.array(np.full(len(level), depth, np.int32)),
                *(pa.array(column[level]) for column in counts),
            ],
            schema=SCHEMA,
        )
        yield batch
