"""A simulated disk: what was not synced may vanish, torn and out of order, when power is lost."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from random import Random

from tests.simulation.engine.verdict import PowerCut

_INODES_APART = 1_000_000
"""No file has the number of another machine's file."""


@dataclass(slots=True, eq=False)
class Inode:
    """A file: what the page cache shows, what the platter has, and a count of its changes.

    ``named`` says that a name of it has been durable, ``in_place`` that it is written over and
    lies within one sector, which a disk writes whole or not at all.
    """

    number: int = 0
    cached: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    changes: int = 0
    named: bool = False
    in_place: bool = False
    flips: dict[int, int] = field(default_factory=dict)
    """Bits that have rotted, by offset.  A reader of the file sees them so; the oracle does not."""

    def as_written(self, data: bytes) -> bytes:
        """Return these bytes without the rot."""
        if not self.flips:
            return data
        whole = bytearray(data)
        for at, mask in self.flips.items():
            if at < len(whole):
                whole[at] ^= mask
        return bytes(whole)

    def rot(self, at: int, mask: int) -> None:
        durable = bytearray(self.durable)
        durable[at] ^= mask
        self.cached[at] ^= mask
        self.durable, self.flips[at] = bytes(durable), mask
        self.changes += 1


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of names that no sync of the folder has covered yet.

    Of a folder that was renamed, ``below`` has what is in it, and changes with it in one step.
    """

    folder: PurePath
    old: PurePath | None
    new: PurePath | None
    inode: Inode | None
    below: tuple["_Change", ...] = ()


@dataclass(slots=True)
class Blow:
    """What happens at a certain operation of this disk: ``kill``, ``power``, ``eio``, ``enospc``.

    ``then`` is called; for a kill or a power cut the process is gone when it returns.
    """

    at: int
    kind: str
    then: Callable[[], None]


class Platter:
    """One machine's disk.  It outlives the processes that use it."""

    def __init__(self, number: int = 0) -> None:
        self.cached: dict[PurePath, Inode] = {}
        self.durable: dict[PurePath, Inode] = {}
        self.operations = 0
        self.blows: list[Blow] = []
        self.watcher: Callable[[], None] = lambda: None
        self._pending: list[_Change] = []
        self._inodes = number * _INODES_APART

    def create(self, path: Path) -> Inode:
        """Create a new file in place of what was there."""
        self._inodes += 1
        inode = Inode(self._inodes)
        self._pending.append(_Change(path.parent, None, path, inode))
        self.cached[path] = inode
        return inode

    def rename(self, old: Path, new: Path) -> None:
        """Change both names in one step, now and in a power cut.  Raise FileNotFoundError."""
        if old in self.cached:
            inode = self.cached.pop(old)
            self.cached[new] = inode
            self._pending.append(_Change(new.parent, old, new, inode))
            return
        moved = [path for path in self.cached if old in path.parents]
        if not moved:
            raise FileNotFoundError(errno.ENOENT, "No such file", str(old))
        below = []
        for path in moved:
            inode, there = self.cached.pop(path), new / path.relative_to(old)
            self.cached[there] = inode
            below.append(_Change(there.parent, path, there, inode))
        self._pending.append(_Change(new.parent, old, new, None, tuple(below)))

    def link(self, inode: Inode, new: Path) -> None:
        self.cached[new] = inode
        self._pending.append(_Change(new.parent, None, new, inode))

    def remove(self, path: Path) -> None:
        self._pending.append(_Change(path.parent, path, None, self.cached.pop(path)))

    def remove_folder(self, folder: Path) -> None:
        """Take away all that is in it; once its own name is gone for good, so is the rest."""
        gone = [path for path in self.cached if folder in path.parents]
        below = [_Change(path.parent, path, None, self.cached.pop(path)) for path in gone]
        if below:
            self._pending += [*below, _Change(folder.parent, folder, None, None, tuple(below))]

    def wipe(self) -> None:
        self.cached, self.durable = {}, {}
        self._pending.clear()
        self.blows.clear()

    def copy(self, other: "Platter", theirs: str, ours: str) -> None:
        """Take over another machine's disk under our own name, and nothing else."""
        self.wipe()
        for path, inode in other.cached.items():
            self._inodes += 1
            data = bytes(inode.cached)
            copied = Inode(
                self._inodes, bytearray(data), data, 0, named=True, flips={**inode.flips}
            )
            root, _, *rest = path.parts
            assert path.parts[1] == theirs
            self.cached[PurePath(root, ours, *rest)] = copied
        self.durable = dict(self.cached)

    def sync(self, inode: Inode) -> None:
        if inode.durable != inode.cached:
            inode.durable = bytes(inode.cached)
            inode.changes += 1
            if inode.named:
                self.watcher()

    def sync_folder(self, folder: Path) -> None:
        covered = [change for change in self._pending if change.folder == folder]
        if covered:
            self._pending = [change for change in self._pending if change.folder != folder]
            for change in covered:
                _apply(self.durable, change)
            self.watcher()

    def cut_power(self, rng: Random) -> None:
        """Keep what is durable, and of the rest what chance lets through."""
        ordered = rng.random() < 0.5
        kept = rng.randint(0, len(self._pending))
        for number, change in enumerate(self._pending):
            # A journaling file system keeps a prefix; others owe us nothing.
            if number < kept if ordered else rng.random() < 0.5:
                _apply(self.durable, change)
        self._pending.clear()
        for inode in dict.fromkeys(self.durable.values()):
            self.settle(inode, rng)
        self.cached = dict(self.durable)
        self.watcher()

    def lose_unsynced(self) -> None:
        """Cut the power at its worst: nothing is kept that no sync has covered."""
        self._pending.clear()
        for inode in self.durable.values():
            inode.cached = bytearray(inode.durable)
        self.cached = dict(self.durable)

    def settle(self, inode: Inode, rng: Random) -> None:
        """Let chance say how much of an unsynced file reaches the platter."""
        if inode.durable == inode.cached:
            return
        old, new = inode.durable, bytes(inode.cached)
        inode.durable = rng.choice((old, new)) if inode.in_place else _torn(old, new, rng)
        inode.cached = bytearray(inode.durable)
        inode.changes += 1


