"""When the writers were last heard of.  Which files they hold is in the namespace; this is not.

Hadoop keeps renewal times in memory only, so after a failover every holder counts as just renewed
(FSNamesystem.startActiveServices); here a holder is first seen when it is first asked about.
"""

from collections.abc import Iterable

from namenode_sim.leases.expiry import OwnHolder, own_holder


class LeaseTimes:
    """Holders and the monotonic time, in seconds, of their last sign of life."""

    __slots__ = ("_own", "_renewed")

    def __init__(self) -> None:
        self._renewed: dict[str, float] = {}
        self._own: OwnHolder | None = None

    def renew(self, holder: str, now: float) -> None:
        self._renewed[holder] = now

    def idle_seconds(self, holder: str, now: float) -> float:
        """Return how long a holder has been silent; 0 for one never asked about before."""
        return now - self._renewed.setdefault(holder, now)

    def last_heard(self, holders: Iterable[str], now: float) -> dict[str, float]:
        """Return when each holder was last heard of; ``now`` for one never asked about before."""
        return {holder: self._renewed.setdefault(holder, now) for holder in holders}

    def own_holder(self, now: float, now_ms: int, hard_limit_seconds: float) -> str:
        self._own = own_holder(self._own, now, now_ms, hard_limit_seconds)
        return self._own.name

    def forget_all(self) -> None:
        """Begin a term as active: every holder counts as just renewed."""
        self._renewed.clear()

    def keep_only(self, holders: set[str]) -> None:
        """Drop the times of holders that hold nothing any more."""
        for gone in self._renewed.keys() - holders:
            del self._renewed[gone]
