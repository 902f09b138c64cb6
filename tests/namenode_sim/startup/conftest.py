"""Where a start-up option runs: a configuration, three JournalNodes and nothing formatted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.namenode_sim.startup.startup_world import World, world


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as begun:
        yield begun
