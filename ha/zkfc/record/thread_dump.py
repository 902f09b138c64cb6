"""Takes a thread dump of an unhealthy NameNode after our controller has left the election.

Hadoop takes it before it leaves, under a mutex, which may delay the failover by 40 s (HDFS-6184).
Here a separate task takes it, with limits for time and bytes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from ha.conf.topology import HostPort
from ha.daemon.http.http_get import http_get
from ha.security.caller import Role
from ha.zkfc.settings.settings import DumpSettings

log = structlog.get_logger()

LIMIT_BYTES: Final = 4 * 1024 * 1024
LOG_LIMIT_CHARACTERS: Final = 64 * 1024
KEPT_FILES: Final = 10


class ThreadDump:
    """Takes at most one dump of one NameNode at a time."""

    def __init__(self, name: str, http: HostPort, settings: DumpSettings) -> None:
        """Fetch dumps from ``http``; with port 0, which means no HTTP address, take none."""
        self._name = name
        self._http = http
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self.taken = 0
        """The number of dumps that were written."""

    def begin(self, after: Callable[[], Awaitable[None]], *, because: str) -> None:
        """Take a dump in the background after ``after`` returned, unless one is under way."""
        busy = self._task is not None and not self._task.done()
        if busy or self._settings.timeout_seconds <= 0 or self._http.port == 0:
            return
        self._task = asyncio.create_task(self._take(after, because), name="thread dump")

    def stop(self) -> None:
        """Cancel the dump that is under way."""
        if self._task is not None:
            self._task.cancel()

    async def _take(self, after: Callable[[], Awaitable[None]], because: str) -> None:
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                await after()
                body = await _stacks(self._http)
                where = await self._keep(body.decode("utf-8", errors="replace"), because)
        except (OSError, ValueError, EOFError, TimeoutError) as failure:
            log.warning(
                "zkfc.thread_dump.failed",
                namenode=self._name,
                address=str(self._http),
                because=because,
                reason=repr(failure),
            )
            return
        seconds = round(asyncio.get_running_loop().time() - began, 3)
        log.warning(
            "zkfc.thread_dump.taken",
            namenode=self._name,
            because=because,
            where=where,
            bytes=len(body),
            seconds=seconds,
        )
        self.taken += 1

    async def _keep(self, text: str, because: str) -> str:
        directory = self._settings.directory
        if directory is not None:
            # In a thread: a hanging disk must not block the event loop.
            return await asyncio.to_thread(_write, directory, self._name, text)
        shown = text[:LOG_LIMIT_CHARACTERS]
        log.warning("zkfc.thread_dump", namenode=self._name, because=because, stacks=shown)
        return "the log"


def _write(directory: Path, name: str, text: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    path = directory / f"stacks-{name}-{stamp}.txt"
    path.write_text(text, encoding="utf-8")
    for old in sorted(directory.glob(f"stacks-{name}-*.txt"))[:-KEPT_FILES]:
        old.unlink(missing_ok=True)
    return str(path)


async def _stacks(address: HostPort) -> bytes:
    answer = await http_get(
        address, "/stacks", most_bytes=LIMIT_BYTES, cut=True, role=Role.NAMENODE
    )
    if answer.status != 200:
        raise ValueError(f"/stacks answered {answer.status} {answer.reason[:80]}")
    return answer.body
