"""Fuzzing of real servers over real sockets: what no decoder alone can show.

A session is one connection that says hostile bytes in random pieces and hangs up.  The server must
close it, write no error, grow by little, and serve a good caller afterwards.
"""

import asyncio
import logging
import math
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import structlog
from structlog.typing import EventDict

from ha.daemon.logs import is_own_fault
from tests.campaigns.soak.fuzz_random import Finding
from tests.hostile.shapes import Shape, hostile
from tests.hostile.strokes import pieces

HOST: Final = "127.0.0.1"
CLOSES_SECONDS: Final = 20.0
"""A server has closed by then whoever has hung up; far more than it takes on a busy machine."""
MOST_GROWTH_BYTES: Final = 300 << 20
AT_ONCE: Final = 8
_CHECKED_EVERY: Final = 400
_MAX_FINDINGS: Final = 5
_READ_BYTES: Final = 1 << 16
_NO_END: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Opened:
    """A server that runs.

    Attributes:
        feed: plays one session of these pieces to its end; raises Misbehaved.
        good: has a good caller served, and gives sound sessions for what comes next.
    """

    feed: Callable[[Sequence[bytes]], Awaitable[None]]
    good: Callable[[], Awaitable[Sequence[bytes]]]


@dataclass(frozen=True, slots=True)
class Door:
    """One port of a server, and the form of what is said there."""

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Opened]]
    shape: Shape = Shape.BYTES
    prefix: int = 0


class Misbehaved(Exception):
    """A server did what it must not; the text says what."""


def over_tcp(port: int) -> Callable[[Sequence[bytes]], Awaitable[None]]:
    async def feed(said: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            with suppress(OSError):  # it has hung up first
                for piece in said:
                    writer.write(piece)
                    await writer.drain()
                writer.write_eof()
            await _closed(reader)
        finally:
            writer.transport.abort()

    return feed


async def _closed(reader: asyncio.StreamReader) -> None:
    try:
        async with asyncio.timeout(CLOSES_SECONDS):
            with suppress(ConnectionError):
                while await reader.read(_READ_BYTES):
                    pass
    except TimeoutError:
        raise Misbehaved(f"not closed {CLOSES_SECONDS:g} s after it was hung up on") from None


@dataclass
class Watch:
    """Notes what servers complain of themselves while the block runs."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def note(self, kind: str, what: str) -> None:
        self.found.append((kind, what))

    def take(self) -> list[tuple[str, str]]:
        found, self.found = self.found, []
        return found

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch logs of both kinds, tasks, and threads while the block runs."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler(), threading.excepthook
        loop.set_exception_handler(lambda _, context: self.note("task", _told(context)))
        threading.excepthook = lambda it: self.note("thread", f"{it.exc_type}: {it.exc_value}")
        handler = _Handler(self.note)
        handler.addFilter(is_own_fault)  # as in every daemon
        logging.getLogger().addHandler(handler)
        processors: list[Any] = structlog.get_config()["processors"]
        kept = processors[:]
        processors[:] = [self._processed]
        try:
            yield
        finally:
            processors[:] = kept
            logging.getLogger().removeHandler(handler)
            loop.set_exception_handler(before[0])
            threading.excepthook = before[1]

    def _processed(self, _logger: object, method: str, event: EventDict) -> EventDict:
        if method in ("error", "exception", "critical") or event.get("exc_info"):
            cause = event.get("exc_info")
            self.note(str(event.get("event")), f"{event} {cause!r}")
        raise structlog.DropEvent


class _Handler(logging.Handler):
    """Notes errors that libraries log."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        super().__init__(logging.ERROR)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self._note(f"log {record.name}", f"{record.getMessage()} {cause!r}")


def _told(context: dict[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"


def resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not tell")


class Play:
    """One door under fuzzing."""

    def __init__(self, door: Door, seed: int, folder: Path) -> None:
        self._door = door
        self._source = random.Random(f"{door.name} {seed}")
        self._folder = folder
        self._watch = Watch()
        self._findings: dict[str, Finding] = {}
        self.cases = 0

    async def run(self, count: int | None, seconds: float) -> list[Finding]:
        ends = time.monotonic() + seconds if count is None else math.inf
        count = _NO_END if count is None else count
        with self._watch.watching(), TemporaryDirectory(prefix="fuzz-") as work:
            async with self._door.open(Path(work)) as opened:
                seeds = await self._good(opened, ())
                await self._batch(opened, seeds, min(count, AT_ONCE))
                before, checked = resident_bytes(), self.cases
                while self.cases < count and time.monotonic() < ends:
                    if len(self._findings) >= _MAX_FINDINGS:
                        break
                    if self.cases - checked >= _CHECKED_EVERY:
                        seeds, checked = await self._good(opened, seeds), self.cases
                    await self._batch(opened, seeds, min(count - self.cases, AT_ONCE))
                await self._good(opened, seeds)
                grown = resident_bytes() - before
            self._note_all(self._watch.take(), b"")
        if grown > MOST_GROWTH_BYTES:
            self._note("memory", f"grown by {grown} bytes", b"")
        return list(self._findings.values())

    async def _good(self, opened: Opened, seeds: Sequence[bytes]) -> Sequence[bytes]:
        try:
            async with asyncio.timeout(CLOSES_SECONDS):
                return await opened.good()
        except Exception as failure:  # noqa: BLE001 - whatever a good caller meets is a finding
            self._note("a good caller", f"{type(failure).__name__}: {failure}", b"")
            return seeds

    async def _batch(self, opened: Opened, seeds: Sequence[bytes], count: int) -> None:
        door = self._door
        said = [hostile(seeds, self._source, door.shape, door.prefix) for _ in range(count)]
        self.cases += count
        ended = await asyncio.gather(*(self._one(opened, data) for data in said))
        found = self._watch.take()
        for data, misbehaved in zip(said, ended, strict=True):
            if misbehaved:
                self._note("misbehaved", misbehaved, data)
        for data in said if found else ():
            await self._one(opened, data)
            self._note_all(self._watch.take(), data)
        if found and not self._findings:
            self._note_all(found, b"\n--\n".join(said))  # only together, it seems

    async def _one(self, opened: Opened, data: bytes) -> str:
        try:
            await opened.feed(pieces(data, random.Random(len(data))))
        except (Misbehaved, OSError) as failure:
            return f"{type(failure).__name__}: {failure}"
        return ""

    def _note_all(self, found: Sequence[tuple[str, str]], data: bytes) -> None:
        for kind, what in found:
            self._note(kind, what, data)

    def _note(self, kind: str, what: str, data: bytes) -> None:
        if kind in self._findings:
            return
        path = self._folder / f"{self._door.name}-{sha256(data).hexdigest()[:16]}"
        path.write_bytes(data)
        self._findings[kind] = Finding(kind, what[:4000], str(path))
