"""An active and a standby, for the tests of what DataNodes report to them."""

from collections.abc import AsyncIterator

import pytest

from tests.namenode_sim.datanode_protocol.served import NameNode, name_node


@pytest.fixture
async def active() -> AsyncIterator[NameNode]:
    async with name_node(active=True) as made:
        yield made


@pytest.fixture
async def standby() -> AsyncIterator[NameNode]:
    async with name_node() as made:
        yield made
