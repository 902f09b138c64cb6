"""Everything that is started at once, in any order, comes up by itself."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import ZOOKEEPER, Cluster, open_cluster, zkfc_of
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.state import status

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

DEADLINE_SECONDS = 90.0


def says_that_it_waits(cluster: Cluster, zkfc: str) -> bool:
    """Return whether this controller's page is served, and says that it waits for ZooKeeper."""
    told = status(cluster.layout.url(zkfc))
    return told is not None and "waiting for ZooKeeper" in str(told["failover_off_because"])


def test_controllers_and_namenodes_may_be_started_before_what_they_need(tmp_path: Path) -> None:
    with open_cluster(tmp_path) as cluster:
        cluster.up()
        cluster.down()
        zkfcs = [name for name in cluster.parts if name.startswith("zkfc-")]
        for name in reversed([one for one in cluster.parts if one != ZOOKEEPER]):
            cluster.launch(name)
        for name in zkfcs:
            wait_until(
                lambda name=name: says_that_it_waits(cluster, name),  # type: ignore[misc]
                what=f"{name} to say that it waits for ZooKeeper",
                deadline_seconds=DEADLINE_SECONDS,
                abandon=cluster.process(name).ended_early,
            )
        cluster.start(ZOOKEEPER)
        active = cluster.wait_for_active(deadline_seconds=DEADLINE_SECONDS)
        other = "nn2" if active == "nn1" else "nn1"
        cluster.wait_for_ready_standby(other, deadline_seconds=DEADLINE_SECONDS)
        cluster.wait_for_candidate(other, deadline_seconds=DEADLINE_SECONDS)
        assert all(cluster.process(name).running for name in cluster.parts)


def kill_when_elections_begin(cluster: Cluster, name: str) -> int:
    """Do what a ZKFC does that fences a NameNode which answers too late; return its pid."""
    wait_until(
        lambda: all(cluster.progress[zkfc_of(one)] == "starting" for one in NAMENODES),
        what="the controllers to start",
        deadline_seconds=DEADLINE_SECONDS,
    )
    pid = cluster.process(name).pid
    os.kill(pid, signal.SIGKILL)
    return pid


def test_a_namenode_that_is_fenced_in_the_start_is_started_again(tmp_path: Path) -> None:
    with open_cluster(tmp_path) as cluster, ThreadPoolExecutor(1) as pool:
        cluster.progress = dict.fromkeys(cluster.parts, "")
        killed = pool.submit(kill_when_elections_begin, cluster, "nn1")
        cluster.up()
        assert cluster.process("nn1").pid != killed.result()
