"""The model of ZooKeeper is believed because a real server shows the same to the same scripts."""

import asyncio
import inspect
import itertools
from collections.abc import Iterator
from functools import partial
from typing import cast

import pytest
from kazoo.client import KazooClient

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.metrics import measured_session
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from tests.local_services import running_zookeeper
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.network import Network
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.hosts import WorldNetwork
from tests.simulation.failover.zk_ensemble import Ensemble
from tests.simulation.failover.zk_scenarios import SCENARIOS, Client, Script
from tests.simulation.failover.zk_session import ModelSession
from tests.simulation.failover.zk_tree import Create

_numbers = itertools.count(1)


def _settings(hosts: str) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=hosts,
        session_timeout_seconds=6.0,
        scope=f"/hadoop-ha/script{next(_numbers)}",
        acl=parse_acl("world:anyone:rwcda"),
    )


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


async def _really(scenario: str, server: ZooKeeper) -> list[str]:
    settings = _settings(f"{server.host}:{server.port}")
    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)

    async def expire(client: Client) -> None:
        assert isinstance(client, Session)
        thief = KazooClient(hosts=settings.hosts, client_id=client._client.client_id, timeout=10)
        await asyncio.to_thread(thief.start)
        await asyncio.to_thread(thief.stop)
        thief.close()

    script = Script(partial(Session, settings), expire, settings.scope)
    try:
        await SCENARIOS[scenario](script)
    finally:
        await script.finish()
    return script.lines


def _modelled(scenario: str, seed: int) -> list[str]:
    settings = _settings("zk1:2181")
    loop = VirtualLoop(lambda _process: 0.0)
    faults = Faults(seed, {}, None)
    trace = Trace(lambda: loop.now, keep=False)
    network = WorldNetwork(Network(loop, faults, trace, held=False))
    ensemble = Ensemble(loop, network, faults, trace, servers=1)
    for path in ("/hadoop-ha", settings.scope):
        ensemble.commit(Create(path, b"", 0, settings.acl), "format")

    async def expire(client: Client) -> None:
        ensemble.expire(ensemble.sessions[client.session_id or 0])

    script = Script(partial(ModelSession, ensemble, settings), expire, settings.scope)

    async def play() -> None:
        await SCENARIOS[scenario](script)
        await script.finish()

    async def main() -> None:
        await Process("client", loop).spawn(play())

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    return script.lines


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_model_shows_what_a_server_shows(scenario: str, zookeeper: ZooKeeper) -> None:
    """Equal transcripts, whatever the model's delays."""
    real = await _really(scenario, zookeeper)
    for seed in range(1, 6):
        modelled = await asyncio.to_thread(_modelled, scenario, seed)
        assert modelled == real


def test_the_model_has_every_method_of_the_door() -> None:
    """Require the same parameters, so that a new one is not forgotten here."""
    for name, method in inspect.getmembers(Session, callable):
        if not name.startswith("_"):
            ours = inspect.signature(getattr(ModelSession, name)).parameters
            assert [*ours] == [*inspect.signature(method).parameters], name


def test_the_model_is_opened_as_daemons_open_a_session() -> None:
    opened = inspect.signature(partial(ModelSession, cast("Ensemble", None))).parameters
    assert [*opened] == [*inspect.signature(measured_session).parameters]
