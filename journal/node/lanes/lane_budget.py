"""Limits the memory for the large messages of all write lanes of a process.

Without the limit each lane could announce a message of the largest size, and send only its header.
"""

import threading
from typing import Final

from journal.lane import NoLane

TOTAL_BYTES: Final = 256 * 1024 * 1024
FREE_BYTES: Final = 1024 * 1024
"""A message up to this size is not counted and does not wait; nearly all batches are smaller."""


class LaneBudget:
    """Counts the bytes of the large messages that the lanes' threads are receiving or serving."""

    def __init__(self, total_bytes: int = TOTAL_BYTES) -> None:
        self._total = total_bytes
        self.used_bytes = 0
        """The bytes of all messages that are counted."""
        self._changed = threading.Condition()

    def take(self, size: int, seconds: float) -> int:
        """Wait for room for a message of ``size`` bytes, and return the bytes to give back.

        Raises:
            NoLane: there was no room within ``seconds``.
        """
        if size <= FREE_BYTES:
            return 0
        with self._changed:
            fits = self._changed.wait_for(lambda: self.used_bytes + size <= self._total, seconds)
            if not fits:
                raise NoLane(f"no room for {size} bytes within {seconds:g} s")
            self.used_bytes += size
        return size

    def give(self, size: int) -> None:
        """Give back the bytes of a message that was answered, or whose lane has ended."""
        if size:
            with self._changed:
                self.used_bytes -= size
                self._changed.notify_all()
