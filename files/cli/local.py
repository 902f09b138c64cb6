"""Files of this machine, which are copied to HDFS or come from there."""

import asyncio
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from files.cli.failures import Code, LocalFailure, Unfit

STANDARD: Final = "-"
"""Standard input or output."""
CHUNK_BYTES: Final = 1024 * 1024
PARTIAL: Final = "._COPYING_"
"""Behind the name of a copy that is not complete, as Hadoop has it."""


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Say which file of this machine an error is about."""
    try:
        yield
    except OSError as failure:
        raise LocalFailure(f"{path} on this machine: {failure.strerror or failure}") from failure


def place_of(text: str) -> Path:
    """Return the absolute path of a word on the command line; ``-`` stays what it is."""
    return Path(text) if text == STANDARD else Path(text.removeprefix("file://")).absolute()


def folder_or_name(text: str, *, several: bool) -> Path:
    """Return where files may be put: in a folder that is there, or under a name in one.

    Raises:
        Unfit: it is neither, or no folder although several things are to be put there.
    """
    place = place_of(text)
    if place.is_dir():
        return place
    if several or text.endswith("/"):
        raise Unfit("there is no such folder on this machine", Code.NO_SUCH_PATH, f"mkdir {place}")
    if not place.parent.is_dir():
        raise Unfit(f"there is no folder {place.parent} on this machine", Code.NO_SUCH_PATH)
    return place


def inside(place: Path, name: str) -> Path:
    """Return the path of a name in a folder; of something that is no folder, the path itself."""
    return place / name if place.is_dir() else place


def names_in(path: Path) -> Sequence[str] | None:
    """Return what is in a folder, in order; None where it is something else.

    Raises:
        Unfit: it is not there.
        LocalFailure: it cannot be read.
    """
    if not path.is_dir():
        if not os.path.lexists(path) or not path.exists():
            raise Unfit("there is no such file on this machine", Code.NO_SUCH_PATH)
        return None
    with about(path):
        return sorted(one.name for one in path.iterdir())


def make_folder(path: Path) -> None:
    """Make a folder; one that is there is fine."""
    with about(path):
        path.mkdir(exist_ok=True)


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Callable[[bytes], object]]:
    """Yield what writes to a new file, which gets its name when the block ends well.

    Raises:
        Unfit: something is there, and is not to be replaced.
        LocalFailure: it cannot be written.
    """
    if target.is_dir() or (target.exists() and not overwrite):
        raise Unfit(f"{target} is there already", Code.PATH_EXISTS, "-f replaces a file")
    partial = target.with_name(target.name + PARTIAL)

    def write(data: bytes) -> None:
        with about(partial):
            out.write(data)

    try:
        with about(partial):
            out = partial.open("wb")
        with out:
            yield write
            with about(partial):
                out.flush()
        with about(target):
            partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class Source:
    """Something of this machine that is being read; ``size`` is None for a pipe."""

    name: str
    descriptor: int
    size: int | None

    async def read(self) -> bytes:
        """Return the next bytes, none at the end.  Raises LocalFailure."""
        with about(Path(self.name)):
            if self.size is not None:
                return os.read(self.descriptor, CHUNK_BYTES)
            return await _read_in_a_thread(self.descriptor)


@contextmanager
def source(text: str) -> Iterator[Source]:
    """Yield a file, a pipe, or standard input for ``-``, open for reading.

    Raises:
        LocalFailure: it cannot be opened.
    """
    with about(Path(text)):
        descriptor = 0 if text == STANDARD else os.open(text, os.O_RDONLY)
    try:
        found = os.fstat(descriptor)
        yield Source(text, descriptor, found.st_size if stat.S_ISREG(found.st_mode) else None)
    finally:
        if descriptor:
            os.close(descriptor)


async def _read_in_a_thread(descriptor: int) -> bytes:
    """Return what comes next from a pipe, while the lease of the file is renewed.

    The thread ends with the process: one of a pool would keep it until the pipe says something.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes | OSError] = loop.create_future()

    def settle(found: bytes | OSError) -> None:
        if not done.done():
            done.set_result(found)

    def run() -> None:
        try:
            found: bytes | OSError = os.read(descriptor, CHUNK_BYTES)
        except OSError as failure:
            found = failure
        with suppress(RuntimeError):  # the command has ended
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=run, daemon=True).start()
    answer = await done
    if isinstance(answer, OSError):
        raise answer
    return answer
