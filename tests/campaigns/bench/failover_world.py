"""What the scenes of the failover bench share: how a cluster is set up, and what was recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from deploy.local.cluster.cluster import Cluster
from deploy.local.cluster.places import fresh_directory
from deploy.local.demo.demo import WARM_UP_WRITES, WRITE_SECONDS
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, staged
from tests.campaigns.bench.switches import Record

KILL = "kill -9"
HAND_OVER = "hand-over"

JOURNAL_EPOCH = {"dfs.ha.fencing.methods": "journal-epoch"}
"""Touches nothing: an old active is refused by the journal, and its reads end with its lease."""
BETWEEN_ROUNDS = {
    "ha.health-monitor.connect-retry-interval.ms": "100",
    "ha.health-monitor.sleep-after-disconnect.ms": "100",
    # No real user loses an active every few seconds; by default the fourth that hangs is kept.
    "nnha.zkfc.flap.failovers": "0",
}
"""A NameNode that was killed and started again is found sooner; no failover depends on them."""


@dataclass(slots=True)
class World:
    """One run of the bench."""

    screen: Screen
    rounds: int = 10
    long_run: bool = False
    stalls: int = 1000
    secure: bool = False
    """Certificates on every cluster of ours."""
    record: Record = field(default_factory=Record)

    @contextmanager
    def stage(
        self,
        scene: str,
        keys: dict[str, str],
        *,
        secure: bool | None = None,
        ready: Callable[[Cluster], None] = lambda _cluster: None,
    ) -> Iterator[Stage]:
        """Run a cluster with these keys and a writing client; afterwards judge its writes.

        ``secure``: whether it has certificates, if not as the other clusters of this run;
        ``ready`` is called with the cluster before the client's first write.
        """
        self.screen.title(scene)
        secure = self.secure if secure is None else secure
        directory = fresh_directory(f"bench-{scene}")
        with staged(directory, self.screen, keys | BETWEEN_ROUNDS, secure=secure) as stage:
            ready(stage.cluster)
            workload = stage.workload
            workload.start()
            workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=WRITE_SECONDS)
            yield stage
            workload.stop()
            verdict = stage.verdict()
            self.record.lost_writes += len(verdict.missing)
            self.record.acknowledged += verdict.acknowledged
            self.record.client_errors += [
                f"{scene}: {write.kind} {write.path}: {write.error}" for write in workload.errors()
            ]
