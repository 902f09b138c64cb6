"""Clients that write, append, rename, delete and read files, and know what each must contain."""

import hashlib
import itertools
import random
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from deploy.local.cluster.processes import wait_until
from deploy.local.workload.java_client import CallFailed, JavaClient, JavaFiles
from deploy.local.workload.workload import join_all
from ha.record import dataclass, field

BLOCK_BYTES: Final = 1024 * 1024
SIZES: Final = (0, 1, 511, 512, 513, 70_000, 300_000, BLOCK_BYTES, 2 * BLOCK_BYTES + 12_345)
"""Around a checksum's chunk, a packet and a block."""

KEPT_FILES: Final = 20
"""How many files a writer keeps before it deletes the oldest."""

STOP_SECONDS: Final = 240.0
CLOSED_SECONDS: Final = 120.0


class FileCallKind(StrEnum):
    """What a client did with a file."""

    PUT = "put"
    APPEND = "append"
    READ = "read"
    RENAME = "rename"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class FileCall:
    """One call, with monotonic times; ``error`` is empty where it was acknowledged."""

    kind: FileCallKind
    path: str
    bytes: int
    started: float
    ended: float
    error: str

    @property
    def seconds(self) -> float:
        return self.ended - self.started


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must contain: these bytes; ``perhaps`` may follow, as far as it got."""

    content: bytes
    perhaps: bytes = b""

    def fits(self, found: bytes) -> bool:
        """Return whether what was read is right: no byte wrong, none acknowledged missing."""
        whole = self.content + self.perhaps
        return len(found) >= len(self.content) and whole.startswith(found)


@dataclass(slots=True)
class FileWorkload:
    """Some clients, each with files of its own.

    Each rests for ``pause_seconds`` between two calls; ``wrong`` names the reads that gave other
    bytes than were written.
    """

    client: JavaClient
    root: str
    writers: int = 2
    seed: int = 0
    pause_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    calls_done: list[FileCall] = field(default_factory=list)
    expected: dict[str, Expected] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Python 3.11 may crash where one thread makes a tuple of a list that another one extends."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        for number in range(self.writers):
            client = _FileClient(self, self.client.files(), number)
            thread = threading.Thread(target=client.work, daemon=True)
            self._threads.append(thread)
            thread.start()

    def abandon(self) -> None:
        """Begin no further call."""
        self.stopping.set()

    def stop(self) -> None:
        """Let each client finish the call that it is in.  Raises LocalClusterError."""
        self.stopping.set()
        join_all(self._threads, self.client, STOP_SECONDS)

    def calls(self) -> tuple[FileCall, ...]:
        with self._lock:
            return tuple(self.calls_done)

    def returned(self, call: FileCall) -> None:
        with self._lock:
            self.calls_done.append(call)

    def acknowledged(self) -> int:
        return sum(not call.error for call in self.calls())

    def errors(self) -> tuple[FileCall, ...]:
        return tuple(call for call in self.calls() if call.error)

    def longest_call_seconds(self, since: float) -> float:
        """Return the duration of the longest call that ended after a monotonic time."""
        return max((call.seconds for call in self.calls() if call.ended >= since), default=0.0)

    def wait_for_more(self, count: int, *, deadline_seconds: float) -> None:
        since = time.monotonic()
        wait_until(
            lambda: sum(not c.error for c in self.calls() if c.started >= since) >= count,
            what=f"{count} more calls on files",
            deadline_seconds=deadline_seconds,
            poll_seconds=0.02,
            abandon=self.client.process.ended_early,
        )

    def check_all(self) -> int:
        """Read every file again and compare; returns how many bytes were right.

        A file that is still open is wrong, too.
        """
        files = self.client.files()
        good = 0
        unsure = {call.path for call in self.errors()}
        for path, expected in self.expected.items():
            if path in unsure:
                self._wait_until_closed(files, path)
            try:
                right = _right_bytes(files, path, expected)
                if right is None:
                    self.wrong.append(_difference(path, expected, files.read(path)))
                elif not files.is_closed(path):
                    self.wrong.append(f"{path}: is open, and nobody writes it")
                else:
                    good += right
            except CallFailed as failure:
                self.wrong.append(f"{path}: cannot be read: {failure}")
        return good

    def _wait_until_closed(self, files: JavaFiles, path: str) -> None:
        """Take the lease of a file that a failed call may have left open, and wait for its end."""
        wait_until(
            lambda: files.recover_lease(path) or files.is_closed(path),
            what=f"{path} to be closed",
            deadline_seconds=CLOSED_SECONDS,
        )


def _right_bytes(files: JavaFiles, path: str, expected: Expected) -> int | None:
    """Return how many bytes a file has, if they are right.

    Where its end is known its digest has to do.
    """
    if not expected.perhaps:
        content = expected.content
        return len(content) if files.sha256(path) == hashlib.sha256(content).hexdigest() else None
    found = files.read(path)
    return len(found) if expected.fits(found) else None


class _FileClient:
    """One of the clients: a thread with files that no other touches."""

    def __init__(self, workload: FileWorkload, files: JavaFiles, number: int) -> None:
        self._all = workload
        self._files = files
        self._root = f"{workload.root}/w{number}"
        self._draw = random.Random(workload.seed * 1000 + number)
        self._own: list[str] = []
        self._count = itertools.count()

    def work(self) -> None:
        """Do one thing after another until the workload stops."""
        deeds = (self._put, self._append, self._read, self._rename)
        while not self._all.stopping.is_set():
            if not self._own:
                self._put()
            elif len(self._own) > KEPT_FILES:
                self._delete()
            else:
                self._draw.choices(deeds, (4, 3, 5, 1))[0]()
            self._all.stopping.wait(self._all.pause_seconds)

    def _put(self) -> None:
        path = f"{self._root}/f{next(self._count):06d}"
        if self._write(path, FileCallKind.PUT):
            self._own.append(path)

    def _append(self) -> None:
        place = self._draw.randrange(len(self._own))
        if not self._write(self._own[place], FileCallKind.APPEND):
            del self._own[place]  # how far it got is not known

    def _write(self, path: str, kind: FileCallKind) -> bool:
        added = self._draw.randbytes(self._draw.choice(SIZES))
        cut = self._draw.randrange(len(added) + 1)
        pieces = (added[:cut], added[cut:]) if self._draw.random() < 0.5 else (added,)
        before = self._all.expected.get(path, Expected(b"")).content
        self._all.expected[path] = Expected(before, added)

        def write() -> None:
            if kind is FileCallKind.PUT:
                self._files.write(path, pieces, block_size=BLOCK_BYTES)
            else:
                self._files.append(path, pieces)

        done = self._call(kind, path, len(added), write)
        if done:
            self._all.expected[path] = Expected(before + added)
        return done

    def _read(self) -> None:
        path = self._draw.choice(self._own)
        expected = self._all.expected[path]
        found: list[bytes] = []

        def read() -> None:
            found.append(self._files.read(path))

        done = self._call(FileCallKind.READ, path, len(expected.content), read)
        if done and not expected.fits(found[0]):
            self._all.wrong.append(_difference(path, expected, found[0]))

    def _rename(self) -> None:
        place = self._draw.randrange(len(self._own))
        source = self._own[place]
        target = f"{source}r"
        expected = self._all.expected.pop(source)
        if self._call(FileCallKind.RENAME, source, 0, lambda: self._files.rename(source, target)):
            self._own[place] = target
            self._all.expected[target] = expected
        else:
            del self._own[place]  # which name it has is not known

    def _delete(self) -> None:
        path = self._own.pop(0)
        size = len(self._all.expected.pop(path).content)
        self._call(FileCallKind.DELETE, path, size, lambda: self._files.delete(path))

    def _call(self, kind: FileCallKind, path: str, size: int, action: Callable[[], object]) -> bool:
        error, started = "", time.monotonic()
        try:
            if action() is False:
                error = "answered false"
        except CallFailed as failure:
            error = str(failure)
        self._all.returned(FileCall(kind, path, size, started, time.monotonic(), error))
        return not error


def _difference(path: str, expected: Expected, found: bytes) -> str:
    wanted = expected.content
    place = next(
        (at for at, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b),
        min(len(wanted), len(found)),
    )
    return (
        f"{path}: {len(found)} bytes were read and {len(wanted)} were written; they differ from "
        f"byte {place} on (md5 {hashlib.md5(found, usedforsecurity=False).hexdigest()} and "
        f"{hashlib.md5(wanted, usedforsecurity=False).hexdigest()})"
    )
