"""The record of takeovers: what a hand-over waits for, and what /status shows."""

import asyncio

from ha.elector.model import AttemptNumber
from ha.zkfc.record.takeover_record import AttemptRecord


class Attempts:
    """Keeps the last record and wakes who waits for a newer one."""

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
        """Remember it and wake all who wait."""
        self._last = record
        self.wake()

    def wake(self) -> None:
        """Let all who wait look again at what they wait for."""
        self._news.set()
        self._news = asyncio.Event()

    async def changed(self) -> None:
        """Return at the next ``add`` or ``wake``."""
        await self._news.wait()
