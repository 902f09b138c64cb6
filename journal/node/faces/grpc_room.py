"""How much callers over gRPC may leave here unfinished.

gRPC's library does not report how much of a message has come, nor how large it will be, before it
is whole.  What can be limited is how many messages are read for a caller at a time: a request is
asked for only when there is room for one of the largest size, and of the streams of batches, on
which one is always asked for, there are few.  Until a message is asked for, HTTP/2 lets no more
than 64 KiB of it through.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from ha.record import dataclass, field

MOST_READ: Final = 4
"""Requests that are read at the same time: 260 MiB of the largest."""
MOST_READ_OF_ONE: Final = 2
MOST_STREAMS: Final = 16
MOST_STREAMS_OF_ONE: Final = 3
"""A writer's, the one before it whose end has not been noticed yet, and one more."""


@dataclass(slots=True)
class ReadingRoom:
    """Room for requests that are being read.

    ``most``, ``most_of_one``: how many at a time, of all callers and of one.
    """

    most: int = MOST_READ
    most_of_one: int = MOST_READ_OF_ONE
    _held: "Counter[Hashable]" = field(default_factory=Counter)
    _waiting: "OrderedDict[asyncio.Future[None], Hashable]" = field(default_factory=OrderedDict)

    async def enter(self, caller: Hashable) -> None:
        """Wait until one more may be read for this caller; ``leave`` must follow."""
        if self._is_free(caller):
            self._held[caller] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = caller
        try:
            await turn
        except asyncio.CancelledError:
            if self._waiting.pop(turn, None) is None:
                self.leave(caller)  # its turn had come in the meantime
            raise

    def leave(self, caller: Hashable) -> None:
        """Give the room back: a request is whole, or comes no more."""
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        for turn, other in self._waiting.items():
            if not turn.done() and self._is_free(other):  # done: cancelled in this turn
                del self._waiting[turn]
                self._held[other] += 1
                turn.set_result(None)
                return

    def _is_free(self, caller: Hashable) -> bool:
        return self._held.total() < self.most and self._held[caller] < self.most_of_one


@dataclass(eq=False, slots=True)
class OpenStream:
    """One stream of batches; ``end`` is called with the reason why it gives way."""

    caller: Hashable
    end: Callable[[str], None]


@dataclass(slots=True)
class OpenStreams:
    """The streams of batches of a node, in the order in which they were opened.

    The oldest gives way to a newcomer: a writer that has lost its connection must get in again.
    """

    most: int = MOST_STREAMS
    most_of_one: int = MOST_STREAMS_OF_ONE
    _open: dict[OpenStream, None] = field(default_factory=dict)

    def add(self, stream: OpenStream, *, unlimited: bool = False) -> None:
        """Add a stream.  ``unlimited``: its caller may have as many as all together."""
        own = [one for one in self._open if one.caller == stream.caller]
        if len(own) >= self.most_of_one and not unlimited:
            self._give_way(own[0], f"its caller has {self.most_of_one} newer streams")
        elif len(self._open) >= self.most:
            have = Counter(one.caller for one in self._open)
            oldest = max(self._open, key=lambda one: have[one.caller])  # of equals the first
            self._give_way(oldest, f"there are {self.most} newer streams")
        self._open[stream] = None

    def remove(self, stream: OpenStream) -> None:
        """Remove a stream that has ended."""
        self._open.pop(stream, None)

    def _give_way(self, stream: OpenStream, reason: str) -> None:
        del self._open[stream]
        stream.end(reason)
