"""Writes, copies and reads with a fault at each await, on both sides: DataNodes give all back."""

from collections.abc import Awaitable, Callable, Mapping
from itertools import count

import pytest

from datanode.model import Temporary
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import DataNodeError
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.datanode import block_client, moves_world
from tests.datanode.block_client import Node, places
from tests.datanode.stores import block

DATA = bytes(range(256)) * 32
TYPED = (DataNodeError, PeerLost, block_client.ReadRefused, OSError, AssertionError)
"""The client of these tests asserts what it is answered."""


async def write(nodes: list[Node], number: int) -> None:
    await block_client.write_whole(places(nodes[:2]), block(number), DATA)


async def copy(nodes: list[Node], number: int) -> None:
    writing = await block_client.begin(places(nodes[:2]), block(number), client="")
    await writing.send(DATA)
    await writing.end()
    with pytest.raises(PeerLost):
        await writing.peer.read(1, seconds=block_client.SECONDS)
    writing.peer.close()


async def move(nodes: list[Node], number: int) -> None:
    """Have the second DataNode fetch a replica from the first one, as a balancer does."""
    await block_client.write_whole(places(nodes[:1]), block(number), DATA)
    asked = moves_world.request(nodes[0].place, block(number), length=len(DATA))
    answer = await moves_world.replace_block(nodes[1], asked)
    assert answer.status == moves_world.SUCCESS, answer.message


async def read(nodes: list[Node], _: int) -> None:
    assert await block_client.read(nodes[0].place, block(1), 0, len(DATA)) == DATA


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.EVICT])
@pytest.mark.parametrize("work", [write, copy, move, read])
async def test_what_is_cut_short_leaves_nothing_open(
    work: Callable[[list[Node], int], Awaitable[None]], fault: Fault, nodes: list[Node]
) -> None:
    await block_client.write_whole(places(nodes[:1]), block(1), DATA)
    numbers = count(2)

    def holdings() -> Mapping[str, float]:
        return {
            "connections": sum(one.server.active for one in nodes),
            "moves": sum(one.server.moves.throttle.running for one in nodes),
            "shared bytes": sum(one.server.shared_bytes for one in nodes),
            "unfinished copies": sum(isinstance(r, Temporary) for one in nodes for r in one.store),
        }

    async def life() -> None:
        await work(nodes, next(numbers))

    async def after(_: int) -> None:
        block_client.hang_up()

    cuts = Cuts(
        life,
        fault,
        typed=TYPED,
        evicts="xceiver",
        kept=frozenset({"datanode.model", "hadoop.blocks"}),
    )
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) >= 3
