"""Hadoop's stress tests of the controller, shortened; all 30 s: ./run soak zkfc."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from tests.ha.zkfc import stress

pytestmark = pytest.mark.zookeeper

SECONDS = 3.0


@pytest.fixture
def seed() -> int:
    """Print the seed, so that a failing run can be had again with NNHA_SEED."""
    seed = int(os.environ.get("NNHA_SEED", random.randrange(2**32)))
    print(f"NNHA_SEED={seed}")  # noqa: T201 - pytest shows it with a failure
    return seed


@pytest.mark.row("8.2 testExpireBackAndForth")
async def test_row_8_2_expire_back_and_forth(
    zookeeper: ZooKeeper, tmp_path: Path, seed: int
) -> None:
    async with asyncio.timeout(100):
        assert await stress.expire_back_and_forth(
            zookeeper.connect, tmp_path, seconds=SECONDS, seed=seed
        )


@pytest.mark.row("8.2 testRandomExpirations")
async def test_row_8_2_random_expirations(zookeeper: ZooKeeper, tmp_path: Path, seed: int) -> None:
    async with asyncio.timeout(100):
        assert await stress.random_expirations(
            zookeeper.connect, tmp_path, seconds=SECONDS, seed=seed
        )


@pytest.mark.row("8.2 testRandomHealthAndDisconnects")
async def test_row_8_2_random_health_and_disconnects(
    zookeeper: ZooKeeper, tmp_path: Path, seed: int
) -> None:
    async with asyncio.timeout(100):
        assert await stress.random_health_and_disconnects(
            zookeeper.connect, tmp_path, seconds=SECONDS, seed=seed
        )
