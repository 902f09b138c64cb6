"""One real ZooKeeper for all tests of the notices."""

from collections.abc import Iterator

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from tests.local_services import running_zookeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server
