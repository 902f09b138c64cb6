"""What differs between two snapshots of a directory, or between one and now (SnapshotDiffInfo).

Like Hadoop it compares names, inodes and attributes, and no times; a directory whose children
differ is itself different.  Pure.
"""

from collections.abc import Iterator

from ha.record import dataclass
from namenode_sim.namespace.inode import (
    DirectoryDiff,
    Entry,
    FileDiff,
    INode,
    INodeDirectory,
    INodeFile,
    NewPlace,
    OldName,
    signed_order,
)
from namenode_sim.namespace.snapshots import diffs as found

Path = tuple[bytes, ...]
"""Names from the compared directory on; the directory itself has none."""


@dataclass(frozen=True, slots=True)
class Went:
    """A child that the later state lacks here; ``target`` is its new path below the directory."""

    entry: Entry
    target: Path | None


@dataclass(frozen=True, slots=True)
class Changed:
    """A file or directory of the earlier state that differs in the later one."""

    node: INode
    path: Path
    came: tuple[Entry, ...] = ()
    went: tuple[Went, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """What is compared: a directory at a snapshot, and at a later one or now (``CURRENT``)."""

    top: INodeDirectory
    earlier: int
    later: int

    def changes(self, start: Path | None = None) -> Iterator[Changed | None]:
        """Yield all that differs, parents first and by name, and None for all else.

        ``start``: go on with what has this path, of an earlier call.
        """
        waiting: list[tuple[INode, Path]] = [(self.top, ())]
        while waiting:
            node, path = waiting.pop()
            if isinstance(node, INodeFile):
                yield Changed(node, path) if self._has_changed(node) else None
            if not isinstance(node, INodeDirectory):
                continue
            came, went = self._children(node)
            targets = {name: self._target(entry) for name, entry in went.items()}
            after = start if start is not None and start[: len(path)] == path != start else None
            if after is None and (came or went or self._attributes_differ(node)):
                yield Changed(
                    node,
                    path,
                    tuple(found.in_order(came)),
                    tuple(Went(went[name], targets[name]) for name in found.names_in_order(went)),
                )
            else:
                yield None
            below = found.children_at(node, self.earlier)
            names = [name for name in below if name not in went or targets[name] is not None]
            if after is not None:
                first = signed_order(after[len(path)])
                names = [name for name in names if signed_order(name) >= first]
            ordered = found.names_in_order(names)
            waiting += [(found.inode_of(below[name]), (*path, name)) for name in reversed(ordered)]

    def _range(self, diffs: found.Diffs) -> tuple[int, int] | None:
        """Return the diffs from the earlier state up to the later; None if nothing was changed."""
        first, last = found.position(diffs, self.earlier), found.position(diffs, self.later)
        return (first, last) if first < len(diffs) and last > 0 else None

    def _children(self, node: INodeDirectory) -> tuple[dict[bytes, Entry], dict[bytes, Entry]]:
        """Return the children that came and went (Diff.combinePosterior)."""
        came: dict[bytes, Entry] = {}
        went: dict[bytes, Entry] = {}
        for diff in self._of(node):
            for name in {*diff.created, *diff.deleted}:
                new, old = diff.created.get(name), diff.deleted.get(name)
                was_new = came.pop(name, None) is not None
                if new is not None:
                    came[name] = new
                if old is not None and not was_new:
                    went[name] = old
        return came, went

    def _of(self, node: INodeDirectory) -> list[DirectoryDiff]:
        diffs = [] if node.history is None else node.history.diffs
        between = self._range(diffs)
        return [] if between is None else diffs[between[0] : between[1]]

    def _attributes_differ(self, node: INodeDirectory) -> bool:
        """Return whether a directory's own attributes differ.

        The first ones that were saved are compared with the present ones, not with the later
        snapshot's: so does Hadoop, which may report a change that came after both.
        """
        copies = [diff.copy for diff in self._of(node) if diff.copy is not None]
        return bool(copies) and any(
            _of_directory(copies[0]) != _of_directory(other) for other in (*copies[1:], node)
        )

    def _has_changed(self, file: INodeFile) -> bool:
        diffs: list[FileDiff] = [] if file.history is None else file.history.diffs
        between = self._range(diffs)
        if between is None:
            return False
        first, last = between
        length = file.length() if last == len(diffs) else diffs[last].size
        if diffs[first].size != length:
            return True
        copy = next((one.copy for one in diffs[first:last] if one.copy is not None), None)
        if copy is None:
            return False
        later = found.attributes_at(file, self.later)
        assert isinstance(later, INodeFile)
        return _of_file(copy) != _of_file(later)

    def _target(self, entry: Entry) -> Path | None:
        """Return where a moved entry is in the later state; None if it is not below the top."""
        if not isinstance(entry, OldName):
            return None
        names: list[bytes] = []
        node = entry.reference.inode
        while node is not self.top:
            at = node if node.reference is None else self._place(node)
            if at is None or at.parent is None or _held_until(at, at.parent) < self.later:
                return None
            names.insert(0, at.name)
            node = at.parent
        return tuple(names)

    def _place(self, node: INode) -> Entry | None:
        """Return the place of a moved node in the later state (WithCount.getParentRef)."""
        assert node.reference is not None
        olds = (old for old in node.reference.old_names if old.last_snapshot_id >= self.later)
        return next(olds, node.reference.place)


def is_moved(entry: Entry) -> bool:
    """Return whether an entry stands for a node that was moved while a snapshot held it."""
    return isinstance(entry, OldName | NewPlace)


def _held_until(entry: Entry, parent: INodeDirectory) -> int:
    """Return the newest state of a directory that has an entry (INodeDirectory.searchChild)."""
    child = parent.children.get(entry.name)
    if child is not None and found.entry_of(child) is entry:
        return found.CURRENT
    diffs = [] if parent.history is None else parent.history.diffs
    held = (one.snapshot_id for one in reversed(diffs) if one.deleted.get(entry.name) is entry)
    return next(held, found.NONE)


def _of_directory(node: INodeDirectory) -> tuple[object, ...]:
    return node.user, node.group, node.mode, node.quotas, node.acl, node.xattrs


def _of_file(file: INodeFile) -> tuple[object, ...]:
    return (
        file.user, file.group, file.mode, file.replication, file.preferred_block_size,
        file.storage_policy_id, file.ec_policy_id, file.acl, file.xattrs,
    )  # fmt: skip
