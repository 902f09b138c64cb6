"""Write the inodes of a range again: most bytes are copied, what changed is put in place.

See docs/reference/checkpoint.md#write.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ha.record import dataclass
from namenode_sim.edits.attributes import delimited
from spark.engine.outcome import attempt_name
from spark.image.ids import IdSet, load_ids
from spark.image.ranges import ImageRange
from spark.image.side import INodeIndex, load_inodes
from spark.image.spans import RangeReader
from spark.image.varints import Numbers
from spark.merge.plan.fetch import load_rows
from spark.merge.write.changes import Messages
from spark.merge.write.parts import Part, PartWriter, unchanged


@dataclass(frozen=True, slots=True)
class INodesTask:
    """A range with its index; files of new messages, of deleted ids and of children whose names
    are wanted; bytes to go before the range if it is compressed."""

    item: ImageRange
    index: str
    head: bytes
    updates: str
    deleted: str
    siblings: tuple[str, ...]
    codec: str
    work: str


@dataclass(frozen=True, slots=True)
class INodesWritten:
    """A part; how many inodes are in it, were put in anew, or left out; the file of names."""

    part: Part
    inodes: int
    updated: int
    deleted: int
    names: str


def write_inodes(task: INodesTask) -> INodesWritten:
    index, reader = load_inodes(task.index), RangeReader(task.item)
    updates = Messages(task.updates)
    updated = IdSet(updates.ids).rows_in(index.ids)
    deleted = IdSet(load_ids(task.deleted)).rows_in(index.ids)
    names = _write_names(task, index, reader)
    part = unchanged(task.item)
    if updated.size or deleted.size or task.codec:
        path = Path(task.work) / attempt_name(f"part-inodes-{task.item.number}")
        data = reader.all_bytes()
        with PartWriter(path, task.codec) as writer:
            writer.add(task.head)
            for piece in _splice(data, index, updated, deleted, updates):
                writer.add(piece)
            part = writer.finish()
    count = index.ids.size - deleted.size
    return INodesWritten(part, count, updated.size, deleted.size, names)


def _splice(
    data: memoryview, index: INodeIndex, updated: Numbers, deleted: Numbers, updates: Messages
) -> Iterator[bytes | memoryview]:
    """Yield the messages of a range: those between two changed ones at once."""
    places = np.full(updated.size + deleted.size, -1, np.int64)
    places[: updated.size] = np.searchsorted(updates.ids, index.ids[updated])
    rows = np.concatenate([updated, deleted])
    order = np.argsort(rows, kind="stable")
    rows, places = rows[order], places[order]
    begins, ends = index.begins()[rows], index.ends[rows]
    at = 0
    for begin, end, place in zip(begins.tolist(), ends.tolist(), places.tolist(), strict=True):
        if begin > at:
            yield data[at:begin]
        if place >= 0:
            yield delimited(updates.at(place))
        at = end
    if at < len(data):
        yield data[at:]


def _write_names(task: INodesTask, index: INodeIndex, reader: RangeReader) -> str:
    """Write the names of the children wanted in this range; return the file, empty for none."""
    children, _ = load_rows(task.siblings)
    rows = IdSet(children).rows_in(index.ids)
    if not rows.size:
        return ""
    rows = rows[np.argsort(index.ids[rows], kind="stable")]
    found = reader.heads(index, rows)
    path = Path(task.work) / attempt_name(f"names-{task.item.number}")
    with path.open("wb") as file:
        np.save(file, np.stack([index.ids[rows], np.cumsum(found.name_lengths)]))
        file.write(b"".join(found.all_names()))
    return str(path)


def read_names(path: str, wanted: IdSet) -> Iterator[tuple[int, bytes]]:
    """Yield the (id, name) of those children wanted that `write_inodes` has written there."""
    with Path(path).open("rb") as file:
        ids, ends = np.load(file)
        names = file.read()
    begins = np.concatenate([[0], ends[:-1]])
    rows = wanted.rows_in(ids)
    spans = zip(begins[rows].tolist(), ends[rows].tolist(), strict=True)
    return zip(ids[rows].tolist(), [names[begin:end] for begin, end in spans], strict=True)
