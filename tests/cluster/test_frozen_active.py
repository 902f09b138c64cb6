"""An active NameNode is stopped with deletions in its queue, and goes on after its successor has
had the blocks copied again: nothing that the successor counts is deleted.

See docs/reference/blocks.md#full-reports.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.processes import wait_until
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, staged
from deploy.local.workload.file_workload import Expected
from ha.conf.topology import HostPort
from ha.service.client import ServiceClient
from ha.service.model import RequestSource
from tests.local_services import lacking_blocks

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DATANODES = 4
FILES = 30
REPLICATION = 3
SIZE = 50_000
DEADLINE = 60.0
CLIENT_KEYS = {"ipc.client.rpc-timeout.ms": "4000"}
"""Without a ZKFC the stopped NameNode is not ended, and a client would wait two minutes for it."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Yield a cluster without ZKFCs: the test itself elects, and nothing fences."""
    screen = Screen(Console(stderr=True, width=200))
    with staged(tmp_path, screen, CLIENT_KEYS, datanodes=DATANODES) as stage:
        for name in NAMENODES:
            stage.cluster.kill(zkfc_of(name))
        yield stage


def make_active(cluster: Cluster, name: str) -> None:
    async def become() -> None:
        where = HostPort("127.0.0.1", cluster.layout.namenodes[name].rpc)
        service = await ServiceClient.open(where, deadline_seconds=DEADLINE)
        await service.transition_to_active(RequestSource.ZKFC, deadline_seconds=DEADLINE)
        await service.close()

    asyncio.run(become())


def replicas(cluster: Cluster) -> int:
    """Return how many finalized replicas lie on all disks together."""
    data = cluster.layout.directory / "data"
    return sum(not path.name.endswith(".meta") for path in data.rglob("finalized/**/blk_*"))


def wait_for_replicas(cluster: Cluster, count: int) -> None:
    wait_until(
        lambda: replicas(cluster) == count,
        what=f"{count} replicas on the disks of all DataNodes",
        deadline_seconds=DEADLINE,
    )


@pytest.mark.row("B1")
def test_b1_a_thawed_active_deletes_nothing_that_its_successor_counts(stage: Stage) -> None:
    cluster, files = stage.cluster, stage.client.files()
    old = cluster.wait_for_active()
    new = next(name for name in NAMENODES if name != old)
    written = stage.files.expected
    for number in range(FILES):
        path, content = f"/frozen/f{number}", bytes([number]) * SIZE
        files.write(path, [content], block_size=1 << 20)
        written[path] = Expected(content)
    wait_for_replicas(cluster, FILES * REPLICATION)
    for path in written:
        files.set_replication(path, 1)
    cluster.process(old).freeze()
    left = replicas(cluster)
    make_active(cluster, new)
    for path in written:
        files.set_replication(path, REPLICATION)
    wait_for_replicas(cluster, FILES * REPLICATION)
    sentinel = "/frozen/sentinel"
    files.write(sentinel, [b"x"], block_size=1 << 20)
    files.set_replication(sentinel, DATANODES)
    wait_for_replicas(cluster, FILES * REPLICATION + DATANODES)
    cluster.process(old).thaw()
    wait_until(
        lambda: not cluster.process(old).running,
        what=f"{old} to find that it was superseded, and to end",
        deadline_seconds=DEADLINE,
    )
    # Every DataNode has heard of the thawed one by the time it has done what it is ordered now.
    files.delete(sentinel)
    wait_for_replicas(cluster, FILES * REPLICATION)
    assert lacking_blocks(files) == 0
    assert stage.files.check_all() == FILES * SIZE
    assert not stage.files.wrong
    assert left > FILES, "all deletions had been carried out before the active was stopped"
