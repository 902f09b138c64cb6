"""Leases of full block reports: few DataNodes report at once, and an active asks for reports.

See docs/reference/datanodes.md#leases-of-reports.
"""

from typing import Final

from ha.record import dataclass
from namenode_sim.datanodes.errors import LeaseNotHeld
from namenode_sim.datanodes.model import Draw

NO_LEASE: Final = 0
LARGEST_ID: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRules:
    """Hadoop's dfs.namenode.{max.full.block.report.leases,full.block.report.lease.length.ms}."""

    most: int = 6
    seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Held:
    """A lease, from when it was given until it ends (monotonic, in seconds).

    ``after_claim``: the answer that gave it said that this NameNode is the active. A DataNode that
    reports under it has read that answer, and obeys.
    """

    id: int
    since: float
    until: float
    after_claim: bool


class ReportLeases:
    """The DataNodes that may report now, by their uuids."""

    __slots__ = ("_held", "_last_id", "rules")

    def __init__(self, draw: Draw, rules: LeaseRules | None = None) -> None:
        self.rules = LeaseRules() if rules is None else rules
        # A random start: ids of a former process, or of the other NameNode, are not ours.
        self._last_id = draw.randrange(LARGEST_ID)
        self._held: dict[str, Held] = {}

    def __len__(self) -> int:
        """Return how many leases are held, ended ones included until the next is given."""
        return len(self._held)

    def give(self, uuid: str, now: float, *, after_claim: bool) -> int:
        """Give a DataNode a lease, in place of one that it has; NO_LEASE if too many are held."""
        for other in [other for other, held in self._held.items() if held.until <= now]:
            del self._held[other]
        self._held.pop(uuid, None)
        if len(self._held) >= self.rules.most:
            return NO_LEASE
        self._last_id = self._last_id % LARGEST_ID + 1
        self._held[uuid] = Held(self._last_id, now, now + self.rules.seconds, after_claim)
        return self._last_id

    def has(self, uuid: str, now: float) -> bool:
        held = self._held.get(uuid)
        return held is not None and now < held.until

    def check(self, uuid: str, lease: int, now: float) -> Held | None:
        """Return the lease that a report came under; None for one that needs none.

        Old DataNodes, and operators who ask for a report, know no leases.

        Raises:
            LeaseNotHeld: if it is another's, was replaced, or has ended.
        """
        if lease == NO_LEASE:
            return None
        held = self._held.get(uuid)
        if held is None or held.id != lease or held.until <= now:
            raise LeaseNotHeld(uuid, lease, None if held is None else held.id)
        return held

    def give_back(self, uuid: str) -> None:
        """Note that a DataNode has reported, or is gone."""
        self._held.pop(uuid, None)

    def clear(self) -> None:
        self._held.clear()
