"""Two controllers of one NameNode: one joins the election, the other waits and says why."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ha.conf.topology import HostPort
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Role
from ha.notices.board import Board
from ha.service.errors import ServiceFailed
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.process.controller import Controller
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.zkfc_world import Node, World, Worlds, free_port, until

pytestmark = pytest.mark.zookeeper


@asynccontextmanager
async def second_zkfc(here: World, node: Node) -> AsyncIterator[Controller]:
    settings = here.settings(node)
    own = replace(settings.own, zkfc=HostPort(HOST, free_port()))
    controller = Controller(
        replace(settings, own=own),
        keeper=lambda post, released: KazooKeeper(here.zookeeper, post, on_release=released),
        board=lambda tell: Board(here.zookeeper, node.name, tell),
    )
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.row("W22")
async def test_w22_a_second_controller_waits_and_takes_its_place_when_the_first_ends(
    worlds: Worlds,
) -> None:
    async with (
        worlds("nn1") as here,
        second_zkfc(here, here.nodes[0]) as second,
    ):
        node = here.nodes[0]
        asked = len(node.namenode.seen)
        await until(lambda: "another zkfc of nn1" in second.candidacy.out_because, "it stands back")
        assert f"on {socket.gethostname()}, at {HOST}:{node.zkfc_port}" in (
            second.failover_obstacle() or ""
        )
        client = await ZkfcClient.open(HostPort(HOST, second.port), deadline_seconds=5.0)
        try:
            with pytest.raises(ServiceFailed, match="another zkfc of nn1"):
                await client.graceful_failover(deadline_seconds=10.0)
        finally:
            await client.close()
        assert second.elector.state.role is Role.INIT
        assert len(node.namenode.seen) == asked, "nobody but the first gives orders"
        assert node.zkfc.believed is ServiceState.ACTIVE
        await node.stop()
        await until(lambda: second.believed is ServiceState.ACTIVE, "the second goes on")
