"""Limits the memory of incomplete requests over gRPC.

gRPC reports neither the size nor the progress of a message before it is complete.  So the number
of messages that are read at the same time is limited: a unary request is read only when there is
room for one of the largest size, and there are few streams of batches, on which a read is always
pending.  Before a read HTTP/2 accepts at most 64 KiB of a message.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from ha.record import dataclass, field

MOST_READ: Final = 4
"""Unary requests that are read at the same time: 260 MiB if all have the largest size."""
MOST_READ_OF_ONE: Final = 2
MOST_STREAMS: Final = 16
MOST_STREAMS_OF_ONE: Final = 3
"""The writer's stream, an older one whose broken connection is not noticed yet, and a spare."""


@dataclass(slots=True)
class ReadingRoom:
    """Limits the requests that are read at the same time.

    ``most`` is the limit of all callers together, ``most_of_one`` of each caller.
    """

    most: int = MOST_READ
    most_of_one: int = MOST_READ_OF_ONE
    _held: "Counter[Hashable]" = field(default_factory=Counter)
    _waiting: "OrderedDict[asyncio.Future[None], Hashable]" = field(default_factory=OrderedDict)

    async def enter(self, caller: Hashable) -> None:
        """Wait until a request of this caller may be read; ``leave`` must follow."""
        if self._is_free(caller):
            self._held[caller] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = caller
        try:
            await turn
        except asyncio.CancelledError:
            if self._waiting.pop(turn, None) is None:
                self.leave(caller)  # the room had been granted already
            raise

    def leave(self, caller: Hashable) -> None:
        """Give the room back after a request was read or given up, and wake the next caller."""
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        for turn, other in self._waiting.items():
            if not turn.done() and self._is_free(other):  # done: just cancelled
                del self._waiting[turn]
                self._held[other] += 1
                turn.set_result(None)
                return

    def _is_free(self, caller: Hashable) -> bool:
        return self._held.total() < self.most and self._held[caller] < self.most_of_one


@dataclass(eq=False, slots=True)
class OpenStream:
    """One stream of batches; ``end`` is called with the reason if it must be closed."""

    caller: Hashable
    end: Callable[[str], None]


@dataclass(slots=True)
class OpenStreams:
    """The open streams of batches of a node, in the order in which they were opened.

    At a limit the oldest is closed, so that a writer that has lost its connection gets a new one.
    """

    most: int = MOST_STREAMS
    most_of_one: int = MOST_STREAMS_OF_ONE
    _open: dict[OpenStream, None] = field(default_factory=dict)

    def add(self, stream: OpenStream, *, unlimited: bool = False) -> None:
        """Add a stream, and close one at a limit; ``most_of_one`` is not applied if unlimited."""
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
