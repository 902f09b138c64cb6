"""Which DataNodes are alive, stale or dead.

See docs/reference/datanodes.md#liveness.
"""

from collections.abc import Iterable
from typing import Final

from ha.record import dataclass
from namenode_sim.datanodes.model import Node

LOOK_SECONDS: Final = 5.0
LATE_FACTOR: Final = 3
"""A process that looks this number of periods after its last look had stood still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessRules:
    """After how many seconds of silence a DataNode is stale, and dead."""

    stale_seconds: float = 30.0
    dead_seconds: float = 630.0

    def is_stale(self, node: Node, now: float) -> bool:
        """Return whether a DataNode should be avoided: it is silent, or its process has died."""
        return node.broken or now >= node.last_heard + self.stale_seconds


def dead_after(heartbeat_seconds: float, recheck_seconds: float) -> float:
    """Hadoop's formula: two rechecks and ten heartbeats."""
    return 2 * recheck_seconds + 10 * heartbeat_seconds


@dataclass(slots=True)
class Watch:
    """When DataNodes were last looked at, in seconds, and from when on silence counts."""

    last_look: float
    silence_counts_from: float

    def died(
        self, nodes: Iterable[Node], rules: LivenessRules, now: float, *, starting: bool
    ) -> list[Node]:
        """Return the DataNodes that count as dead from now on.

        None does in the safe mode of the start. Where this process did not look for long, it was
        stopped: DataNodes could not be heard, and get a new period.
        """
        late = now > self.last_look + LATE_FACTOR * LOOK_SECONDS
        self.last_look = now
        if late or starting:
            self.silence_counts_from = now
            return []
        found = []
        for node in nodes:
            silent_since = max(node.last_heard, self.silence_counts_from)
            if node.alive and now >= silent_since + rules.dead_seconds:
                node.alive = False
                node.forget_orders()
                found.append(node)
        return found
