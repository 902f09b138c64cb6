"""Whatever writers, DataNodes and failovers do: asked again, a NameNode answers the same blocks."""

import asyncio
from contextlib import ExitStack
from random import Random
from typing import Final

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.blocks.errors import MapBroken
from namenode_sim.blocks.model import Location, Slot
from namenode_sim.blocks.state import BlockState
from namenode_sim.client_protocol.open_files import add_block, block_writes
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.retry_cache import RetryCache
from tests.namenode_sim.client_protocol.writers_world import World
from tests.simulation.engine.mutants import Planting, replacing

SEEDS = 40
STEPS = 60


async def live(seed: int) -> World:
    world = World(Random(seed))
    for _ in range(STEPS):
        await world.step()
    await world.finish()
    return world


@pytest.mark.row("B9")
@pytest.mark.parametrize("start", range(0, SEEDS, 10))
def test_every_file_holds_what_its_writer_wrote(start: int) -> None:
    worlds = [asyncio.run(live(seed)) for seed in range(start, start + 10)]
    assert sum(world.repeats for world in worlds) > 50
    assert sum(world.failovers for world in worlds) > 25
    assert sum(world.deletions for world in worlds) > 5


def _never(*_arguments: object) -> bool:
    return False


def _nothing(*_arguments: object) -> None:
    """Leave out a step."""


def _logged_blocks(_: Scene, file: INodeFile) -> tuple[Block, ...]:
    return file.blocks


def _expect_anew(state: BlockState, slot: Slot, locations: tuple[Location, ...]) -> None:
    state._constructions.put_all(slot, locations)


BUGS: Final[dict[str, Planting]] = {
    "a repeated addBlock is refused": replacing(add_block, "is_retry", _never),
    "the next addBlock does not tell a block's length": replacing(add_block, "committed", _nothing),
    "a file is closed with the lengths that edits have told": replacing(
        block_writes, "blocks_now", _logged_blocks
    ),
    "a new pipeline forgets what was reported": replacing(BlockState, "expect", _expect_anew),
    "answers are not remembered": replacing(RetryCache, "remember", _nothing),
}


def seed_that_shows() -> int | None:
    for seed in range(SEEDS):
        try:
            asyncio.run(live(seed))
        except (AssertionError, MapBroken, RemoteFault):
            return seed
    return None


@pytest.mark.parametrize("plant", BUGS.values(), ids=BUGS.keys())
def test_a_planted_bug_is_found(plant: Planting) -> None:
    with ExitStack() as planted:
        plant(planted)
        assert seed_that_shows() is not None
