"""getSnapshotDiffReport and its pages: what changed between two snapshots, or since one.

A walk over a large directory takes seconds: the functions here are generators, which yield now and
then so that others are served, and return the answer.
"""

from collections.abc import Generator, Iterator, MutableSequence
from itertools import islice
from operator import itemgetter
from typing import Final

from ha.record import dataclass, field
from hadoop.proto import client_snapshots_pb2 as pb
from namenode_sim.client_protocol.words import errors, permissions
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import as_directory
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.namespace.inode import INodeDirectory, full_path, signed_order
from namenode_sim.namespace.snapshots.difference import Changed, Path, Span, is_moved
from namenode_sim.namespace.snapshots.diffs import CURRENT, inode_of
from namenode_sim.namespace.snapshots.view import look
from namenode_sim.namespace.usage import above

PAUSE_NODES: Final = 500
"""Others are served after each such number of inodes."""
PAGE_ENTRIES: Final = 1000
"""The most entries of one page, as by default in Hadoop."""

ReportSteps = Generator[None, None, pb.GetSnapshotDiffReportResponseProto]
ListingSteps = Generator[None, None, pb.GetSnapshotDiffReportListingResponseProto]


ListedEntry = pb.SnapshotDiffReportListingEntryProto
Listed = tuple[MutableSequence[ListedEntry], ListedEntry]
Request = pb.GetSnapshotDiffReportRequestProto | pb.GetSnapshotDiffReportListingRequestProto


@dataclass(slots=True)
class Compared:
    """What is compared; ``forward``: from the earlier state to the later.  ``root`` has both."""

    root: INodeDirectory
    span: Span
    forward: bool
    looked_at: int = 0

    def is_pause(self) -> bool:
        """Return whether others are to be served, asked after each inode."""
        self.looked_at += 1
        return self.looked_at % PAUSE_NODES == 0


@dataclass(slots=True)
class Renames:
    """Where inodes were in the earlier state and where they are in the later, as far as known."""

    sources: dict[int, Path] = field(default_factory=dict)
    targets: dict[int, Path] = field(default_factory=dict)

    def note(self, change: Changed) -> None:
        for entry in filter(is_moved, change.came):
            self.targets.setdefault(inode_of(entry).id, (*change.path, entry.name))
        for gone in change.went:
            number = inode_of(gone.entry).id
            if is_moved(gone.entry):
                self.sources[number] = (*change.path, gone.entry.name)
            if gone.target is not None:
                self.targets[number] = gone.target

    def pair(self, number: int) -> tuple[Path, Path] | None:
        """Return source and target of an inode that was renamed; None where one is not known."""
        source, target = self.sources.get(number), self.targets.get(number)
        return None if source is None or target is None else (source, target)


def report(scene: Scene, request: pb.GetSnapshotDiffReportRequestProto) -> ReportSteps:
    """Return all that differs; a walk that begins at a state ends as it is then."""
    compared = yield from _find_compared(scene, request)
    top = compared.root if compared is not None else None
    answer = pb.SnapshotDiffReportProto(
        snapshotRoot=request.snapshotRoot if top is None else full_path(top),
        fromSnapshot=request.fromSnapshot,
        toSnapshot=request.toSnapshot,
    )
    if compared is not None:
        renames, changes = Renames(), []
        for change in compared.span.changes():
            if change is not None:
                renames.note(change)
                changes.append((_in_hadoops_order(change), change))
            if compared.is_pause():
                yield
                _check_there(scene, request)
        changes.sort(key=itemgetter(0))
        for _, change in changes:
            for entry in _entries(change, renames, forward=compared.forward):
                answer.diffReportEntries.append(entry)
                if compared.is_pause():  # one directory may have a million
                    yield
                    _check_there(scene, request)
    return pb.GetSnapshotDiffReportResponseProto(diffReport=answer)


def _in_hadoops_order(change: Changed) -> tuple[int, list[bytes]]:
    """Return what sorts changes as Hadoop does: by depth, then by the present path."""
    names, node = [], change.node
    while node.parent is not None:
        names.append(node.name)
        node = node.parent
    return len(names), [signed_order(name) for name in reversed(names)]


def _entries(
    change: Changed, renames: Renames, *, forward: bool
) -> Iterator[pb.SnapshotDiffReportEntryProto]:
    """Yield a change, then what came to it, and what went from it; backward the other way round."""
    came, went = ("+", "-") if forward else ("-", "+")
    yield _entry("M", change.path)
    for entry in change.came:
        if renames.pair(inode_of(entry).id) is None:
            yield _entry(came, (*change.path, entry.name))
    for gone in change.went:
        moved = renames.pair(inode_of(gone.entry).id)
        if moved is None:
            yield _entry(went, (*change.path, gone.entry.name))
        else:
            yield _entry("R", *(moved if forward else reversed(moved)))


def _entry(label: str, path: Path, target: Path | None = None) -> pb.SnapshotDiffReportEntryProto:
    entry = pb.SnapshotDiffReportEntryProto(fullpath=b"/".join(path), modificationLabel=label)
    if target is not None:
        entry.targetPath = b"/".join(target)
    return entry


