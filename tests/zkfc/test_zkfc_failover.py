"""Hadoop's TestZKFailoverController (hadoop-ha 8.1) on a real ZooKeeper, and what it lacks."""

import asyncio
from pathlib import Path

import pytest

from deploy.local.zookeeper import ZooKeeper
from ha.elector.model import Role
from ha.service.model import ServiceState
from tests.zkfc.zkfc_world import until, world

pytestmark = pytest.mark.zookeeper


async def test_a_killed_namenode_is_replaced_within_a_quarter_second(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as here:
        one, two = here.nodes
        killed_at = asyncio.get_running_loop().time()
        await one.namenode.die()
        await here.active(two)
        assert two.namenode.promoted_at - killed_at < 0.25
        assert here.fenced() == ["nn1"]
