"""The active's host is dead: the other one does not wait until its ZooKeeper session is over."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster, zkfc_of
from deploy.local.cluster.processes import wait_until
from tests.cluster.test_cluster_operators import last_number, newest, nnha, pair

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

SESSION_SECONDS = 10
"""The default; the local cluster's own is shorter."""
DEADLINE_SECONDS = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster without a fencing that reaches hosts; the journal's epochs are enough."""
    keys = {
        "dfs.ha.fencing.methods": "journal-epoch",
        "ha.zookeeper.session-timeout.ms": str(SESSION_SECONDS * 1000),
    }
    with open_cluster(tmp_path, more_keys=keys) as cluster:
        cluster.up()
        yield cluster


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed", marks=pytest.mark.long),
        pytest.param(signal.SIGSTOP, id="silent"),
    ],
)
def test_the_other_takes_over_by_the_journal_s_witness(
    cluster: Cluster, number: signal.Signals
) -> None:
    """Killed, its addresses refuse; stopped, they take connections, and nothing answers."""
    old, new = pair(cluster)
    before = last_number(cluster)
    # First the one that would report the other's end.
    for name in (zkfc_of(old), old):
        cluster.process(name).ended_by_us = True
        cluster.process(name).send(number)
    wait_until(
        lambda: new in cluster.active_namenodes(),
        what=f"{new} to be active",
        deadline_seconds=DEADLINE_SECONDS,
    )

    record = newest(cluster, before)["record"]
    assert (record["kind"], record["previous"], record["namenode"]) == ("auto", old, new)
    expected = f"witnessed: neither the NameNode nor the zkfc of {old} answered"
    assert record["cause"].startswith(expected)
    assert nnha(cluster, "explain").document["why"][0].startswith(expected)
    # The host is back: its NameNode is standby, and there never were two actives.
    for name in (zkfc_of(old), old):
        cluster.process(name).kill()
        cluster.start(name)
    cluster.wait_for_ready_standby(old)
    cluster.wait_for_candidate(old)
    assert cluster.active_namenodes() == [new]
