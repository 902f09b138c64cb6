"""Which connections stay when there are too many: failover always, the longest idle one last."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from ha.rpc.client import RpcConnection
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, encode_context
from ha.rpc.server import RpcServer
from tests.ha.rpc import wire

LIMITS = RpcLimits(max_connections=32)
"""Of which two are kept."""
CLIENTS = LIMITS.max_connections - LIMITS.kept_connections
FRIENDLY = PREAMBLE + encode_context(wire.CLIENT, CLIENT_PROTOCOL, "mallory", None)


@asynccontextmanager
async def namenode(bench: wire.Bench) -> AsyncIterator[tuple[RpcServer, int]]:
    protocols = [
        wire.echo_protocol(bench.handle, one) for one in (CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL)
    ]
    async with wire.serving(*protocols, limits=LIMITS) as (server, port):
        yield server, port


@asynccontextmanager
async def crowd(
    port: int, count: int, said: bytes
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(count):
            found.append(await stack.enter_async_context(wire.raw(port)))
            found[-1][1].write(said)
        yield found


async def test_an_idle_crowd_gives_way_to_clients_and_to_failover() -> None:
    bench = wire.Bench()
    bench.finish.set()
    async with namenode(bench) as (server, port), crowd(port, 100, FRIENDLY):
        await wire.eventually(lambda: server.connection_count == CLIENTS)
        async with wire.calling(port, CLIENT_PROTOCOL) as client:
            assert await wire.ask(client) == "hello"
        async with wire.calling(port, HA_SERVICE_PROTOCOL) as controller:
            assert await wire.ask(controller) == "hello"


async def test_the_longest_idle_one_goes_first() -> None:
    bench = wire.Bench()
    bench.finish.set()
    async with (
        namenode(bench) as (server, port),
        wire.calling(port, CLIENT_PROTOCOL) as used,
        crowd(port, CLIENTS - 1, FRIENDLY) as idle,
    ):
        await wire.eventually(lambda: server.connection_count == CLIENTS)
        assert await wire.ask(used) == "hello"
        async with wire.calling(port, CLIENT_PROTOCOL) as client:
            assert await wire.ask(client) == "hello"
            assert await wire.until_closed(idle[0][0]) == b""
            assert await wire.ask(used) == "hello"


async def test_failover_finds_a_seat_beside_clients_that_all_wait_for_answers() -> None:
    bench = wire.Bench()
    async with namenode(bench) as (_, port), AsyncExitStack() as stack:
        waiting = []
        for number in range(CLIENTS):
            client = await stack.enter_async_context(wire.calling(port, CLIENT_PROTOCOL))
            waiting.append(asyncio.create_task(wire.ask(client, f"call {number}", seconds=30)))
        await wire.eventually(lambda: len(bench.started) == CLIENTS)
        async with wire.raw(port) as (reader, writer):
            writer.write(FRIENDLY)
            assert await wire.until_closed(reader) == b"", "a client more than there are seats"
        async with wire.calling(port, HA_SERVICE_PROTOCOL) as controller:
            assert await wire.ask(controller, "quick") == "quick"
        bench.finish.set()
        await asyncio.gather(*waiting)


async def test_those_that_say_nothing_give_way_to_those_that_do() -> None:
    bench = wire.Bench()
    bench.finish.set()
    async with (
        namenode(bench) as (server, port),
        wire.calling(port, HA_SERVICE_PROTOCOL) as controller,
        crowd(port, 3 * LIMITS.max_connections, PREAMBLE),
    ):
        assert await wire.ask(controller) == "hello"
        async with wire.calling(port, CLIENT_PROTOCOL) as client:
            assert await wire.ask(client) == "hello"
        assert server.connection_count <= LIMITS.max_connections


async def test_many_that_claim_to_be_controllers_give_way_too() -> None:
    bench = wire.Bench()
    bench.finish.set()
    claim = PREAMBLE + encode_context(wire.CLIENT, HA_SERVICE_PROTOCOL, "root", None)
    async with namenode(bench) as (_, port), crowd(port, LIMITS.max_connections, claim):
        for protocol in (HA_SERVICE_PROTOCOL, CLIENT_PROTOCOL):
            connection: RpcConnection
            async with wire.calling(port, protocol) as connection:
                assert await wire.ask(connection) == "hello"
