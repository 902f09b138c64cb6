"""Has the blocks of cache directives looked through: by the clock, and soon after a change.

See docs/reference/namenode.md#centralized-cache.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

from ha.record import dataclass
from namenode_sim.cache.rescan import rescan
from namenode_sim.datanode_protocol.slices import in_slices
from namenode_sim.datanodes.cluster import Cluster

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.25
"""So soon after a change the directives are looked through."""
REST: Final = 10
"""After a scan there is none for this number of times that it took, whatever changes."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """Whether blocks are cached at all, and how often directives are looked through."""

    enabled: bool = True
    interval_seconds: float = 30.0


class CacheWatch:
    """Scans for the active of one term, a little at a time."""

    def __init__(self, cluster: Cluster, rules: CacheRules, clock: Callable[[], float]) -> None:
        self._cluster, self._rules, self._clock = cluster, rules, clock
        self._next = self._not_before = 0.0
        self._seen = -1
        self._term = -1

    async def run(self) -> None:
        while self._rules.enabled:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Scan if it is time, or if something has changed; others get the loop in between."""
        cluster, now = self._cluster, self._clock()
        namespace = cluster.namespace
        if namespace is None or not cluster.is_active():
            return
        changes, figures = namespace.cache.changes, cluster.cache
        is_new = cluster.term != self._term or changes != self._seen or figures.reported
        if now < (self._not_before if is_new else self._next):
            return
        self._seen, self._term, figures.reported = changes, cluster.term, False
        steps = rescan(cluster, namespace, int(time.time() * 1000), now)
        await in_slices(steps, lambda: cluster.term == self._term)
        took = self._clock() - now
        self._next = now + took + self._rules.interval_seconds
        self._not_before = now + took * (1 + REST)
        if took > self._rules.interval_seconds:
            log.warning("datanodes.cache_scan_slow", seconds=round(took, 1))
