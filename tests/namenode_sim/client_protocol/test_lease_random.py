"""One file through the deaths of its writers, DataNodes and NameNodes, by chance."""

import os
from contextlib import ExitStack
from itertools import chain

import pytest

from ha.rpc.errors import RemoteFault
from tests.in_turn import in_turn
from tests.namenode_sim.client_protocol.lease_planted import BUGS, Bug
from tests.namenode_sim.client_protocol.lease_world import run

SEEDS = int(os.environ.get("NNHA_LEASE_SEEDS", "80"))
STEPS = 80
MOST_SEEDS = 600
SHOWN_BY = (465, 268, 2231)
"""Seeds that once showed the three bugs that few do."""


@pytest.mark.row("B24")
async def test_nothing_acknowledged_is_lost_and_every_file_is_closed() -> None:
    for seed in range(SEEDS):
        await run(seed, STEPS)


async def seed_that_shows() -> int | None:
    for seed in chain(SHOWN_BY, range(MOST_SEEDS)):
        try:
            await run(seed, STEPS)
        except (AssertionError, RemoteFault):
            return seed
    return None


@pytest.mark.parametrize("bug", in_turn(BUGS))
async def test_a_bug_is_found(bug: Bug) -> None:
    with ExitStack() as planted:
        bug.plant(planted)
        assert await seed_that_shows() is not None
