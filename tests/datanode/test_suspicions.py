"""A replica that cannot be read as it was written is suspected, whatever it was read for."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from datanode.transfers.balance_throttle import MoveRules
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch
from tests.datanode import moves_world
from tests.datanode.block_client import ReadRefused, read, until
from tests.datanode.moves_world import DATA, HERE, Pair, pair, replace_block, request
from tests.datanode.stores import block
from tests.datanode.test_copies import damage


def remove(path: Path) -> None:
    path.unlink()


def shorten(path: Path) -> None:
    os.truncate(path, 5000)


def alter(path: Path) -> None:
    damage(path.parent)


async def read_it(two: Pair) -> None:
    with suppress(ReadRefused, PeerLost, ChecksumMismatch):
        await read(two.target.place, block(), 0, len(DATA), complain=True)


async def move_it_away(two: Pair) -> None:
    await replace_block(two.source, request(two.target.place))


async def change_its_volume(two: Pair) -> None:
    await replace_block(two.target, HERE(two.target.place))


DAMAGES = (remove, shorten, alter)
WAYS = (read_it, move_it_away, change_its_volume)
FOUND_BY_ITS_TARGET = (alter, move_it_away)


@pytest.mark.parametrize("pinning", [False, True])
@pytest.mark.parametrize(
    ("harm", "way"), [one for one in product(DAMAGES, WAYS) if one != FOUND_BY_ITS_TARGET]
)
async def test_what_cannot_be_read_is_suspected(
    tmp_path: Path,
    harm: Callable[[Path], None],
    way: Callable[[Pair], Awaitable[None]],
    *,
    pinning: bool,
) -> None:
    async with pair(tmp_path, target=MoveRules(pinning=pinning)) as two:
        await moves_world.at_the_target(two)
        (path,) = (one for one in tmp_path.rglob("blk_*") if one.suffix != ".meta")
        harm(path)
        await way(two)
        await until(lambda: two.target.suspected == [block()])
