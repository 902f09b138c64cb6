"""When the writers were last heard of.  Which files they hold is in the namespace; this is not.

Hadoop keeps renewal times in memory only, so after a failover every holder counts as just renewed
(FSNamesystem.startActiveServices); here a holder is first seen when it is first asked about.
"""

SOFT_LIMIT_SECONDS = 60.0
"""HdfsConstants.LEASE_SOFTLIMIT_PERIOD, after which another may take the file; no key sets it."""


class LeaseTimes:
    """Holders and the monotonic time, in seconds, of their last sign of life."""

    __slots__ = ("_renewed",)

    def __init__(self) -> None:
        self._renewed: dict[str, float] = {}

    def renew(self, holder: str, now: float) -> None:
        self._renewed[holder] = now

    def idle_seconds(self, holder: str, now: float) -> float:
        """How long a holder has been silent; 0 for one never asked about before."""
        return now - self._renewed.setdefault(holder, now)

    def forget_all(self) -> None:
        """Begin a term as active: every holder counts as just renewed."""
        self._renewed.clear()

    def keep_only(self, holders: set[str]) -> None:
        """Drop the times of holders that hold nothing any more."""
        for gone in self._renewed.keys() - holders:
            del self._renewed[gone]
