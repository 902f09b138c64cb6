"""In place of the node's patience with its disk: real time has no say in a simulated life."""

from collections.abc import Callable
from concurrent.futures import Future
from random import Random

from journal.errors import StorageFailed


class Haste:
    """In some lives half of the batches are synced on the spot, the others on the thread."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._hasty = rng.random() < 0.2

    @property
    def worth_it(self) -> bool:
        """Whether the next batch is synced on the spot."""
        return self._hasty and self._rng.random() < 0.5

    def run(self, _thread: object, work: Callable[[], None]) -> "Future[None]":
        """Do it now; a power cut ends the caller too."""
        done: Future[None] = Future()
        try:
            work()
        except StorageFailed as failure:
            done.set_exception(failure)
        else:
            done.set_result(None)
        return done

    def took(self, _seconds: float) -> None:
        """Ignore the clock on the wall."""
