"""Apply what the edits changed to an image: expand, write the parts, assemble them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from ha.record import dataclass
from namenode_sim.edits.attributes import delimited
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.engine.model import Engine
from spark.engine.outcome import attempt_name
from spark.image.ids import load_ids, save_ids
from spark.merge.errors import EditsDoNotBelong, NeedsWholeNamespace
from spark.merge.model import Delta, Ids
from spark.merge.plan.fetch import ChildrenTask, find_children
from spark.merge.plan.lookup import ImageIndex, referring
from spark.merge.stages import Tell, ignore_progress
from spark.merge.task_errors import verdicts
from spark.merge.write.assemble import Assembly, Layout, Written
from spark.merge.write.changes import save_messages, save_moves
from spark.merge.write.entries import EntriesTask, new_entries, write_entries
from spark.merge.write.expand import Expanded, ExpandTask, expand
from spark.merge.write.inode_parts import INodesTask, INodesWritten, write_inodes
from spark.merge.write.parts import Part


def apply_delta(
    engine: Engine,
    index: ImageIndex,
    delta: Delta,
    work: Path,
    out_file: Path,
    tell: Tell = ignore_progress,
) -> Written:
    """Write the image that the edits make of the old one.

    The callback is called with the number of bytes written.

    Args:
        engine: runs the tasks.
        index: the old image, as `spark.merge.plan.lookup.look_up` has indexed it.
        delta: what the edits change.
        work: takes the parts, each for as long as it is not yet in the image.
        out_file: the new image; synced when this returns, and worthless if this raises.

    Raises:
        EditsDoNotBelong: if the edits contradict the image.
        NeedsWholeNamespace: if they touch what only a whole namespace can change exactly.
        ImageError: if the image is damaged; names file and offset where there is one.
        TaskFailed: if a task failed otherwise.
        OSError: if the result cannot be written.
    """
    with verdicts():
        return _Writing(engine, index, delta, work).write(out_file, tell)


@dataclass(frozen=True, slots=True)
class _Files:
    """What tasks read of the delta."""

    updates: str
    moves: str
    deleted: str
    siblings: tuple[str, ...]


class _Writing:
    """One image being written."""

    def __init__(self, engine: Engine, index: ImageIndex, delta: Delta, work: Path) -> None:
        self._engine = engine
        self._index = index
        self._image = index.image
        self._delta = delta
        self._work = work

    def write(self, out_file: Path, tell: Tell) -> Written:
        expanded = self._expand()
        self._refuse_snapshottable(expanded)
        siblings, empty = self._siblings()
        files = _Files(
            save_messages(self._new("updates"), sorted(self._delta.updated.items())),
            save_moves(self._new("moves"), self._delta.removed, self._delta.added),
            expanded.deleted,
            siblings,
        )
        inodes = self._count() - expanded.count + len(self._delta.created)
        header = self._header(inodes)
        delta = self._delta
        filled = {parent: delta.added[parent] for parent in empty}
        layout = Layout(
            header,
            dict(delta.sections),
            {
                "INODE": lambda: (delimited(raw) for _, raw in delta.created),
                "INODE_DIR": lambda: new_entries(delta.new_entries, filled),
            },
        )
        with Assembly(self._image, layout, out_file, tell) as assembly:
            names = self._write_inodes(assembly, files, header, expanded.count)
            self._write_entries(assembly, files, names, len(empty))
        return Written(inodes, assembly.size, assembly.md5)

    def _new(self, stem: str) -> Path:
        return self._work / attempt_name(stem)

    def _save(self, stem: str, ids: Ids) -> str:
        return save_ids(self._new(stem), np.asarray(ids, np.int64))

    def _count(self) -> int:
        return sum(part.count for part in self._index.inodes)

    def _header(self, inodes: int) -> bytes:
        """Return the header of INODE; the old bytes if it says the same."""
        message = pb.INodeSection.FromString(self._image.header)
        if message.numInodes == inodes and message.lastInodeId == self._delta.last_inode_id:
            return delimited(self._image.header)
        message.numInodes, message.lastInodeId = inodes, self._delta.last_inode_id
        return delimited(message.SerializeToString())

    def _expand(self) -> Expanded:
        delta = self._delta
        if not delta.tombstones.size:
            return Expanded(self._save("deleted", delta.gone), delta.gone.size)
        task = ExpandTask(
            tuple((part.item, part.index) for part in self._index.directories),
            self._save("gone", delta.gone),
            self._save("tombstones", delta.tombstones),
            self._save("must-be-empty", delta.must_be_empty),
            self._save("materialised", delta.materialised),
            self._count(),
            str(self._work),
        )
        for _, found in self._engine.run("expand deletions", expand, [task]):
            return found
        raise AssertionError("an engine gave no result for its only task")

    def _refuse_snapshottable(self, expanded: Expanded) -> None:
        """Refuse to delete a snapshottable directory, as SNAPSHOT lists it, too."""
        section = self._image.small("SNAPSHOT")
        if not section:
            return
        width = 1 + next(i for i, byte in enumerate(section) if byte < 0x80)
        size = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(section[:width]))
        header = pb.SnapshotSection.FromString(section[width : width + size])
        listed = np.array(sorted(header.snapshottableDir), np.int64)
        # The other way round all that goes would be sorted once more, with several copies of it.
        deleted = load_ids(expanded.deleted)
        places = np.searchsorted(deleted, listed)
        lost = listed[places < np.searchsorted(deleted, listed, side="right")]
        if lost.size:
            raise NeedsWholeNamespace(
                f"the edits delete directory {lost[0]}, which allows snapshots"
            )

    def _siblings(self) -> tuple[tuple[str, ...], list[int]]:
        """Files with the children whose names are needed, and the directories without any yet."""
        gaining = np.array(sorted(self._delta.added), np.int64)
        if not gaining.size:
            return (), []
        wanted = self._save("gaining", gaining)
        tasks = [
            ChildrenTask(part.item, part.index, wanted, str(self._work))
            for part in self._index.directories
        ]
        files, found = [], [np.empty(0, np.int64)]
        for _, result in self._engine.run("list siblings", find_children, tasks):
            if result.references:
                raise referring(f"the directory of inode {result.references[0]}")
            files.append(result.rows)
            found.append(load_ids(result.found))
        empty: list[int] = np.setdiff1d(gaining, np.concatenate(found)).tolist()
        for parent in empty:
            if self._delta.removed.get(parent):
                raise EditsDoNotBelong(
                    f"an edit takes inode {self._delta.removed[parent][0]} out of directory "
                    f"{parent}, which is empty in the image: these edits do not belong to this "
                    "image"
                )
        return tuple(files), empty

    def _write_inodes(
        self, assembly: Assembly, files: _Files, header: bytes, deleted: int
    ) -> tuple[str, ...]:
        """Hand over the parts of INODE; returns the files of names."""
        codec = self._image.summary.codec
        tasks = [
            INodesTask(
                part.item,
                part.index,
                header if number == 0 and codec else b"",
                files.updates,
                files.deleted,
                files.siblings,
                codec,
                str(self._work),
            )
            for number, part in enumerate(self._index.inodes)
        ]
        done: list[INodesWritten] = []
        for written in in_order(self._engine.run("write inodes", write_inodes, tasks)):
            assembly.put("INODE", written.part)
            done.append(written)
        self._check("inodes to be changed", sum(w.updated for w in done), len(self._delta.updated))
        self._check("inodes to be deleted", sum(w.deleted for w in done), deleted)
        assembly.end("INODE")
        return tuple(written.names for written in done if written.names)

    def _write_entries(
        self, assembly: Assembly, files: _Files, names: tuple[str, ...], empty: int
    ) -> None:
        """Hand over the parts of INODE_DIR."""
        codec = self._image.summary.codec
        tasks = [
            EntriesTask(
                part.item, part.index, files.moves, files.deleted, names, codec, str(self._work)
            )
            for part in self._index.directories
        ]
        changed = 0
        for written in in_order(self._engine.run("write directories", write_entries, tasks)):
            assembly.put("INODE_DIR", written.part)
            changed += written.changed
        wanted = len(self._delta.added.keys() | self._delta.removed.keys()) - empty
        if changed != wanted:
            raise EditsDoNotBelong(
                f"the edits change the children of {wanted} directories, of which the image has "
                f"{changed}: these edits do not belong to this image"
            )
        assembly.end("INODE_DIR")

    def _check(self, what: str, found: int, wanted: int) -> None:
        if found != wanted:
            raise ImageError(
                f"{self._image.path}: of {wanted} {what}, {found} are in section INODE; a "
                "directory has a child that is no inode, or an inode is there twice: take another "
                "copy of this image"
            )


class _Numbered(Protocol):
    """What tasks return."""

    @property
    def part(self) -> Part:
        """The part that a task has written."""


R = TypeVar("R", bound=_Numbered)


def in_order(results: Iterable[tuple[int, R]]) -> Iterator[R]:
    """Results as soon as all before them are there."""
    waiting: dict[int, R] = {}
    following = 0
    for number, result in results:
        waiting[number] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1
