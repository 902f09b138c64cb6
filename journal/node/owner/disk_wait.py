"""Decides whether the event loop blocks for a sync: for at most 3 ms, and on a quick disk only."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Final

WAIT_SECONDS: Final = 0.003
"""The longest time that a sync may block the event loop; even ten slow ones cost no heartbeat."""
QUICK_IN_A_ROW: Final = 4


class Patience:
    """Decides, from the durations of the last syncs, how the loop waits for the next one.

    On a quick disk it costs more to resume a task through the event loop than to sync.  So the
    loop blocks for the disk's thread, for at most ``WAIT_SECONDS``.  After a longer sync, all are
    awaited without blocking until ``QUICK_IN_A_ROW`` in a row were quick.  A disk that hangs
    therefore blocks the loop only once.
    """

    def __init__(self) -> None:
        self._quick = 0

    @property
    def worth_it(self) -> bool:
        """Whether the last ``QUICK_IN_A_ROW`` syncs were quick, so that blocking is worth it."""
        return self._quick >= QUICK_IN_A_ROW

    def run(self, thread: Executor, work: Callable[[], None]) -> Future[None]:
        """Start the work on the thread, and block up to ``WAIT_SECONDS`` for the future's end."""
        began = time.perf_counter()
        started = thread.submit(work)
        try:
            started.exception(WAIT_SECONDS)
        except TimeoutError:
            self._quick = 0
            return started
        self.took(time.perf_counter() - began)
        return started

    def took(self, seconds: float) -> None:
        """Count a sync of this duration as quick, or begin to count anew."""
        self._quick = self._quick + 1 if seconds <= WAIT_SECONDS else 0
