"""The lock of a journal's state and disk, for the event loop and the lanes' threads."""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from functools import partial


class FairLock:
    """A lock that is granted in the order of the requests, to tasks of the loop and to threads.

    A plain lock starves threads: under load the loop releases it and acquires it again before a
    waiting thread has woken up.  Here the holder hands the lock to the first in the queue, and
    unlocks it only if the queue is empty.  The loop never blocks for it: it tries, or awaits.
    """

    def __init__(self) -> None:
        lock = threading.Lock()  # stays locked while one holder hands it to the next
        self._lock = partial(lock.acquire, False)  # noqa: FBT003 - its name costs as much again
        self._unlock, self._locked = lock.release, lock.locked
        self._queue: deque[Future[None]] = deque()

    @property
    def taken(self) -> bool:
        """Whether the lock is held or is being handed to the next holder."""
        return self._locked()

    @property
    def waiting(self) -> int:
        """The length of the queue; a cancelled waiter counts until it reaches the head."""
        return len(self._queue)

    def try_now(self) -> bool:
        """Take the lock if it is free and the queue is empty, and return whether it was taken.

        The caller must call ``give_back``.
        """
        return self._lock()

    async def take(self) -> None:
        """Await the lock; the caller must call ``give_back``, unless it was cancelled."""
        if self._lock():
            return
        coming = self._join()
        try:
            await asyncio.wrap_future(coming)
        except asyncio.CancelledError:
            if not coming.cancel():  # the lock had been handed to this task already
                self.give_back()
            raise

    def take_in_thread(self) -> None:
        """Block a thread, never the loop's, until it has the lock; it must call ``give_back``."""
        if not self._lock():
            self._join().result()

    def give_back(self) -> None:
        """Hand the lock to the first waiter in the queue, or unlock it."""
        while True:
            while self._queue:
                coming = self._queue.popleft()
                if coming.set_running_or_notify_cancel():
                    coming.set_result(None)
                    return
            self._unlock()
            # A thread may have joined the queue before the unlock and found the lock held: it
            # relies on this holder, which takes the lock again and hands it on.
            if not self._queue or not self._lock():
                return

    def _join(self) -> "Future[None]":
        """Append a future to the queue; the caller has the lock when the future is done."""
        coming: Future[None] = Future()
        self._queue.append(coming)
        if self._lock():
            # The holder unlocked it before the append, so it would not be handed on.
            self.give_back()
        return coming
