"""The turn of a journal: its holder owns the journal's state and disk."""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from functools import partial


class FairLock:
    """One holder at a time, first come, first served: the event loop's users and lanes' threads.

    A plain lock is not enough: a holder that gives it back and takes it again at once, as the loop
    does under load, has it again before a thread that waits has woken up.  So it goes from hand to
    hand, and is free only while none waits.  The loop never stands still for it: it tries, or
    awaits.
    """

    def __init__(self) -> None:
        lock = threading.Lock()  # locked all the way from one holder to the next
        self._lock = partial(lock.acquire, False)  # noqa: FBT003 - its name costs as much again
        self._unlock, self._locked = lock.release, lock.locked
        self._queue: deque[Future[None]] = deque()

    @property
    def taken(self) -> bool:
        """Whether the turn has a holder, or is about to get one."""
        return self._locked()

    @property
    def waiting(self) -> int:
        """How many wait for it; those who have given up count until it would be theirs."""
        return len(self._queue)

    def try_now(self) -> bool:
        """Take the turn unless it has a holder or others wait; return whether it was taken.

        ``give_back`` ends it.
        """
        return self._lock()

    async def take(self) -> None:
        """Wait on the loop for the turn, up to ``give_back``; a cancelled caller lacks it."""
        if self._lock():
            return
        coming = self._join()
        try:
            await asyncio.wrap_future(coming)
        except asyncio.CancelledError:
            if not coming.cancel():  # it had been given to us already
                self.give_back()
            raise

    def take_in_thread(self) -> None:
        """Block a thread that is not the loop's until it has the turn; ``give_back`` ends it."""
        if not self._lock():
            self._join().result()

    def give_back(self) -> None:
        """Give the turn to the first of those that wait."""
        while True:
            while self._queue:
                coming = self._queue.popleft()
                if coming.set_running_or_notify_cancel():
                    coming.set_result(None)
                    return
            self._unlock()
            # One that has joined since we looked may have found it locked, and relies on us.
            if not self._queue or not self._lock():
                return

    def _join(self) -> "Future[None]":
        """Stand behind all who wait; it is ours when this is done."""
        coming: Future[None] = Future()
        self._queue.append(coming)
        if self._lock():
            # It was given back before we stood there, so it would not be handed on.
            self.give_back()
        return coming
