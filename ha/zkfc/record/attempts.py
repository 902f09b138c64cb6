"""The record of the last takeover, for a hand-over that waits for one and for /status."""

import asyncio

from ha.elector.model import AttemptNumber
from ha.zkfc.record.takeover_record import AttemptRecord


class Attempts:
    """Keeps the last record and wakes the tasks that wait for a newer one."""

    def __init__(self) -> None:
        self._last: AttemptRecord | None = None
        self._news = asyncio.Event()

    @property
    def last(self) -> AttemptRecord | None:
        """The newest record."""
        return self._last

    @property
    def number(self) -> AttemptNumber:
        """The newest record's number; 0 before the first."""
        return AttemptNumber(0) if self._last is None else self._last.number

    def add(self, record: AttemptRecord) -> None:
        """Keep this record as the last one, and wake all waiting tasks."""
        self._last = record
        self.wake()

    def wake(self) -> None:
        """Make each waiting task check its condition again."""
        self._news.set()
        self._news = asyncio.Event()

    async def wait_for_change(self) -> None:
        """Return at the next ``add`` or ``wake``."""
        await self._news.wait()
