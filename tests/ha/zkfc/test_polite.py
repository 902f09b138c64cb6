"""The polite request before fencing: a victim that does not answer is not given its whole time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fencing.model import JournalEpochMethod
from ha.conf.configuration import load_configuration
from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.model import Term
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.health.core import HealthSettings
from ha.service.model import ServiceState
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings, zkfc_settings
from ha.zkfc.takeover.takeover import Takeover
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port
from tests.stand_in import say_nothing, stand_in

POLITE_SECONDS = 60.0
"""For what is asked of one that answers; a test that waits for it has hung."""


def node(name: str, port: int) -> NameNodeAddress:
    rpc, off = HostPort(HOST, port), HostPort(HOST, 0)
    return NameNodeAddress("ns1", name, rpc, rpc, off, off, off, rpc)


def takeover(victim_port: int) -> Takeover:
    return Takeover(
        ZkfcSettings(
            own=node("nn2", 1),
            others=(node("nn1", victim_port),),
            zookeeper=ZooKeeperSettings(hosts="x", session_timeout_seconds=1, scope="/x"),
            health=HealthSettings(),
            fencing={"": FencingPlan(methods=(JournalEpochMethod(),))},
            bind_host=HOST,
            graceful_fence_timeout_seconds=POLITE_SECONDS,
        )
    )


def breadcrumb(port: int) -> bytes:
    return encode(ActiveNodeInfo("ns1", "nn1", HOST, port, 0))


async def test_a_frozen_one_costs_a_moment_and_not_the_time_of_a_demotion() -> None:
    async with stand_in(say_nothing) as port, asyncio.timeout(POLITE_SECONDS / 2):
        fenced = await takeover(port).fence(breadcrumb(port), Term.SETTLED)
    assert fenced.how == f"ns1.nn1 at {HOST}:{port} was fenced by journal-epoch"
    assert not fenced.gone


async def test_one_that_answers_has_its_time_for_the_demotion() -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    namenode.state = ServiceState.ACTIVE
    fenced = await takeover(namenode.address.port).fence(
        breadcrumb(namenode.address.port), Term.SETTLED
    )
    assert fenced.how.endswith("went standby")
    assert fenced.gone
    await namenode.cut_off()


def test_a_short_limit_is_probed_often_enough_to_be_kept(tmp_path: Path) -> None:
    for name in ("core-site.xml", "hdfs-site.xml"):
        (tmp_path / name).write_text("<configuration></configuration>")
    keys = {
        "fs.defaultFS": "hdfs://ns1",
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.ha.namenode.id": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:1",
        "ha.zookeeper.quorum": "x:1",
    }

    def interval(limit: str) -> float:
        given = keys | {"ha.health-monitor.rpc-timeout.ms": limit}
        conf = load_configuration(tmp_path, [f"{key}={value}" for key, value in given.items()])
        return zkfc_settings(conf).health.check_interval_seconds

    assert interval("45000") == 1.0
    # Silence begins right after an answer: the limit and one interval pass until it is noticed.
    assert interval("2000") == 0.25


@asynccontextmanager
async def active_namenode(name: str) -> AsyncIterator[ToyNameNode]:
    namenode = ToyNameNode(name, SharedResource())
    await namenode.start()
    namenode.state = ServiceState.ACTIVE
    try:
        yield namenode
    finally:
        await namenode.cut_off()


async def test_in_doubt_our_own_name_spares_nobody() -> None:
    """Doubt our own name: a stranger has written it, and another NameNode is active."""
    async with active_namenode("nn1") as namenode:
        ours = encode(ActiveNodeInfo("ns1", "nn2", HOST, 1, 0))
        fenced = await takeover(namenode.address.port).fence(ours, Term.DOUBTED)
        assert namenode.state is ServiceState.STANDBY
    assert fenced.how.startswith("ns1.nn1 at ")
    assert fenced.how.endswith("went standby")
    assert not fenced.gone


async def test_in_doubt_bytes_that_name_nobody_stand_for_all_others() -> None:
    async with active_namenode("nn1") as namenode:
        taking = takeover(namenode.address.port)
        with pytest.raises(TakeoverImpossible, match="cannot tell whom to fence"):
            await taking.fence(b"\xff", Term.UNKNOWN)
        fenced = await taking.fence(b"\xff", Term.DOUBTED)
        assert namenode.state is ServiceState.STANDBY
    assert not fenced.gone


async def test_in_doubt_a_dead_other_keeps_nobody_from_taking_over() -> None:
    ours = encode(ActiveNodeInfo("ns1", "nn2", HOST, 1, 0))
    fenced = await takeover(free_port()).fence(ours, Term.DOUBTED)
    assert "was asked in vain" in fenced.how
    assert not fenced.gone
