"""Room for calls over all connections: which ones wait for it, and which get it."""

import asyncio
from contextlib import AsyncExitStack

from ha.rpc.call_share import Calling
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import Status
from ha.rpc.server import RpcServer
from tests.ha.rpc import wire
from tests.ha.rpc.test_begun_calls import Desk


async def test_who_waits_for_room_and_needs_none_keeps_nobody_else_waiting() -> None:
    """Pass the room on: the first in the queue has sent half a frame, and cannot use it."""
    bench = wire.Bench()
    limits = RpcLimits(max_calls_per_connection=1, max_calls=1)
    async with (
        wire.serving(wire.echo_protocol(bench.handle), limits=limits) as (server, port),
        wire.calling(port) as busy,
        wire.raw(port) as (_, half),
        wire.raw(port) as (reader, whole),
    ):
        half.write(wire.GREETING)
        whole.write(wire.GREETING)
        await wire.eventually(lambda: _greeted(server) == 3)
        first = asyncio.create_task(wire.ask(busy, "first"))
        await wire.eventually(lambda: bench.started == ["first"])
        half.write(wire.echo_call(0, "half")[:-1])
        await wire.eventually(lambda: len(_waiting(server)) == 1)
        whole.write(wire.echo_call(0, "whole"))
        await wire.eventually(lambda: len(_waiting(server)) == 2)
        bench.finish.set()
        await first
        await wire.eventually(lambda: bench.started == ["first", "whole"], seconds=30)
        await wire.read_answers(reader, 1)


async def test_who_was_hung_up_on_waits_for_no_room() -> None:
    """Others would be held to their share for the sake of somebody who is not there."""
    bench = wire.Bench()
    limits = RpcLimits(max_calls_per_connection=1, max_calls=1)
    async with (
        wire.serving(wire.echo_protocol(bench.handle), limits=limits) as (server, port),
        wire.raw(port) as (_, busy),
        wire.raw(port) as (_, other),
    ):
        busy.write(wire.GREETING + wire.echo_call(0, "first"))
        await wire.eventually(lambda: bench.started == ["first"])
        other.write(wire.GREETING + wire.echo_call(0, "other"))
        await wire.eventually(lambda: len(_waiting(server)) == 1)
        server.abort_connections()
        await wire.eventually(lambda: server.connection_count == 0)
        assert not _waiting(server)
        bench.finish.set()
    assert bench.started == ["first"]


def _greeted(server: RpcServer) -> int:
    assert server._dispatcher is not None
    return sum(bool(one.who.user) for one in server._dispatcher.connections)


def _waiting(server: RpcServer) -> dict[Calling, str]:
    assert server._dispatcher is not None
    return server._dispatcher._calls.waiting


async def test_they_count_as_calls_and_make_room_when_they_end() -> None:
    """Hundreds wait for one seat: if each took its call from within the one before, the stack
    would end.
    """
    desk = Desk()
    limits = RpcLimits(max_calls_per_connection=1, max_calls=1)
    async with (
        wire.serving(desk.protocol(), limits=limits) as (server, port),
        AsyncExitStack() as stack,
    ):
        writing = [await stack.enter_async_context(wire.raw(port)) for _ in range(300)]
        writing[0][1].write(wire.GREETING + wire.echo_call(0, "later"))
        await wire.eventually(lambda: bool(desk.later))
        for _, writer in writing[1:]:
            writer.write(wire.GREETING + wire.echo_call(1, "now"))
        await wire.eventually(lambda: len(_waiting(server)) == 299, seconds=30)
        desk.end_all()
        for reader, _ in writing:
            assert (await wire.read_answers(reader, 1))[0].status is Status.SUCCESS
