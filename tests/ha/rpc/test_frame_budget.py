"""Half frames share one budget: who would exceed it is not read from, and the others go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from ha.rpc.frame_budget import FREE_BYTES, FrameBudget
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from ha.rpc.server import RpcServer
from tests.ha.rpc.wire import (
    CLIENT,
    Echo,
    ask,
    calling,
    echo_protocol,
    eventually,
    raw,
    read_answers,
    until_closed,
)

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
        [echo_protocol(name=CLIENT_PROTOCOL), echo_protocol(name=HA_SERVICE_PROTOCOL)],
        limits=RpcLimits(**limits),  # type: ignore[arg-type]
        budget=budget,
    )
    port = await server.start("127.0.0.1", 0)
    try:
        yield budget, port
    finally:
        await server.stop()


def large_call(protocol: str, size: int) -> bytes:
    request = Echo(context="x" * size).SerializeToString()
    return encode_call(CallKey(CLIENT, 0, 0), protocol, "echo", request)


def greeting(protocol: str = CLIENT_PROTOCOL) -> bytes:
    return PREAMBLE + encode_context(CLIENT, protocol, "alice", None)


async def half_frames(stack: AsyncExitStack, port: int, count: int, size: int = 3 * MIB) -> None:
    """Requests of 4 MiB that never end, from so many peers; so much of each is sent."""
    data = greeting() + large_call(CLIENT_PROTOCOL, 4 * MIB)[:size]
    for _ in range(count):
        _, writer = await stack.enter_async_context(raw(port))
        writer.write(data)


async def test_half_frames_take_no_more_than_their_part_and_calls_go_on() -> None:
    assert 4 * OTHERS + ROOM < 4 * BUDGET < PEERS * 3 * MIB
    async with namenode(4 * BUDGET) as (budget, port), AsyncExitStack() as stack:
        await half_frames(stack, port, PEERS)
        await eventually(lambda: budget.used_bytes > 4 * OTHERS)
        async with calling(port, CLIENT_PROTOCOL) as client:
            for _ in range(50):
                assert await ask(client) == "hello"
                assert budget.used_bytes <= 4 * OTHERS + ROOM
        # What is kept for failover is there, for a large request as well.
        async with raw(port) as (reader, writer):
            writer.write(greeting(HA_SERVICE_PROTOCOL) + large_call(HA_SERVICE_PROTOCOL, MIB))
            await read_answers(reader, 1)


async def test_who_waits_for_the_budget_is_served_once_there_is_room() -> None:
    async with namenode() as (budget, port):
        async with AsyncExitStack() as stack:
            await half_frames(stack, port, 2, OTHERS // 2 - FREE_BYTES)
            await eventually(lambda: budget.used_bytes > OTHERS - 3 * FREE_BYTES)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(greeting() + large_call(CLIENT_PROTOCOL, 2 * MIB))
            await eventually(lambda: budget.waiting == 1)
        await read_answers(reader, 1)
        writer.close()
        await eventually(lambda: budget.used_bytes == 0)


async def test_half_frames_that_wait_for_each_other_end() -> None:
    """None of them is done, and none is read from: their time counts all the same."""
    async with namenode(frame_seconds=0.3) as (budget, port), AsyncExitStack() as stack:
        data = greeting() + large_call(CLIENT_PROTOCOL, 4 * MIB)
        peers = [await stack.enter_async_context(raw(port)) for _ in range(8)]
        for _, writer in peers:
            writer.write(data[:-1])
        for reader, _ in peers:
            assert await until_closed(reader, seconds=30) == b""
        await eventually(lambda: budget.used_bytes == 0)
