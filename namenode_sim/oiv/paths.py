"""Which directory an inode is in, and that directory's path, for lists of whole paths.

The directories are kept in memory.  The parent of every inode is too, or, with a folder for it,
in a database there, so that images larger than the memory can be listed.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Protocol

from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.namespace.inode import ROOT_ID
from namenode_sim.oiv.opened import OpenedImage

_BATCH: Final = 10_000


class Parents(Protocol):
    """The directory that lists an inode."""

    def add(self, parent: int, children: Iterable[int]) -> None:
        """Note what a directory lists."""

    def get(self, child: int) -> int | None:
        """Return the directory of an inode; None if none lists it."""


class _InMemory:
    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def add(self, parent: int, children: Iterable[int]) -> None:
        self._parents.update(dict.fromkeys(children, parent))

    def get(self, child: int) -> int | None:
        return self._parents.get(child)


class _InDatabase:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE parents (child INTEGER PRIMARY KEY, parent INTEGER)")

    def add(self, parent: int, children: Iterable[int]) -> None:
        rows = ((child, parent) for child in children)
        self._connection.executemany("INSERT OR REPLACE INTO parents VALUES (?, ?)", rows)

    def get(self, child: int) -> int | None:
        row = self._connection.execute(
            "SELECT parent FROM parents WHERE child = ?", (child,)
        ).fetchone()
        return None if row is None else int(row[0])


@contextmanager
def parents_store(folder: Path | None) -> Iterator[Parents]:
    """Open a store for parents: memory, or a database in a folder, gone afterwards.

    Raises:
        FileExistsError: if there is such a file already; Hadoop refuses a folder that exists.
        OSError: if the folder cannot be written.
    """
    if folder is None:
        yield _InMemory()
        return
    folder.mkdir(parents=True)
    file = folder / "parents.sqlite"
    try:
        with closing(sqlite3.connect(file)) as connection:
            yield _InDatabase(connection)
    finally:
        file.unlink(missing_ok=True)
        folder.rmdir()


class Unlinked(Exception):
    """An inode that no path leads to: it is only in snapshots, or the image is damaged."""


class PathFinder:
    """The paths of the directories of an image."""

    def __init__(self, parents: Parents) -> None:
        self.parents = parents
        self.names: dict[int, str] = {}
        """The directories by id."""
        self._paths: dict[int, str] = {ROOT_ID: "/"}

    def parent_path(self, inode: int) -> str:
        """Return the path of the directory that lists an inode; the root is in itself (Hadoop).

        Raises:
            Unlinked: if there is no such path.
        """
        if inode == ROOT_ID:
            return "/"
        parent = self.parents.get(inode)
        if parent is None:
            raise Unlinked
        return self._path(parent)

    def _path(self, directory: int) -> str:
        waiting = []
        at: int | None = directory
        while at not in self._paths:
            if at is None or at not in self.names or at in waiting:
                raise Unlinked
            waiting.append(at)
            at = self.parents.get(at)
        for number in reversed(waiting):
            self._paths[number] = join(self._paths[at], self.names[number])
            at = number
        return self._paths[directory]


def join(parent: str, name: str) -> str:
    """Return a path; the root has an empty name."""
    if not name:
        return parent
    return f"{parent}/{name}" if parent != "/" else f"/{name}"


def text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def read_links(image: OpenedImage, finder: PathFinder) -> Iterator[tuple[int, list[int]]]:
    """Note what every directory lists; yield each one's id and its own children, no references.

    Raises:
        ImageError: if a section is malformed.
    """
    with image.section("INODE_REFERENCE") as found:
        referred = [pb.INodeReference.FromString(raw).referredId for raw in found]
    with image.section("INODE_DIR") as found:
        for raw in found:
            entry = pb.DirEntry.FromString(raw)
            children = list(entry.children)
            finder.parents.add(entry.parent, children)
            finder.parents.add(entry.parent, [referred[index] for index in entry.refChildren])
            yield entry.parent, children
