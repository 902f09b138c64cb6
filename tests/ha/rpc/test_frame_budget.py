"""Half frames share one budget: a peer that would exceed it is not read from, the others go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from ha.rpc.frame_budget import FREE_BYTES, FrameBudget
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from ha.rpc.server import RpcServer
from tests.ha.rpc import wire

MIB = 1024 * 1024
BUDGET = 8 * MIB
OTHERS = BUDGET - BUDGET // 4
"""What is left where a quarter is kept for failover."""
PEERS = 16
ONE_READING = 256 * 1024
"""What a loop reads at most from a socket at a time; asyncio's and uvloop's."""
ROOM = (PEERS + 1) * (FREE_BYTES + ONE_READING)
"""What is free for each of them, and what one last reading brings."""


@asynccontextmanager
async def namenode(
    total_bytes: int = BUDGET, **limits: float
) -> AsyncIterator[tuple[FrameBudget, int]]:
    budget = FrameBudget(total_bytes)
    server = RpcServer(
        [wire.echo_protocol(name=CLIENT_PROTOCOL), wire.echo_protocol(name=HA_SERVICE_PROTOCOL)],
        limits=RpcLimits(**limits),  # type: ignore[arg-type]
        budget=budget,
    )
    port = await server.start("127.0.0.1", 0)
    try:
        yield budget, port
    finally:
        await server.stop()


def large_call(protocol: str, size: int) -> bytes:
    request = wire.Echo(context="x" * size).SerializeToString()
    return encode_call(CallKey(wire.CLIENT, 0, 0), protocol, "echo", request)


def greeting(protocol: str = CLIENT_PROTOCOL) -> bytes:
    return PREAMBLE + encode_context(wire.CLIENT, protocol, "alice", None)


async def half_frames(stack: AsyncExitStack, port: int, count: int, size: int = 3 * MIB) -> None:
    """Send ``size`` bytes each of requests of 4 MiB that never end, from ``count`` peers."""
    data = greeting() + large_call(CLIENT_PROTOCOL, 4 * MIB)[:size]
    for _ in range(count):
        _, writer = await stack.enter_async_context(wire.raw(port))
        writer.write(data)


async def test_half_frames_take_no_more_than_their_part_and_calls_go_on() -> None:
    assert 4 * OTHERS + ROOM < 4 * BUDGET < PEERS * 3 * MIB
    async with namenode(4 * BUDGET) as (budget, port), AsyncExitStack() as stack:
        await half_frames(stack, port, PEERS)
        await wire.eventually(lambda: budget.used_bytes > 4 * OTHERS)
        async with wire.calling(port, CLIENT_PROTOCOL) as client:
            for _ in range(50):
                assert await wire.ask(client) == "hello"
                assert budget.used_bytes <= 4 * OTHERS + ROOM
        # What is kept for failover is there, for a large request as well.
        async with wire.raw(port) as (reader, writer):
            writer.write(greeting(HA_SERVICE_PROTOCOL) + large_call(HA_SERVICE_PROTOCOL, MIB))
            await wire.read_answers(reader, 1)


async def test_who_waits_for_the_budget_is_served_once_there_is_room() -> None:
    async with namenode() as (budget, port):
        async with AsyncExitStack() as stack:
            await half_frames(stack, port, 2, OTHERS // 2 - FREE_BYTES)
            await wire.eventually(lambda: budget.used_bytes > OTHERS - 3 * FREE_BYTES)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(greeting() + large_call(CLIENT_PROTOCOL, 2 * MIB))
            await wire.eventually(lambda: budget.waiting == 1)
        await wire.read_answers(reader, 1)
        writer.close()
        await wire.eventually(lambda: budget.used_bytes == 0)


async def test_half_frames_that_wait_for_each_other_end() -> None:
    """Count their time although none of them is done, and none is read from."""
    async with namenode(frame_seconds=0.3) as (budget, port), AsyncExitStack() as stack:
        data = greeting() + large_call(CLIENT_PROTOCOL, 4 * MIB)
        peers = [await stack.enter_async_context(wire.raw(port)) for _ in range(8)]
        for _, writer in peers:
            writer.write(data[:-1])
        for reader, _ in peers:
            assert await wire.until_closed(reader, seconds=30) == b""
        await wire.eventually(lambda: budget.used_bytes == 0)


class Peer:
    """A connection as the budget sees it: it takes more as soon as it may."""

    def __init__(self, budget: FrameBudget, *, privileged: bool = False, wants: int = 0) -> None:
        self.budget, self.privileged, self.wants = budget, privileged, wants
        self.pumped = 0

    def pump(self) -> None:
        self.pumped += 1
        if self.wants:
            self.has(self.wants)

    def has(self, size: int) -> bool:
        return self.budget.holds(self, size)


def test_room_that_somebody_leaves_is_given_to_those_that_wait() -> None:
    """End a frame on a connection that stays: nothing else would wake a waiting peer."""
    budget = FrameBudget(BUDGET)
    first, second, third = (Peer(budget) for _ in range(3))
    assert first.has(OTHERS)
    assert [peer.has(2 * FREE_BYTES) for peer in (second, third)] == [False, False]
    assert budget.waiting == 2
    assert first.has(0)
    assert (second.pumped, third.pumped) == (1, 1)
    assert [peer.has(2 * FREE_BYTES) for peer in (second, third)] == [True, True]
    assert budget.waiting == 0, "who may go on waits no longer"
    assert second.has(0)
    assert third.pumped == 1, "nor is it woken again"
    assert third.has(0)
    assert [third.has(size) for size in (0, 7, 7, 0, 0)] == [True] * 5
    assert budget.used_bytes == 0, "what is given back is given back once"


def test_who_is_gone_waits_no_longer() -> None:
    budget = FrameBudget(BUDGET)
    first, second = Peer(budget), Peer(budget)
    assert (first.has(OTHERS), second.has(2 * FREE_BYTES)) == (True, False)
    budget.forget(second)
    assert budget.waiting == 0
    budget.forget(first)
    assert (second.pumped, budget.used_bytes) == (0, 0)


def test_growth_wakes_nobody() -> None:
    budget = FrameBudget(BUDGET)
    first, second = Peer(budget), Peer(budget)
    assert first.has(OTHERS - FREE_BYTES)
    assert not second.has(2 * FREE_BYTES)
    assert first.has(OTHERS - 3 * FREE_BYTES)
    assert second.pumped == 1
    assert not second.has(8 * FREE_BYTES)
    assert second.pumped == 1


def test_a_small_frame_never_waits_and_a_reserve_is_kept_for_failover() -> None:
    budget = FrameBudget(BUDGET)
    clients = [Peer(budget) for _ in range(3)]
    controller = Peer(budget, privileged=True)
    assert clients[0].has(OTHERS)
    assert clients[1].has(FREE_BYTES)
    assert not clients[2].has(FREE_BYTES + 1)
    assert controller.has(BUDGET - OTHERS - 2 * FREE_BYTES - 1)
    assert not controller.has(BUDGET)
    assert controller.has(FREE_BYTES)


def test_the_smallest_is_woken_first_and_no_more_than_there_is_room_for() -> None:
    budget = FrameBudget(BUDGET)
    first = Peer(budget)
    waiting = [Peer(budget) for _ in range(4)]
    sizes = (5, 2, 4, 3)
    room = 2 * FREE_BYTES
    assert first.has(OTHERS)
    for peer, size in zip(waiting, sizes, strict=True):
        assert not peer.has(size * FREE_BYTES)
    assert first.has(OTHERS - sum(sizes) * FREE_BYTES - room)
    assert [peer.pumped for peer in waiting] == [0, 1, 0, 1], "two more readings have room"
    first.budget.forget(first)
    assert [peer.pumped for peer in waiting] == [1, 2, 1, 2]


def test_what_is_set_aside_counts_whether_it_is_there_or_not() -> None:
    budget = FrameBudget(BUDGET)
    threaded, other = Peer(budget), Peer(budget)
    assert threaded.has(FREE_BYTES)
    assert budget.set_aside(threaded, MIB)
    assert budget.used_bytes == MIB, "in place of what it had"
    assert not other.has(OTHERS)
    assert not budget.set_aside(threaded, OTHERS)
    assert budget.used_bytes == MIB + OTHERS
    assert budget.set_aside(other, MIB)
    assert (budget.waiting, budget.used_bytes) == (0, 2 * MIB)
    budget.forget(threaded)
    budget.forget(threaded)
    budget.forget(other)
    assert budget.used_bytes == 0
