"""The last hour of each NameNode, asked for while somebody looks, at most every half minute."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from ha.cluster.last_hour import LastHour, last_hour_of
from ha.conf.topology import HostPort

PATH: Final = "/last-hour"
EVERY_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 2.0
FIRST_SECONDS: Final = 0.3
"""How long the first page waits for it; the others show what was known before."""

Fetch = Callable[[HostPort, str], Awaitable[Mapping[str, object]]]
Clock = Callable[[], float]


class Hours:
    """Asks by ``fetch``; what a NameNode said last is kept while it gives no answer."""

    def __init__(
        self, nodes: Mapping[str, HostPort], fetch: Fetch, clock: Clock = time.monotonic
    ) -> None:
        self._nodes, self._fetch, self._clock = nodes, fetch, clock
        self._said: dict[str, tuple[float, LastHour]] = {}
        self._newest: Mapping[str, LastHour] = {}
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def newest(self) -> Mapping[str, LastHour]:
        """Return the hours by NameNode, the same object until new ones were asked for."""
        now, since = self._clock(), self._clock() - self._asked_at
        if since >= EVERY_SECONDS and (self._asking is None or self._asking.done()):
            if since >= 2 * EVERY_SECONDS:
                self._newest = {}  # of a time when somebody looked: its "now" is long over
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask(), name="ask for the last hour")
            seconds = 0 if self._newest else FIRST_SECONDS
            await asyncio.wait({self._asking}, timeout=seconds)
        return self._newest

    async def _ask(self) -> None:
        await asyncio.gather(*(self._ask_one(name) for name in self._nodes))
        now = self._clock()
        self._newest = {name: one.older(now - at) for name, (at, one) in self._said.items()}

    async def _ask_one(self, name: str) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                page = await self._fetch(self._nodes[name], PATH)
        except (OSError, ValueError, EOFError):
            return  # silent, or one that keeps no such hour: Hadoop's, or an older one
        self._said[name] = self._clock(), last_hour_of(page)
