"""Random histories under quotas: the use is that of a plain walk, and each refusal is right."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from random import Random
from typing import Final

import pytest

from namenode_sim.client_protocol.words import quotas
from namenode_sim.namespace import inode, usage
from namenode_sim.namespace.snapshots import held
from tests.namenode_sim.client_protocol.quota_world import QuotaWorld
from tests.simulation.engine.mutants import Planting, replacing

SEEDS: Final = int(os.environ.get("NNHA_QUOTA_SEEDS", "80"))
STEPS: Final = 40
PARTS: Final = 4


async def live(seed: int) -> QuotaWorld:
    world = QuotaWorld(Random(seed))
    await world.begin()
    for _ in range(STEPS):
        await world.step()
    return world


def played(seeds: Iterable[int]) -> Counter[str]:
    """Return how often histories came upon what this is about."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            world = asyncio.run(live(seed))
        except Exception as failure:
            raise AssertionError(f"seed {seed}") from failure
        seen.update({name: getattr(world, name) for name in ("refused", "taken", "failovers")})
        seen["images"] += world.images
        seen["snapshots"] += world.snapshots
    return seen


@pytest.mark.parametrize("part", range(PARTS))
def test_use_is_that_of_a_walk_and_refusals_are_right(part: int) -> None:
    seen = played(range(part, SEEDS, PARTS))
    assert min(seen.values()) >= SEEDS // PARTS // 10, seen
    assert min(seen["refused"], seen["taken"]) > SEEDS // PARTS, seen


def _nothing(*_arguments: object, **_more: object) -> None:
    """Leave out a step."""


def _lowest_alone(
    directory: inode.INodeDirectory | None, stop: inode.INode | None = None
) -> Iterator[inode.INodeDirectory]:
    return islice(_limited(directory, stop), 1)


def _closed(file: inode.INodeFile) -> int:
    return file.length()


_limited = quotas.limited

BUGS: Final[dict[str, Planting]] = {
    "a file that changes keeps what it had": replacing(usage.Usage, "touch", _nothing),
    "what is counted stays when a directory moves": replacing(usage.Usage, "clear", _nothing),
    "what left the tree for snapshots is not counted": replacing(usage.Usage, "hold", _nothing),
    "the lowest quota alone is checked": replacing(quotas, "limited", _lowest_alone),
    "snapshots hold nothing": replacing(held, "only_in_snapshots", lambda _: iter(())),
    "an open block counts its bytes alone": replacing(usage, "charged_bytes", _closed),
    "a change of a file is not checked": replacing(quotas, "check_change", _nothing),
}


@pytest.mark.parametrize("plant", BUGS.values(), ids=BUGS.keys())
def test_a_planted_bug_is_found(plant: Planting) -> None:
    with ExitStack() as planted:
        plant(planted)
        with pytest.raises(AssertionError, match="seed"):
            played(range(SEEDS))
