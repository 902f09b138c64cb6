"""Clients of an active that hangs do not wait for it, with journal-epoch alone."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from ha.rpc.errors import ConnectionLost
from tests.cluster.test_stale_reads import client_of, make, there

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

CLIENT_SECONDS = 120.0
"""What a client of Hadoop waits for an answer by default (ipc.client.rpc-timeout.ms)."""
DEADLINE_SECONDS = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster in which only its own ZKFC touches the old active's process."""
    keys = {
        "dfs.ha.fencing.methods": "journal-epoch",
        "ha.health-monitor.rpc-timeout.ms": "2000",
    }
    with open_cluster(tmp_path, more_keys=keys) as cluster:
        cluster.up()
        yield cluster


async def test_a_client_that_waits_for_a_hung_active_is_cut_off_when_another_is(
    cluster: Cluster,
) -> None:
    old = cluster.wait_for_active()
    new = "nn2" if old == "nn1" else "nn1"
    client = await client_of(cluster, old)
    await make(client, "/before")
    cluster.process(old).freeze()
    waiting = asyncio.create_task(there(client, "/before", deadline_seconds=CLIENT_SECONDS))
    await asyncio.to_thread(
        wait_until,
        lambda: cluster.active_namenodes() == [new],
        what=f"{new} to be active",
        deadline_seconds=DEADLINE_SECONDS,
    )
    with pytest.raises(ConnectionLost):
        async with asyncio.timeout(DEADLINE_SECONDS):
            await waiting
    assert cluster.process(old).wait(DEADLINE_SECONDS) == -signal.SIGKILL
    # The cluster is whole again when somebody starts it.
    await asyncio.to_thread(cluster.start, old)
    await asyncio.to_thread(cluster.wait_for_ready_standby, old)
    assert cluster.active_namenodes() == [new]
