"""Three DataNodes without NameNodes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.namenode_sim.datanode.block_client import Node, node


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(node(tmp_path / name)) for name in "abc"]