def _apply(names: dict[PurePath, Inode], change: _Change) -> None:
    for each in change.below:
        _apply(names, each)
    if change.inode is None:
        return
    if change.old is not None and names.get(change.old) is change.inode:
        del names[change.old]
    if change.new is not None:
        names[change.new] = change.inode
        change.inode.named = True


def _torn(old: bytes, new: bytes, rng: Random) -> bytes:
    choice = rng.randrange(4)
    if choice == 0:
        return old
    if choice == 1:
        return new
    cut = rng.randint(len(old), len(new))
    if choice == 2:
        return new[:cut]
    # The length reached the platter, some of the sectors did not.
    return new[:cut] + bytes(len(new) - cut)


class SimulatedFiles:
    """The product's door to the file system, for one process on one machine."""

    def __init__(self, platter: Platter, alive: Callable[[], bool], rng: Random) -> None:
        self._platter = platter
        self._alive = alive
        self._rng = rng

    def names(self, folder: Path) -> list[str]:
        depth = len(folder.parts)
        return sorted(
            {
                path.parts[depth]
                for path in self._platter.cached
                if len(path.parts) > depth and path.parts[:depth] == folder.parts
            }
        )

    def size(self, path: Path) -> int:
        return len(self._inode(path).cached)

    def identity(self, path: Path) -> tuple[int, int]:
        return self._inode(path).number, 0

    def read(self, path: Path) -> bytes | None:
        self._look()
        inode = self._platter.cached.get(path)
        return None if inode is None else bytes(inode.cached)

    @contextmanager
    def view(self, path: Path) -> Iterator[bytes]:
        yield bytes(self._inode(path).cached)

    def create(self, path: Path) -> "_OpenFile":
        self.change()
        return _OpenFile(self, self._platter.create(path))

    def reopen(self, path: Path) -> "_OpenFile":
        return _OpenFile(self, self._inode(path))

    def open_in_place(self, path: Path) -> "_OpenFile":
        self.change()
        return _OpenFile(self, self._platter.cached.get(path) or self._platter.create(path))

    def truncate(self, path: Path, size: int) -> None:
        self.change()
        inode = self._inode(path)
        del inode.cached[size:]
        inode.flips = {at: mask for at, mask in inode.flips.items() if at < size}
        self._platter.sync(inode)

    def sync_file(self, path: Path) -> None:
        self.sync(self._inode(path))

    def sync_folder(self, folder: Path) -> None:
        self.change()
        self._platter.sync_folder(folder)

    def rename(self, old: Path, new: Path) -> None:
        self.change()
        self._platter.rename(old, new)

    def link(self, old: Path, new: Path) -> None:
        self.change()
        self._platter.link(self._inode(old), new)

    def remove(self, path: Path) -> None:
        self.change()
        if path in self._platter.cached:  # a file has nothing below it
            self._platter.remove(path)
            return
        self._platter.remove_folder(path)

    def make_folder(self, folder: Path) -> None:
        """Folders are where files are."""

    def append(self, inode: Inode, data: bytes) -> None:
        """Write at the end; an error leaves a torn part of it."""
        try:
            self.change()
        except BaseException:
            if self._alive():
                inode.cached += data[: self._rng.randint(0, len(data))]
            raise
        inode.cached += data

    def overwrite(self, inode: Inode, data: bytes) -> None:
        """Write over the beginning."""
        self.change()
        inode.cached[: len(data)] = data
        inode.in_place = True

    def sync(self, inode: Inode) -> None:
        """Make contents durable.  After an error chance has said what is there, once and for all:

        a kernel drops or keeps the pages, and never writes them again.
        """
        try:
            self.change()
        except OSError:
            self._platter.settle(inode, self._rng)
            self._platter.watcher()
            raise
        self._platter.sync(inode)

    def change(self) -> None:
        """Count an operation that changes something; faults strike before its effect."""
        self._look()
        platter = self._platter
        platter.operations += 1
        if not platter.blows:
            return
        for blow in [blow for blow in platter.blows if blow.at <= platter.operations]:
            platter.blows.remove(blow)
            blow.then()
            match blow.kind:
                case "eio":
                    raise OSError(errno.EIO, "Input/output error (simulated)")
                case "enospc":
                    raise OSError(errno.ENOSPC, "No space left on device (simulated)")
                case _:
                    pass
        self._look()

    def _look(self) -> None:
        if not self._alive():
            raise PowerCut

    def _inode(self, path: Path) -> Inode:
        self._look()
        inode = self._platter.cached.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
        return inode


class _OpenFile:
    """An open file of one process."""

    def __init__(self, files: SimulatedFiles, inode: Inode) -> None:
        self._files = files
        self._inode = inode

    def append(self, data: bytes) -> None:
        self._files.append(self._inode, data)

    def overwrite(self, data: bytes) -> None:
        self._files.overwrite(self._inode, data)

    def sync(self) -> None:
        self._files.sync(self._inode)

    def close(self) -> None: ...
