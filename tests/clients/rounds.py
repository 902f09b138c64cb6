"""What a client of files does again and again while servers die, and what it must find then.

The same for clients of each kind, which give their own ``Files``.  A call that fails is made
again, as docs/webhdfs.md says, after a look at what the failed one has done.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

SIZES: Final = (0, 1, 700_000, 3_000_000, 70_000)
"""Around a packet of 64 KiB and a block of 1 MiB."""
BLOCK_BYTES: Final = 1 << 20
KEPT: Final = 8
"""How many files a client has; then it deletes the oldest."""
CALL_SECONDS: Final = 200.0
"""A dead DataNode is known after 15 s, and the lease of its writer ends after 60 s."""
RANGES: Final = 3


class Wrong(Exception):
    """What was found is not what was acknowledged."""


class Files(Protocol):
    """One client; each call may fail by an exception of ``failures`` of its Rounds."""

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file."""

    def append(self, path: str, data: bytes) -> None: ...

    def read(self, path: str, offset: int, length: int) -> bytes: ...

    def length(self, path: str) -> int | None:
        """Return the length of a file; None if it is not there."""

    def names(self, folder: str) -> list[str]: ...

    def rename(self, source: str, target: str) -> None: ...

    def delete(self, path: str) -> None: ...


def never() -> bool:
    """Say of a call that it leaves nothing to look at."""
    return False


@dataclass(slots=True)
class Rounds:
    """The rounds of one client in a folder of its own; ``many`` is a folder that others made."""

    files: Files
    failures: tuple[type[Exception], ...]
    folder: str
    seed: int
    many: str = ""
    entries: int = 0
    kept: dict[str, bytes] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    listings: list[float] = field(default_factory=list)
    """What each listing of ``many`` took, in seconds."""
    checked_bytes: int = 0
    pause_seconds: float = 0.3
    _draw: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._draw.seed(self.seed)

    def run(self) -> Iterator[int]:
        """Play rounds without an end, and yield the number of each."""
        number = 0
        while True:
            self._round(number)
            yield number
            number += 1

    def check_all(self) -> None:
        """Raise Wrong unless the folder has just the files that were acknowledged, byte by byte."""
        self._list()
        for path, content in self.kept.items():
            self._expect_length(path)
            self._expect_range(path, 0, len(content))

    def summary(self) -> str:
        took = " ".join(f"{one:.2f}" for one in self.listings)
        return (
            f"{len(self.kept)} files, {self.checked_bytes} bytes checked, {len(self.failed)} calls "
            f"made again, {self.entries} entries listed in {took} s"
        )

    def _round(self, number: int) -> None:
        first, path = f"{self.folder}/new-{number}", f"{self.folder}/ü {number:05}"
        content = self._draw.randbytes(SIZES[number % len(SIZES)])
        more = self._draw.randbytes(1 + self._draw.randrange(100_000))
        self._until(lambda: self.files.write(first, content), never)
        self._append(first, content, more)
        self._until(lambda: self._rename(first, path), lambda: self._is_renamed(first, path))
        self.kept[path] = content + more
        self._expect_length(path)
        for _ in range(RANGES):
            begin = self._draw.randrange(len(self.kept[path]))
            self._expect_range(path, begin, 1 + self._draw.randrange(len(self.kept[path]) - begin))
        if len(self.kept) > KEPT:
            oldest = next(iter(self.kept))
            self._until(lambda: self._delete(oldest), lambda: self.files.length(oldest) is None)
            del self.kept[oldest]
        self._list()
        if self.many and number % 4 == 0:
            self.list_many()

    def list_many(self) -> None:
        """Raise Wrong unless ``many`` has all of its entries and no other."""
        began = monotonic()
        found = self._until(lambda: self.files.names(self.many), never)
        self.listings.append(monotonic() - began)
        if sorted(found or ()) != [f"{number:06}" for number in range(self.entries)]:
            raise Wrong(f"{self.many}: {len(found or ())} entries instead of {self.entries}")

    def _append(self, path: str, content: bytes, more: bytes) -> None:
        """Append; where that fails, close the file, and append what has not come."""
        left = more

        def append() -> None:
            nonlocal left
            self.files.append(path, left)

        def is_whole() -> bool:
            nonlocal left
            self.files.append(path, b"")
            come = (self.files.length(path) or 0) - len(content)
            if not 0 <= come <= len(more):
                raise Wrong(f"{path}: {come} of {len(more)} bytes were appended")
            left = more[come:]
            return not left

        self._until(append, is_whole)

    def _rename(self, source: str, target: str) -> None:
        self.files.rename(source, target)
        if not self._is_renamed(source, target):
            raise Wrong(f"{source} is not {target} after its renaming was acknowledged")

    def _is_renamed(self, source: str, target: str) -> bool:
        return self.files.length(source) is None and self.files.length(target) is not None

    def _delete(self, path: str) -> None:
        self.files.delete(path)
        if self.files.length(path) is not None:
            raise Wrong(f"{path} is there after its deletion was acknowledged")

    def _expect_range(self, path: str, offset: int, length: int) -> None:
        found = self._until(lambda: self.files.read(path, offset, length), never)
        wanted = self.kept[path][offset : offset + length]
        if found != wanted:
            got = "nothing" if found is None else f"{len(found)} bytes, {found[:80]!r}"
            raise Wrong(f"{path}: read {got} from {offset} instead of {length} bytes")
        self.checked_bytes += length

    def _expect_length(self, path: str) -> None:
        found = self._until(lambda: self.files.length(path), never)
        if found != len(self.kept[path]):
            raise Wrong(f"{path}: {found} bytes long instead of {len(self.kept[path])}")

    def _list(self) -> None:
        found = self._until(lambda: self.files.names(self.folder), never)
        wanted = sorted(path.rpartition("/")[2] for path in self.kept)
        if sorted(found or ()) != wanted:
            raise Wrong(f"{self.folder} has {sorted(found or ())} instead of {wanted}")

    def _until(self, call: Callable[[], T], is_done: Callable[[], bool]) -> T | None:
        """Return what a call answers; make it again where it fails and ``is_done`` says no.

        It returns None where the failed call was carried out after all.
        """
        until = monotonic() + CALL_SECONDS
        has_failed = False
        while True:
            try:
                return None if has_failed and is_done() else call()
            except self.failures as failure:
                self.failed.append(f"{type(failure).__name__}: {failure}"[:300])
                has_failed = True
                if monotonic() > until:
                    raise
                Event().wait(self.pause_seconds)
