"""May the event loop wait for the disk's thread?  Only for a moment, and only for a quick disk."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Final

WAIT_SECONDS: Final = 0.003
"""What a sync may cost everything else that this node does; ten slow ones cost no heartbeat."""
QUICK_IN_A_ROW: Final = 4


class Patience:
    """Decides, from the last syncs, how the next one is waited for.

    To hand a batch to the disk's thread and to be woken by it through the event loop costs more
    than the sync itself on a quick disk.  So the loop waits for the thread, but never longer than
    ``WAIT_SECONDS``: a sync that takes longer is awaited like anything else, and so are those
    that follow, until ``QUICK_IN_A_ROW`` of them were quick.  A disk that hangs thus holds up the
    loop once, for that moment.
    """

    def __init__(self) -> None:
        self._quick = 0

    @property
    def worth_it(self) -> bool:
        """Whether the next sync is likely to be quick."""
        return self._quick >= QUICK_IN_A_ROW

    def run(self, thread: Executor, work: Callable[[], None]) -> Future[None]:
        """Start the work on the thread and wait a moment; it may still be under way."""
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
        """Learn how long a sync has taken."""
        self._quick = self._quick + 1 if seconds <= WAIT_SECONDS else 0
