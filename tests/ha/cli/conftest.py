"""One real ZooKeeper for all tests of commands, and a nameservice in it for each test."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from tests.ha.cli.stand_ins import Cluster, Shell, running_cluster, write_configuration
from tests.ha.cli.zookeeper_scope import Scope
from tests.local_services import running_zookeeper

_numbers = itertools.count(1)
PORTS = {
    f"{kind}-{name}": port
    for port, (kind, name) in enumerate(
        itertools.product(("rpc", "http", "zkfc", "zkfc-http"), ("nn1", "nn2")), start=1
    )
}
"""Nothing listens there."""


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
async def scope(zookeeper: ZooKeeper, tmp_path: Path) -> Scope:
    write_configuration(tmp_path, PORTS)
    settings = ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=10.0,
        scope=f"/commands{next(_numbers)}/ns1",
        acl=parse_acl("world:anyone:rwcda"),
    )
    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)
    return Scope(tmp_path, settings)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Two NameNodes and their controllers as stand-ins behind real RPC servers."""
    async with running_cluster(tmp_path) as running:
        yield running


@pytest.fixture
def haadmin(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """Hadoop's command for that cluster.

    The servers of this process would log to stdout, where haadmin's lines are expected.
    """
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield Shell(cluster, capsys)
    structlog.reset_defaults()
