"""Checks which NameNodes become active in a pause or a drain: by itself only the former active.

What ZooKeeper holds and has shown a controller counts, what operators asked for, and what NameNodes
were: not what a controller takes for a pause, a wish or its right to come back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ha.service.model import ServiceState
from tests.simulation.failover.cluster import Cluster
from tests.simulation.failover.conduct import Conduct
from tests.simulation.failover.lasting import Lasting

REPORTED_WITHIN_SECONDS: Final = 3.0
"""How old what a controller knows of its NameNode's role may be: it looks each second, for 2 s."""
REPLACED_SECONDS: Final = 8.0
"""How long a successor may be active before all know; a request to ZooKeeper may take 5 s."""
_KNOWN_SECONDS: Final = 0.5
"""A controller obeys a notice within this time after it was shown it."""
_HEARD_SECONDS: Final = 3.0
"""How late a controller may hear that its lock is gone; a later one is judged too strictly."""

Check = Callable[[bool, str, str], None]


@dataclass(slots=True)
class Ground:
    """What one NameNode may become active on."""

    bars: frozenset[str] = frozenset()
    """What its controller was shown: a pause, a drain of it."""
    barred_since: float | None = None
    """Since when without a gap; a drain that follows a pause is another bar than that."""
    kept_on: bool = False
    """It has held the lock in it, and has never left the election since."""
    lock_since: float = 0.0
    lock_until: float = -1.0
    """When it has last lost the lock; infinity while it has it."""
    heard_by: float = -1.0
    """When its controller has surely heard of that: one that stands still hears nothing."""
    wished: bool = False
    """An operator had asked it to take over when it got the lock."""
    gave_way: bool = False
    """It gave the lock away, and no NameNode has been active since, long enough that all know."""
    might_return: bool = False
    """The same, when it got the lock."""
    replaced: Lasting = field(default_factory=Lasting)
    deposed_at: float = -1e9
    """When it last went from active to standby."""


class Unasked:
    """The oracle reports to it what happens."""

    def __init__(self, cluster: Cluster, conduct: Conduct, check: Check) -> None:
        self._cluster = cluster
        self._conduct = conduct
        self._check = check
        self._grounds: Mapping[str, Ground] = {name: Ground() for name in cluster.hosts}
        self._last_active = ""

    # ---- calls of the oracle ----------------------------------------------------------------

    def took_lock(self, name: str) -> None:
        """Note a lock; what it learns later, while fencing e.g., recalls it no more (44028433)."""
        ground = self._grounds[name]
        ground.lock_since, ground.lock_until = self._cluster.loop.now, float("inf")
        ground.wished = self._conduct.is_wished(name)
        ground.might_return = ground.gave_way or self._conduct.cedes(name)

    def lost_lock(self, name: str) -> None:
        if name in self._grounds:
            now = self._cluster.loop.now
            self._grounds[name].lock_until, self._grounds[name].heard_by = now, now + _HEARD_SECONDS

    def ceded(self, name: str, asked_at: float) -> None:
        """Note that a request to stand back has ended at this one's controller, with any answer."""
        ground = self._grounds[name]
        # A session that ends in the meantime takes the lock, and not the role (seed 49012169); and
        # of the end of the lock its controller may not have heard (seeds 49042655, 49207640).
        if max(ground.heard_by, ground.deposed_at) >= asked_at or ground.lock_until == float("inf"):
            ground.gave_way, ground.replaced = True, Lasting()

    def left(self, name: str) -> None:
        self._grounds[name].kept_on = False

    def deposed(self, name: str) -> None:
        """Note that this NameNode was active, and stands by now."""
        self._grounds[name].deposed_at = self._cluster.loop.now

    def active(self, name: str) -> None:
        """Note an active; a promotion that ends without its lock takes nothing back (49072236)."""
        ground = self._grounds[name]
        ground.gave_way = ground.gave_way and ground.lock_until < float("inf")

    def wrote(self, name: str) -> None:
        """Note that this NameNode has written the first edit of an epoch."""
        self._last_active = name

    def look(self) -> None:
        now, owner = self._cluster.loop.now, self._cluster.lock_owner()
        node = None if owner is None else self._cluster.namenode(owner)
        serves = node is not None and node.state is ServiceState.ACTIVE
        for name, ground in self._grounds.items():
            self._look_at_bars(name, ground, now, owner)
            life = self._cluster.hosts[name].life("zkfc")
            if life is not None and not life.runs and now < ground.heard_by:
                ground.heard_by = now + _HEARD_SECONDS
            known = serves and owner != name and self._cluster.unhindered(name)
            lasts = ground.replaced.seconds(now, holds=known)
            if lasts is not None and lasts > REPLACED_SECONDS:
                ground.gave_way = False

    def _look_at_bars(self, name: str, ground: Ground, now: float, owner: str | None) -> None:
        before, ground.bars = ground.bars, self._cluster.known_bars(name)
        if not ground.bars:
            ground.barred_since, ground.kept_on = None, False
        elif not ground.bars & before:
            ground.barred_since, ground.kept_on = now, owner == name

    def is_wished(self, name: str) -> bool:
        """Return whether an operator has asked it to take over, now or when it got the lock."""
        return self._conduct.is_wished(name) or self._grounds[name].wished

    # ---- the check -------------------------------------------------------------------------

    def promotes(self, name: str) -> None:
        """Check a controller's request that its NameNode become active."""
        ground = self._grounds[name]
        since = ground.barred_since
        known = since is not None and ground.lock_since > since + _KNOWN_SECONDS
        known = known and bool(self._cluster.known_bars(name))
        # Its NameNode's last report may still say active: it was fenced a moment ago (seed 103470),
        # or its controller was frozen since that report (seed 5006452).
        reported = max(ground.deposed_at, self._cluster.free_since(name))
        just_was = ground.lock_since - reported < REPORTED_WITHIN_SECONDS
        own = name == self._last_active or just_was or ground.might_return
        bad = known and not self.is_wished(name) and not own and not ground.kept_on
        self._check(not bad, "P1", f"{name} promotes by itself, in a pause or a drain that it has "
                                   f"known since {since}")  # fmt: skip
        # From now on it has the lock in the pause, and may go on until it leaves (seed 202603).
        ground.kept_on = ground.kept_on or since is not None
