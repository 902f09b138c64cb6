"""Whose turn it is with a journal: who has it owns the journal's state and disk."""

import asyncio
import threading
from collections import deque
from concurrent.futures import Executor
from contextlib import AbstractContextManager


class Turn:
    """One holder at a time: somebody on the event loop, or a thread of a lane.

    The loop never stands still for it: it tries, or lets ``thread``, the journal's own, wait.  That
    thread waits for at most one of the loop's at a time, who alone gives it work then.

    Bad schedule: two of the loop's let it wait, the first gets the turn and gives it work, and the
    thread waits for the second's turn before it does that work.
    """

    def __init__(self, thread: Executor) -> None:
        self._thread = thread
        self._lock = threading.Lock()
        self._held_by_loop = False
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def held_by_loop(self) -> bool:
        """Whether somebody on the loop has it, or waits for a thread that does."""
        return self._held_by_loop

    def of_a_thread(self) -> AbstractContextManager[object]:
        """For a thread: wait for it, and have it for a ``with``."""
        return self._lock

    def try_now(self) -> bool:
        """For the loop: have it, unless anybody has it or waits for it."""
        if self._held_by_loop or not self._lock.acquire(blocking=False):
            return False
        self._held_by_loop = True
        return True

    async def take(self) -> None:
        """For the loop: wait for it, in the order of these calls; ``give_back`` ends it."""
        loop = asyncio.get_running_loop()
        if self._held_by_loop:
            coming: asyncio.Future[None] = loop.create_future()
            self._queue.append(coming)
            try:
                await coming
            except asyncio.CancelledError:
                if not coming.cancelled():
                    self._pass_on()
                raise
        self._held_by_loop = True
        if self._lock.acquire(blocking=False):
            return
        waiting = loop.run_in_executor(self._thread, self._lock.acquire)
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # The thread goes on waiting, and would keep the turn that nobody wants any more.
            waiting.add_done_callback(lambda _: self.give_back())
            raise

    def give_back(self) -> None:
        """For the loop: the next one may have it."""
        self._lock.release()
        self._pass_on()

    def _pass_on(self) -> None:
        """It stays the loop's while anybody waits: who only tries does not get in before."""
        while self._queue:
            coming = self._queue.popleft()
            if not coming.done():
                coming.set_result(None)
                return
        self._held_by_loop = False
