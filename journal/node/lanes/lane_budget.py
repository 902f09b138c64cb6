"""One budget for the large messages of all write lanes of a process.

Without it each lane could announce a message of the largest size, and leave it at that.
"""

import threading
from typing import Final

from journal.lane import NoLane

TOTAL_BYTES: Final = 256 * 1024 * 1024
FREE_BYTES: Final = 1024 * 1024
"""Not counted, for each lane: nearly every batch fits in it, so that these do not wait."""


class LaneBudget:
    """Counts what lanes have announced; each lane is a thread."""

    def __init__(self, total_bytes: int = TOTAL_BYTES) -> None:
        self._total = total_bytes
        self.used_bytes = 0
        """How much all lanes hold beyond what is free."""
        self._changed = threading.Condition()

    def take(self, size: int, seconds: float) -> int:
        """Wait until a message of this size may be held, and return how many bytes to give back.

        Raises:
            NoLane: others have held on to theirs for ``seconds`` seconds.
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
        """Give back the bytes of a message that is answered, or whose lane has ended."""
        if size:
            with self._changed:
                self.used_bytes -= size
                self._changed.notify_all()
