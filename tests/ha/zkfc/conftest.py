"""One real ZooKeeper for all tests of the failover controller, and a nameservice for each."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from tests.ha.zkfc.zkfc_world import World, world
from tests.local_services import running_zookeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
async def here(zookeeper: ZooKeeper, tmp_path: Path) -> AsyncIterator[World]:
    """Two NameNodes with their controllers: nn1 active, nn2 standby."""
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as begun:
        yield begun
