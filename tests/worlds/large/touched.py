"""What a day of edits touches of a generated namespace: all that its author has to keep in mind."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from namenode_sim.edits.values import Block, Permission
from tests.worlds.large.inodes import BLOCK_SIZE, Traits, permission_of, traits
from tests.worlds.large.shape import Places, Shape

_BATCH: Final = 4096
_HOT_SHARE: Final = 0.5
"""Of all picks, those that fall on a few busy directories."""
_HOT_ONE_IN: Final = 500
_AT_ONCE: Final = 3
"""Neighbours that are looked up together, for concat."""


@dataclass(slots=True, eq=False)
class Folder:
    """A directory, of the image or new; ``base`` is -1 for a new one."""

    above: "Folder | None"
    name: str
    base: int = -1
    gone: bool = False

    def path(self) -> str:
        """Return where it is now; the root's is empty."""
        names, folder = [], self
        while folder.above is not None:
            names.append(folder.name)
            folder = folder.above
        return "".join(f"/{name}" for name in reversed(names))

    def alive(self) -> bool:
        """Return whether neither it nor anything above it was deleted."""
        return not any(folder.gone for folder in self.upwards())

    def upwards(self) -> "Iterator[Folder]":
        folder: Folder | None = self
        while folder is not None:
            yield folder
            folder = folder.above


@dataclass(slots=True, eq=False)
class File:
    """A closed file that edits may be about."""

    folder: Folder
    name: str
    blocks: tuple[Block, ...]
    permission: Permission

    def path(self) -> str:
        return f"{self.folder.path()}/{self.name}"


class Touched:
    """Draws directories and files of the image, no file twice."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape = shape
        self.root = Folder(None, "", 0)
        self._folders = {0: self.root}
        self._numbers = np.random.default_rng(seed)
        count = len(shape.parent)
        self._hot = self._numbers.integers(1, count, max(count // _HOT_ONE_IN, 2))
        self._used: set[int] = set()
        self._drawn: list[Folder] = []
        self._files: list[list[File]] = []

    def directories(self) -> list[int]:
        """Return the directories of the image that were drawn so far, and those above them."""
        return list(self._folders)

    def positions(self) -> Places:
        """Return where all directories and files are that were drawn so far."""
        folders = self.shape.place[np.fromiter(self._folders, np.int64)]
        return np.sort(np.concatenate((folders, np.fromiter(self._used, np.int64))))

    def folder(self, directory: int) -> Folder:
        """Return a directory of the image; moved ones are where they are now."""
        missing = []
        while directory not in self._folders:
            missing.append(directory)
            directory = int(self.shape.parent[directory])
        folder = self._folders[directory]
        if missing:
            names = self._names(np.array(missing))
            for each, name in zip(reversed(missing), reversed(names), strict=True):
                folder = self._folders[each] = Folder(folder, name, each)
        return folder

    def any_folder(self) -> Folder:
        """Return a directory that still exists; any of them, or one of the busy ones."""
        while True:
            if not self._drawn:
                self._drawn = self._draw_folders()
            folder = self._drawn.pop()
            if folder.alive():
                return folder

    def fresh_files(self) -> list[File]:
        """Return one closed file that no edit was about, and perhaps neighbours of its kind."""
        while True:
            if not self._files:
                self._files = list(self._draw_files())
            found = self._files.pop()
            if found and found[0].folder.alive():
                return found

    def _draw_folders(self) -> list[Folder]:
        drawn = self._directories()
        self._prepare(drawn)
        return [self._folders[int(each)] for each in drawn]

    def _directories(self) -> Places:
        count = len(self.shape.parent)
        anywhere = self._numbers.integers(1, count, _BATCH)
        busy = self._hot[self._numbers.integers(0, len(self._hot), _BATCH)]
        return np.where(self._numbers.random(_BATCH) < _HOT_SHARE, busy, anywhere)

    def _draw_files(self) -> Iterator[list[File]]:
        anywhere = self._numbers.integers(0, self.shape.inodes, _BATCH)
        owners, _ = self.shape.owner(anywhere)
        busy = self._directories()
        owners = np.where(self._numbers.random(_BATCH) < _HOT_SHARE, busy, owners)
        files = self.shape.files[owners]
        drawn = (self._numbers.random(_BATCH) * files).astype(np.int64)
        there = files > 0
        owners, drawn, files = owners[there], drawn[there], files[there]
        self._prepare(owners)
        first = self.shape.place[owners] + 1 + drawn
        known = [
            traits(self.shape, first + np.minimum(n, files - 1 - drawn)) for n in range(_AT_ONCE)
        ]
        left = np.minimum(files - drawn, _AT_ONCE)
        for row in range(len(first)):
            folder, begin = self._folders[int(owners[row])], int(first[row])
            together = range(begin, begin + int(left[row]))
            if self._used.isdisjoint(together):
                found = [_file(folder, known[n], row) for n in range(len(together))]
                self._used.update(together)
                yield [file for file in found if file is not None]

    def _prepare(self, directories: Places) -> None:
        """Have these directories and all above them at hand; their names cost less together."""
        wanted = directories
        levels = []
        while len(wanted):
            wanted = np.unique(wanted)
            wanted = wanted[[int(each) not in self._folders for each in wanted]]
            levels.append(wanted)
            wanted = self.shape.parent[wanted]
        for level in reversed(levels):
            for each, name in zip(level, self._names(level), strict=True):
                above = self._folders[int(self.shape.parent[each])]
                if int(each) not in self._folders:
                    self._folders[int(each)] = Folder(above, name, int(each))

    def _names(self, directories: Places) -> list[str]:
        if not len(directories):
            return []
        names = self.shape.names(directories, np.full(len(directories), -1))
        lines, sizes = names.data.tobytes(), names.sizes
        width = names.data.shape[1]
        return [lines[row * width :][: int(sizes[row])].decode() for row in range(len(directories))]


def _file(folder: Folder, known: Traits, row: int) -> File | None:
    """Return the file of one row; None if it is open."""
    if known.is_open[row]:
        return None
    name = known.names.data[row, : known.names.sizes[row]].tobytes().decode()
    count, first, stamp = int(known.blocks[row]), int(known.block[row]), int(known.stamp[row])
    lengths = [BLOCK_SIZE] * (count - 1) + [int(known.length[row])]
    blocks = tuple(Block(first + n, lengths[n], stamp) for n in range(count))
    return File(folder, name, blocks, permission_of(known, row))


def large_tree(shape: Shape, share: float, random: Random) -> int:
    """Return a directory with about this share of all inodes, and not the one with most files."""
    distance = np.abs(shape.below - shape.inodes * share)
    above = shape.large
    while above > 0:
        distance[above] = shape.inodes
        above = int(shape.parent[above])
    nearest = np.argsort(distance)[:2]
    return int(nearest[random.randrange(2)])
