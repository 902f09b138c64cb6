"""A file system that is obviously right: a snapshot is a copy of everything.

It shares no code with the namespace.  Edits that it makes up are valid, as a log's are.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

Attributes = dict[str, object]


@dataclass
class Thing:
    """A file, directory or symlink with its attributes; a file's blocks are (id, length)."""

    number: int
    kind: str
    attributes: Attributes
    children: "dict[str, Thing]" = field(default_factory=dict)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    open: bool = False
    moved: bool = False

    def walk(self, path: str = "") -> "Iterator[tuple[str, Thing]]":
        """Yield all paths at and below, parents first; the path of the top itself is as given."""
        yield path, self
        for name, child in self.children.items():
            yield from child.walk(f"{path}/{name}")


def _new_root() -> Thing:
    return Thing(16385, "directory", {"mode": 0o755, "user": "hdfs", "group": "supergroup"})


@dataclass
class Model:
    """The tree, and of each snapshottable directory (by number) its snapshots by name."""

    root: Thing = field(default_factory=_new_root)
    snapshots: dict[int, dict[str, Thing]] = field(default_factory=dict)

    def at(self, path: str) -> Thing:
        thing = self.root
        for name in path.split("/")[1:]:
            if name:
                thing = thing.children[name]
        return thing

    def parent_of(self, path: str) -> tuple[Thing, str]:
        above, _, name = path.rpartition("/")
        return self.at(above), name

    def paths(self, kind: str | None = None) -> list[str]:
        """Return paths of all things (of a kind) below the root."""
        found = [path for path, thing in self.root.walk() if path and kind in {None, thing.kind}]
        return sorted(found)

    def snapshottable_in(self, thing: Thing) -> list[int]:
        return [one.number for _, one in thing.walk() if one.number in self.snapshots]

    def has_snapshots_in(self, thing: Thing) -> bool:
        """Return whether it may neither go nor move."""
        return any(self.snapshots[number] for number in self.snapshottable_in(thing))

    def is_above_or_below_snapshottable(self, path: str) -> bool:
        """Return whether to allow snapshots there would nest them, which Hadoop refuses."""
        thing = self.root
        above = [thing]
        for name in path.split("/")[1:-1]:
            thing = thing.children[name]
            above.append(thing)
        nested = any(one.number in self.snapshots for one in above)
        return nested or bool(self.snapshottable_in(self.at(path)))

    def would_nest(self, path: str) -> bool:
        """Return whether a snapshottable directory may not be moved to a path.

        Hadoop always has its root as one that can be made snapshottable, and counts it if the path
        is right below it.
        """
        above = self._above(path)
        return not above or any(one.number in self.snapshots for one in above)

    def is_below_moved(self, path: str) -> bool:
        return any(one.moved for one in self._above(path))

    def _above(self, path: str) -> list[Thing]:
        thing, above = self.root, []
        for name in path.split("/")[1:-1]:
            thing = thing.children[name]
            above.append(thing)
        return above

    def take(self, number: int, thing: Thing, name: str) -> None:
        self.snapshots[number][name] = deepcopy(thing)

    def numbers(self) -> set[int]:
        tops = [self.root, *(top for taken in self.snapshots.values() for top in taken.values())]
        return {thing.number for top in tops for _, thing in top.walk()}

    def _in_snapshots(self) -> "Iterator[Thing]":
        tops = (top for taken in self.snapshots.values() for top in taken.values())
        return (thing for top in tops for _, thing in top.walk())

    def in_any_snapshot(self, number: int) -> bool:
        return any(thing.number == number for thing in self._in_snapshots())

    def has_block(self, number: int) -> bool:
        return any(block == number for thing in self._in_snapshots() for block, _ in thing.blocks)
