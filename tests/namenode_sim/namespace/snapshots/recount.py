"""What differs between two states of a directory, by two plain listings: the report's oracle."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile
from namenode_sim.namespace.snapshots.view import SnapshotView, look

Path = tuple[bytes, ...]
Line = tuple[str, Path, Path | None]
"""Label, path, and new path of what was renamed."""


@dataclass(frozen=True)
class Listing:
    """A state of a directory: paths and inodes by number, and numbers by path."""

    nodes: dict[int, tuple[Path, INode]]
    numbers: dict[Path, int]

    def children(self, number: int) -> dict[bytes, int]:
        path, node = self.nodes[number]
        names = node.children if isinstance(node, INodeDirectory) else ()
        return {name: self.numbers[*path, name] for name in names}


def listing(top: INodeDirectory, state: int) -> Listing:
    found = {node.id: (path, node) for path, node in _walk(look(top, top.name, state), ())}
    return Listing(found, {path: number for number, (path, _) in found.items()})


def _walk(sight: SnapshotView, path: Path) -> Iterator[tuple[Path, INode]]:
    yield path, sight.node
    if isinstance(sight.node, INodeDirectory):
        for name in sight.node.children:
            below = sight.child(name)
            assert below is not None
            yield from _walk(below, (*path, name))


@dataclass
class Recount:
    """Two listings compared, inode by inode."""

    before: Listing
    after: Listing
    lines: set[Line] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    """What both states have, and whose directories both have."""

    def run(self, top: INodeDirectory) -> set[Line]:
        self._keep(top.id)
        for number in self.kept:
            self._compare(number)
        return self.lines

    def _keep(self, number: int) -> None:
        self.kept.add(number)
        for child in self.before.children(number).values():
            if child in self.after.nodes:
                self._keep(child)

    def _compare(self, number: int) -> None:
        path, was = self.before.nodes[number]
        old, new = self.before.children(number), self.after.children(number)
        changed = _attributes(was) != _attributes(self.after.nodes[number][1])
        for name in old.keys() | new.keys():
            went, came = old.get(name), new.get(name)
            if went == came:
                continue
            changed = True
            if went is not None:
                target = self.after.nodes[went][0] if went in self.kept else None
                self.lines.add(("-" if target is None else "R", (*path, name), target))
            if came is not None and came not in self.kept:
                self.lines.add(("+", (*path, name), None))
        if changed:
            self.lines.add(("M", path, None))


def _attributes(node: INode) -> tuple[object, ...] | None:
    match node:
        case INodeFile():
            size = sum(block.num_bytes for block in node.blocks)
            more: tuple[object, ...] = (size, node.replication, node.storage_policy_id)
        case INodeDirectory():
            more = (node.quotas,)
        case _:
            return None
    return (node.user, node.group, node.mode, node.acl, node.xattrs, *more)


def differs_from_now(top: INodeDirectory, before: Listing, path: Path) -> bool:
    """Return whether a directory's attributes at a path of the earlier state are others now."""
    node = before.nodes[before.numbers[path]][1]
    live = {one.id: one for one in _live(top)}
    return node.id not in live or _attributes(node) != _attributes(live[node.id])


def _live(top: INodeDirectory) -> Iterator[INode]:
    waiting: list[INode] = [top]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, INodeDirectory):
            waiting += node.children.values()
