"""One look for all who watch: each second while somebody does, else none at all."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from ha.cluster.view import ClusterView
from ha.record import dataclass
from ha.web.metrics import LOOK_SECONDS, LOOKS, VIEWERS, Look

log = structlog.get_logger()

EVERY_SECONDS: Final = 1.0
HURRY_SECONDS: Final = 0.25
"""Between looks after the lock was let go or taken, or after the active has ended."""
HURRIES: Final = 6
"""This number of looks come quickly then: the new active is promoted after it has the lock."""
FRESH_SECONDS: Final = 1.5
"""A look that is not older answers whoever asks once."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A finished look; ``number`` counts them, ``at`` is its end on the loop's clock."""

    number: int
    view: ClusterView
    at: float


class ClusterPoller:
    """Looks at the cluster by ``look``, and notifies all watchers."""

    def __init__(
        self, look: Callable[[], Awaitable[ClusterView]], *, every_seconds: float = EVERY_SECONDS
    ) -> None:
        self._look = look
        self._every_seconds = every_seconds
        self._newest: Seen | None = None
        self._finished = asyncio.Condition()
        self._hurry = asyncio.Event()
        self._hurries = 0
        self._active: str | None = None
        self._watchers = 0
        self._running: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[Seen] | None = None

    @property
    def looks(self) -> int:
        """How many looks were finished."""
        return 0 if self._newest is None else self._newest.number

    @property
    def watchers(self) -> int:
        """How many watch at this moment."""
        return self._watchers

    def poll_soon(self) -> None:
        """Have the next look now, as something has changed."""
        self._hurries = HURRIES
        self._hurry.set()

    async def fresh(self) -> Seen:
        """Return the newest look, or one that is made now for all callers of this time."""
        loop = asyncio.get_running_loop()
        if self._newest is not None and loop.time() - self._newest.at < FRESH_SECONDS:
            return self._newest
        return await asyncio.shield(self._begin_look())

    async def newer_than(self, number: int) -> Seen:
        """Return the newest look, once there is one after that; only within ``watching``."""
        async with self._finished:
            await self._finished.wait_for(lambda: self.looks > number)
        if self._newest is None:
            raise RuntimeError("a look was counted that there is not")
        return self._newest

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Make looks as long as the block lasts."""
        self._watchers += 1
        VIEWERS.inc()
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name="looks at the cluster")
        try:
            yield
        finally:
            self._watchers -= 1
            VIEWERS.dec()
            if self._watchers == 0:
                self._running.cancel()

    async def stop(self) -> None:
        """End the look that is under way."""
        tasks = [one for one in (self._running, self._looking) if one is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                seen = await asyncio.shield(self._begin_look())
            except Exception:
                # An unforeseen error costs one look; the page shows how old the last one is.
                log.exception("web.look_failed")
                await asyncio.sleep(self._every_seconds)
                continue
            await self._rest(began, seen)

    async def _rest(self, began: float, seen: Seen) -> None:
        """Wait until the next look is due, or a change was seen."""
        loop = asyncio.get_running_loop()
        active = None if seen.view.active is None else seen.view.active.namenode
        if active != self._active:
            self._active, self._hurries = active, HURRIES
        seconds = self._every_seconds
        if self._hurries > 0:
            self._hurries -= 1
            seconds = min(seconds, HURRY_SECONDS)
        try:
            async with asyncio.timeout_at(max(loop.time(), began + seconds)):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    def _begin_look(self) -> asyncio.Task[Seen]:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._one_look(), name="look at the cluster")
        return self._looking

    async def _one_look(self) -> Seen:
        try:
            with LOOK_SECONDS.time():
                view = await self._look()
        except Exception:
            LOOKS.labels(Look.FAILED.value).inc()
            raise
        LOOKS.labels(Look.FINISHED.value).inc()
        seen = Seen(self.looks + 1, view, asyncio.get_running_loop().time())
        async with self._finished:
            self._newest = seen
            self._finished.notify_all()
        return seen