def listing(
    scene: Scene, request: pb.GetSnapshotDiffReportListingRequestProto, room: int = PAGE_ENTRIES
) -> ListingSteps:
    """Return a page of what differs, from the cursor of the page before on.

    The cursor is the path of a directory and the number of its entries that are on earlier pages,
    or of what is to begin a page, and -1; an empty path and -1 end the list.
    """
    compared = yield from _find_compared(scene, request)
    page = pb.SnapshotDiffReportListingProto(
        isFromEarlier=compared is not None and compared.forward
    )
    page.cursor.startPath, page.cursor.index = b"", -1
    answer = pb.GetSnapshotDiffReportListingResponseProto(diffReport=page)
    if compared is None:
        return answer
    cursor = request.cursor
    begun = request.HasField("cursor") and bool(cursor.startPath or cursor.index >= 0)
    start = tuple(filter(None, cursor.startPath.split(b"/"))) if begun else None
    for change in compared.span.changes(start):
        if compared.is_pause():
            yield
            _check_there(scene, request)
        if change is None:
            continue
        first = max(cursor.index, 0) if begun and change.path == start else 0
        added = list(islice(_list_entries(answer.diffReport, change), first, first + room + 1))
        for add, entry in added[:room]:
            add.append(entry)
        if len(added) > room:
            answer.diffReport.cursor.startPath = b"/".join(change.path)
            answer.diffReport.cursor.index = first + room
            break
        room -= len(added)
    return answer


def _list_entries(page: pb.SnapshotDiffReportListingProto, change: Changed) -> Iterator[Listed]:
    """Yield the entries of a change, each with the list that it belongs to."""
    node = change.node
    is_directory = isinstance(node, INodeDirectory)
    yield (
        page.modifiedEntries,
        ListedEntry(
            fullpath=b"/".join(change.path), dirId=node.id, fileId=node.id, isReference=is_directory
        ),
    )
    for entry in change.came:
        path, number = b"/".join((*change.path, entry.name)), inode_of(entry).id
        yield (
            page.createdEntries,
            ListedEntry(fullpath=path, dirId=node.id, fileId=number, isReference=is_moved(entry)),
        )
    for gone in change.went:
        path, number = b"/".join((*change.path, gone.entry.name)), inode_of(gone.entry).id
        one = ListedEntry(
            fullpath=path, dirId=node.id, fileId=number, isReference=gone.target is not None
        )
        if gone.target is not None:
            one.targetPath = b"/".join(gone.target)
        yield page.deletedEntries, one


def _find_compared(scene: Scene, request: Request) -> Generator[None, None, Compared | None]:
    """Return what is to be compared; None where both states are the same.

    Raises:
        FsError: if the caller may not read all of both, or there is no such snapshot.
    """
    route = find(scene, request.snapshotRoot)
    permissions.check_path(scene.caller, route, permissions.READ)
    top = as_directory(route)
    root = _snapshottable_above(scene, route.path, top)
    states = [_state(scene, root, name) for name in (request.fromSnapshot, request.toSnapshot)]
    if not scene.caller.exempt:
        for state in states:
            for _ in _check_readable(scene, top, state):
                yield
                _check_there(scene, request)
    if states[0] == states[1]:
        return None
    return Compared(root, Span(top, min(states), max(states)), forward=states[0] < states[1])


def _check_there(scene: Scene, request: Request) -> None:
    """Raise FsError if the directory, or a snapshot of it, went while others were served."""
    route = find(scene, request.snapshotRoot)
    root = _snapshottable_above(scene, route.path, as_directory(route))
    for name in (request.fromSnapshot, request.toSnapshot):
        _state(scene, root, name)


def _snapshottable_above(scene: Scene, path: str, top: INodeDirectory) -> INodeDirectory:
    """Return the snapshottable directory that a directory is, or is in."""
    for step in above(top):
        if step.id in scene.namespace.snapshots.snapshottable:
            return step
    raise errors.snapshot_error(
        f"The path {path} is neither snapshottable nor under a snapshot root!"
    )


def _state(scene: Scene, root: INodeDirectory, name: str) -> int:
    """Return the id of a snapshot; CURRENT for no name."""
    if not name:
        return CURRENT
    for snapshot in scene.namespace.snapshots.snapshottable[root.id]:
        if snapshot.name == name:
            return snapshot.id
    raise errors.snapshot_error(
        f"Cannot find the snapshot of directory {full_path(root)} with name {name}"
    )


def _check_readable(scene: Scene, top: INodeDirectory, state: int) -> Iterator[None]:
    """Raise FsError unless the caller may list all directories of a state."""
    for count, sight in enumerate(look(top, top.name, state).subtree(), 1):
        if isinstance(sight.node, INodeDirectory):
            permissions.check_directory(scene.caller, sight.node, permissions.READ)
        if count % PAUSE_NODES == 0:
            yield
