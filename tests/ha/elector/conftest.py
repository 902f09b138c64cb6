"""One real ZooKeeper for all tests of the elector."""

from collections.abc import Iterator

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from tests.local_services import running_zookeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--rewrite``: renew the transcripts, to be reviewed as a diff."""
    parser.addoption("--rewrite", action="store_true", help="write transcripts anew")
