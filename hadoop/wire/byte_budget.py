"""A number of bytes that many connections share."""

import asyncio
from collections import deque


class ByteBudget:
    """A budget whose takers must give bytes back; a taker for which too few are left waits in
    order.

    Its methods belong to the event loop.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def held(self) -> int:
        return self._held

    def try_take(self, count: int) -> bool:
        """Take ``count`` bytes and return True, as long as half of all stay free for ``take``."""
        if self._waiting or 2 * (self._held + count) > self.limit:
            return False
        self._held += count
        return True

    async def take(self, count: int) -> None:
        """Take ``count`` bytes; raise ``ValueError`` if that is more than the whole budget."""
        if count > self.limit:
            raise ValueError(f"{count} bytes are more than the {self.limit} that all share")
        if not self._waiting and self._held + count <= self.limit:
            self._held += count
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (count, turn)
        self._waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give(count)
            elif entry in self._waiting:  # bytes that were given in this turn may have passed it
                self._waiting.remove(entry)
                self._serve()
            raise

    def give(self, count: int) -> None:
        self._held -= count
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            count, turn = self._waiting[0]
            if self._held + count > self.limit:
                return
            self._waiting.popleft()
            if not turn.done():
                self._held += count
                turn.set_result(None)
