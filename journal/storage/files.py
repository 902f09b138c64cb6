"""The only door to the file system: few operations, each durable only after its own sync."""

import fcntl
import mmap
import os
import shutil
import struct
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

_FS_IOC_GETVERSION: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("v") << 8 | 1
"""linux/fs.h: the generation of an inode, on ext4, xfs and btrfs."""


class OpenFile(Protocol):
    """A file that grows at its end."""

    def append(self, data: bytes) -> None:
        """Write all of it; durable only after ``sync``."""

    def sync(self) -> None:
        """Make the contents durable."""

    def close(self) -> None:
        """Let go of it; closing twice is fine."""


class InPlaceFile(Protocol):
    """A file that is written over from its beginning."""

    def overwrite(self, data: bytes) -> None:
        """Write it; not durable."""

    def close(self) -> None:
        """Let go of it; closing twice is fine."""


class Files(Protocol):
    """What storage asks of a file system.  All of it may raise OSError."""

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if there is no folder."""

    def size(self, path: Path) -> int:
        """Return how many bytes a file holds."""

    def identity(self, path: Path) -> tuple[int, int]:
        """Return a file's inode number and its generation, 0 where the file system counts none."""

    def read(self, path: Path) -> bytes | None:
        """Return a small file's contents, or None if there is no such file."""

    def view(self, path: Path) -> AbstractContextManager[bytes]:
        """Give a view of a large file's contents, without reading it all into memory."""

    def create(self, path: Path) -> OpenFile:
        """Create an empty file of that name, in place of what was there."""

    def reopen(self, path: Path) -> OpenFile:
        """Open a file that exists, to append to it."""

    def open_in_place(self, path: Path) -> InPlaceFile:
        """Open a file whose beginning is written over again and again, created if need be."""

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file, durably."""

    def sync_file(self, path: Path) -> None:
        """Make a closed file's contents durable."""

    def sync_folder(self, folder: Path) -> None:
        """Make a folder's names durable."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of what had it; durable after ``sync_folder``."""

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name; durable after ``sync_folder``."""

    def remove(self, path: Path) -> None:
        """Remove a file or a folder with all in it; nothing to remove is fine."""

    def make_folder(self, folder: Path) -> None:
        """Create a folder that only its owner can read, and the folders above it."""


class _RealFile:
    """An OpenFile, and an InPlaceFile."""

    def __init__(self, path: Path, flags: int = os.O_CREAT | os.O_TRUNC) -> None:
        self._fd: int | None = os.open(path, os.O_WRONLY | flags, 0o600)

    def append(self, data: bytes) -> None:
        assert self._fd is not None
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def overwrite(self, data: bytes) -> None:
        assert self._fd is not None
        os.pwrite(self._fd, data, 0)

    def sync(self) -> None:
        assert self._fd is not None
        os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)


class RealFiles:
    """Files on this machine's disks."""

    def names(self, folder: Path) -> list[str]:
        try:
            return sorted(entry.name for entry in folder.iterdir())
        except FileNotFoundError:
            return []

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def identity(self, path: Path) -> tuple[int, int]:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_ino, _generation(file.fileno())

    def read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    @contextmanager
    def view(self, path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                yield b""
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped  # type: ignore[misc] # an mmap slices like bytes

    def create(self, path: Path) -> OpenFile:
        return _RealFile(path)

    def reopen(self, path: Path) -> OpenFile:
        return _RealFile(path, os.O_APPEND)

    def open_in_place(self, path: Path) -> InPlaceFile:
        return _RealFile(path, os.O_CREAT)

    def truncate(self, path: Path, size: int) -> None:
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def sync_file(self, path: Path) -> None:
        _sync(path, os.O_RDONLY)

    def sync_folder(self, folder: Path) -> None:
        _sync(folder, os.O_RDONLY | os.O_DIRECTORY)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def link(self, old: Path, new: Path) -> None:
        new.hardlink_to(old)

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _generation(fd: int) -> int:
    answer = bytearray(struct.calcsize("l"))
    try:
        fcntl.ioctl(fd, _FS_IOC_GETVERSION, answer)
    except OSError:
        return 0
    return int.from_bytes(answer[:4], sys.byteorder)


def _sync(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_durably(files: Files, path: Path, data: bytes) -> None:
    """Replace a small file so that after any crash either the old or the new contents stand."""
    unfinished = path.with_name(path.name + ".tmp")
    with_contents(files, unfinished, data)
    files.rename(unfinished, path)
    files.sync_folder(path.parent)


def with_contents(files: Files, path: Path, data: bytes) -> None:
    """Write a file and make its contents, but not yet its name, durable."""
    file = files.create(path)
    try:
        file.append(data)
        file.sync()
    finally:
        file.close()


def remove_durably(files: Files, path: Path) -> None:
    """Remove a file so that no crash brings it back."""
    files.remove(path)
    files.sync_folder(path.parent)
