"""Replays the operations that power_shim.c recorded, up to any point, and then cuts the power.

Contents are durable once their file was synced, names once their folder was; what else survives
is up to the kind of cut.  That is stricter than any journaling file system.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

_SECTOR: Final = 512


class Cut(StrEnum):
    """What of the unsynced outlives a power cut."""

    NOTHING = "nothing"
    EVERYTHING = "everything"
    NAMES = "names, not contents"
    CONTENTS = "contents, not names"
    SOME = "some of each, torn"


@dataclass(slots=True, eq=False)
class _Inode:
    cached: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    folder: bool = False
    in_place: bool = False
    """Written over within one sector, which a disk writes whole or not at all."""


_Names = dict[str, _Inode]


@dataclass(frozen=True, slots=True)
class _Change:
    """A name that appears, moves or goes, until its folder is synced."""

    old: str | None
    new: str | None
    inode: _Inode

    def within(self, folder: str) -> bool:
        return any(name is not None and _parent(name) == folder for name in (self.old, self.new))


def operations(log: Path) -> list[list[str]]:
    """Return the recorded operations; a line that is still being written does not count."""
    text = log.read_text()
    return [line.split("\t") for line in text[: text.rfind("\n") + 1].splitlines()]


class Replay:
    """A disk on which the operations so far have happened."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._cached: _Names = {}
        self._durable: _Names = {}
        self._pending: list[_Change] = []
        self._inodes: dict[str, _Inode] = {}

    def apply(self, operation: list[str]) -> None:  # noqa: C901 - one case per operation
        match operation:
            case ["create", number, path]:
                inode = self._inodes[number] = _Inode()
                self._change(_Change(None, path, inode))
            case ["mkdir", path]:
                self._change(_Change(None, path, _Inode(folder=True)))
            case ["rename", old, new]:
                self._change(_Change(old, new, self._cached[old]))
            case ["link", old, new]:
                self._change(_Change(None, new, self._cached[old]))
            case ["remove", path]:
                self._change(_Change(path, None, self._cached[path]))
            case ["write" | "pwrite", number, at, data]:
                inode, written = self._inodes[number], bytes.fromhex(data)
                in_place = operation[0] == "pwrite" and int(at) + len(written) <= _SECTOR
                inode.in_place = inode.in_place or in_place
                _write(inode.cached, int(at), written)
            case ["truncate", number, size]:
                cached = self._inodes[number].cached
                del cached[int(size) :]
                cached.extend(bytes(int(size) - len(cached)))
            case ["extend", number, size]:
                cached = self._inodes[number].cached
                cached.extend(bytes(max(0, int(size) - len(cached))))
            case ["sync", number]:
                self._inodes[number].durable = bytes(self._inodes[number].cached)
            case ["syncdir", path]:
                covered = [change for change in self._pending if change.within(path)]
                self._pending = [c for c in self._pending if not c.within(path)]
                for change in covered:
                    _apply(self._durable, change)
            case _:
                raise ValueError(f"unknown operation {operation[0]}")

    def write_to(self, folder: Path, cut: Cut, chance: Random) -> None:
        """Leave in an empty folder what such a power cut leaves of the disk."""
        names = dict(self._cached)
        if cut in (Cut.NOTHING, Cut.CONTENTS, Cut.SOME):
            names = dict(self._durable)
        if cut is Cut.SOME:
            for change in self._pending:
                if chance.random() < 0.5:
                    _apply(names, change)
        folder.mkdir(parents=True, exist_ok=True)
        for name, inode in sorted(names.items()):
            path = folder / Path(name).relative_to(self._root)
            if inode.folder:
                if path.parent.is_dir():
                    path.mkdir(exist_ok=True)
            elif path.parent.is_dir():  # else its folder is gone
                path.write_bytes(_content(inode, cut, chance))

    def tree(self) -> Mapping[str, bytes]:
        return {
            str(Path(name).relative_to(self._root)): bytes(inode.cached)
            for name, inode in self._cached.items()
            if not inode.folder
        }

    def _change(self, change: _Change) -> None:
        _apply(self._cached, change)
        self._pending.append(change)


def _apply(names: _Names, change: _Change) -> None:
    old, new = change.old, change.new
    moved: _Names = {}
    if old is not None and names.get(old, change.inode) is change.inode:
        # What was synced in a folder goes with it, even if its old name was not on the disk yet.
        moved = {name: names.pop(name) for name in _below(names, old)}
        names.pop(old, None)
    if new is not None:
        names[new] = change.inode
        for name, inode in moved.items():
            names[new + name[len(str(old)) :]] = inode


def _below(names: _Names, folder: str) -> Iterator[str]:
    return iter([name for name in names if name.startswith(folder + "/")])


def _content(inode: _Inode, cut: Cut, chance: Random) -> bytes:
    old, new = inode.durable, bytes(inode.cached)
    if cut in (Cut.EVERYTHING, Cut.CONTENTS):
        return new
    if cut in (Cut.NOTHING, Cut.NAMES) or old == new:
        return old
    if inode.in_place:
        return chance.choice((old, new))
    torn = chance.randint(min(len(old), len(new)), len(new))
    kept = new[:torn]
    return chance.choice((old, new, kept, kept + bytes(len(new) - torn)))


def _write(cached: bytearray, at: int, data: bytes) -> None:
    cached.extend(bytes(max(0, at - len(cached))))
    cached[at : at + len(data)] = data


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
