"""Stalls of a live active: its NameNode and ZKFC stop for a moment, and no other may take over."""

import random
import time
from typing import Final

from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.workload.trial import the_active
from tests.campaigns.bench.failover_world import JOURNAL_EPOCH, World
from tests.campaigns.bench.report import Row

SHORTEST_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 1.0
BETWEEN_SECONDS: Final = 0.3
"""Long enough for heartbeats and answers to be there again, each time."""
SESSION: Final = {"ha.zookeeper.session-timeout.ms": "10000"}


def stalls(world: World) -> list[Row]:
    """Stop and continue the active's processes; afterwards the same NameNode must be active."""
    rng, longest, taken = random.Random(1), 0.0, 0
    with world.stage("stalls", JOURNAL_EPOCH | SESSION) as stage:
        active, epoch = the_active(stage.cluster)
        for _ in range(world.stalls):
            seconds = rng.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)
            longest = max(longest, _stall(stage.cluster, active, seconds))
            found, now = the_active(stage.cluster)
            if (found, now) != (active, epoch):
                taken += 1
                active, epoch = found, now
    what = f"the longest took {longest:.2f} s"
    name = (
        f"{world.stalls} stalls of {SHORTEST_SECONDS:g} to {LONGEST_SECONDS:g} s of a live active"
    )
    return [Row(f"{name}: false takeovers", taken, "takeovers", "0", not taken, what)]


def _stall(cluster: Cluster, active: str, seconds: float) -> float:
    """Stall once, and return how long it really was."""
    processes = [cluster.process(name) for name in (zkfc_of(active), active)]
    began = time.monotonic()
    for process in processes:
        process.freeze()
    time.sleep(seconds)  # not a wait for a condition: the stall is the experiment
    for process in processes:
        process.thaw()
    took = time.monotonic() - began
    time.sleep(BETWEEN_SECONDS)
    return took
