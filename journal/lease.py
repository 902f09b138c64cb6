"""The read lease as arithmetic: until when no other writer can have acknowledged a write.

A writer's request that a majority has accepted proves that no newer writer existed when it was
sent.  A newer writer waits, before it acknowledges anything, until ``duration`` has passed since
any node that granted its epoch last heard an older one.  Every granting majority has a node in
common with every majority that answered, so between the two no writer can be wrong for longer than
clocks drift apart (docs/reference/quorum-journal.md#read-lease).

All times are seconds on the holder's own monotonic clock; no two clocks are ever compared.

Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ha.record import dataclass, field, replace
from journal.errors import ensure
from journal.model import NodeName
from journal.quorum import majority

DRIFT_MARGIN: Final = 0.05
"""A new writer waits this fraction longer: its clock, the nodes' and the old writer's differ."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What one writer knows of its lease.

    ``answered`` has, for each node, when the newest request that it accepted was *sent*.  A reply
    may have lain in a socket for as long as the process was stopped, so that the time of the reply
    proves nothing.
    """

    duration_seconds: float
    nodes: frozenset[NodeName]
    answered: Mapping[NodeName, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ensure(self.duration_seconds > 0, "a lease without a duration is no lease")

    def accepted(self, nodes: Iterable[NodeName], sent_at: float) -> "Lease":
        """Return the lease after these nodes accepted a request sent at ``sent_at``."""
        newer = {
            node: sent_at for node in nodes if sent_at > self.answered.get(node, float("-inf"))
        }
        ensure(newer.keys() <= self.nodes, f"{sorted(newer)} are nodes of this journal")
        return replace(self, answered={**self.answered, **newer})

    @property
    def valid_until(self) -> float | None:
        """When the lease ends; None before a majority has answered anything."""
        needed = majority(len(self.nodes))
        if len(self.answered) < needed:
            return None
        proven = sorted(self.answered.values(), reverse=True)[needed - 1]
        return proven + self.duration_seconds

    def covers(self, instant: float) -> bool:
        """Return whether no other writer can have acknowledged a write up to this instant."""
        ends = self.valid_until
        return ends is not None and instant < ends


def left_to_wait(duration_seconds: float, heard_ago_seconds: Iterable[float]) -> float:
    """Return how long a new writer must wait, once it has the answers, before its first write.

    Args:
        duration_seconds: the lease's duration; 0 when there are no leases.
        heard_ago_seconds: what each node of a majority answered to newEpoch: how long ago it
            last accepted a request of an older writer, or began to serve if it cannot know.
    """
    if duration_seconds == 0:
        return 0.0
    return max(0.0, duration_seconds * (1 + DRIFT_MARGIN) - min(heard_ago_seconds, default=0.0))
