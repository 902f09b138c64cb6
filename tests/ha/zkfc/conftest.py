"""One real ZooKeeper for all tests of the failover controller, and a nameservice for each."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from tests.ha.zkfc.site import Site
from tests.ha.zkfc.zkfc_world import World, Worlds, world
from tests.local_services import running_zookeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def worlds(zookeeper: ZooKeeper, tmp_path: Path) -> Worlds:
    return partial(world, zookeeper.connect, tmp_path)


@pytest.fixture
def site(zookeeper: ZooKeeper, tmp_path: Path) -> Site:
    return Site(tmp_path, zookeeper.connect)


@pytest.fixture
async def alone(worlds: Worlds) -> AsyncIterator[World]:
    """One NameNode, nn1, with its controller: active."""
    async with worlds("nn1") as begun:
        yield begun


@pytest.fixture
async def here(worlds: Worlds) -> AsyncIterator[World]:
    """Two NameNodes with their controllers: nn1 active, nn2 standby."""
    async with worlds("nn1", "nn2") as begun:
        yield begun
