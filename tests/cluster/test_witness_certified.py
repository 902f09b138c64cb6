"""With certificates a hung active is waited for as without, and a dead host is not."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster, zkfc_of
from deploy.local.cluster.processes import wait_until
from tests.cluster.test_cluster_operators import pair

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

HUNG_SECONDS = 4.0
"""Three times as long as the witness waits, and far below the health monitor's limit."""
DEADLINE_SECONDS = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster with the default session: its end is not waited for."""
    keys = {
        "dfs.ha.fencing.methods": "journal-epoch",
        "ha.zookeeper.session-timeout.ms": "10000",
    }
    with open_cluster(tmp_path, more_keys=keys, secure=True) as cluster:
        cluster.up()
        yield cluster


def test_a_hung_namenode_keeps_its_lock_and_a_silent_host_does_not(cluster: Cluster) -> None:
    old, new = pair(cluster)
    cluster.process(old).freeze()
    thaws_at = time.monotonic() + HUNG_SECONDS
    wait_until(
        lambda: time.monotonic() > thaws_at,
        what=f"the end of {old}'s pause",
        deadline_seconds=DEADLINE_SECONDS,
    )
    cluster.process(old).thaw()
    wait_until(
        lambda: cluster.active_namenodes() == [old],
        what=f"{old} to answer again",
        deadline_seconds=DEADLINE_SECONDS,
    )
    log = cluster.logs()[zkfc_of(new)]
    assert "zkfc.witness.removal" not in log.read_text()
    assert not _certificates_refused(cluster.logs()[zkfc_of(old)])

    for name in (zkfc_of(old), old):
        cluster.process(name).ended_by_us = True
        cluster.process(name).send(signal.SIGSTOP)
    wait_until(
        lambda: new in cluster.active_namenodes(),
        what=f"{new} to be active",
        deadline_seconds=DEADLINE_SECONDS,
    )
    assert f"neither the NameNode nor the zkfc of {old}" in log.read_text()
    for name in (zkfc_of(old), old):
        cluster.process(name).kill()


def _certificates_refused(log: Path) -> list[str]:
    """Return the refusals of a log but for peers that hung up, as one does on a slow machine."""
    refused = [line for line in log.read_text().splitlines() if "tls.refused" in line]
    return [line for line in refused if "reset by peer" not in line and "hung up" not in line]
