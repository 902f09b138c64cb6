"""Calls that are begun without a task: they end in the same turn, later, or go to the handler."""

import asyncio

import pytest

from ha.rpc import call_header
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION, NO_SUCH_METHOD, STANDBY_EXCEPTION
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import Status
from ha.rpc.protocol import Ended
from ha.rpc.server import Call, Method, RpcProtocol
from tests.ha.rpc import wire


class Desk:
    """Begins a call as its text says."""

    def __init__(self) -> None:
        self.later: list[tuple[wire.Echo, Ended]] = []
        self.handled = 0

    def protocol(self) -> RpcProtocol:
        return RpcProtocol(wire.ECHO, {"echo": Method(wire.Echo, self.handle, self.begin)})

    async def handle(self, _: Call, request: wire.Echo) -> wire.Echo:
        self.handled += 1
        return request

    def begin(self, _: Call, request: wire.Echo, ended: Ended) -> bool:
        match request.context:
            case "handled":
                return False
            case "refused":
                ended(RemoteFault(STANDBY_EXCEPTION, "no"))
            case "raised":
                raise RemoteFault(STANDBY_EXCEPTION, "no")
            case "broken":
                raise KeyError(17)
            case "later":
                self.later.append((request, ended))
            case _:
                ended(request)
        return True

    def end_all(self) -> None:
        later, self.later = self.later, []
        for request, ended in later:
            ended(request)


async def test_each_end_is_told_as_a_handlers_is() -> None:
    desk = Desk()
    async with wire.serving(desk.protocol()) as (_, port), wire.calling(port) as connection:
        assert await wire.ask(connection, "now") == "now"
        assert desk.handled == 0
        assert await wire.ask(connection, "handled") == "handled"
        assert desk.handled == 1
        for text in ("refused", "raised"):
            with pytest.raises(RemoteFault, match="no") as refused:
                await wire.ask(connection, text)
            assert refused.value.java_class == STANDBY_EXCEPTION
        with pytest.raises(RemoteFault, match="KeyError") as broken:
            await wire.ask(connection, "broken")
        assert broken.value.java_class == IO_EXCEPTION


async def test_a_hundred_in_one_piece_are_all_answered() -> None:
    texts = [("now", "later", "refused")[i % 3] for i in range(100)]
    desk = Desk()
    async with wire.serving(desk.protocol()) as (_, port), wire.raw(port) as (reader, writer):
        writer.write(
            wire.GREETING + b"".join(wire.echo_call(i, text) for i, text in enumerate(texts))
        )
        at_once = await wire.read_answers(reader, 67)
        assert len(desk.later) == 33
        desk.end_all()
        found = {answer.call_id: answer.status for answer in at_once}
        found |= {answer.call_id: answer.status for answer in await wire.read_answers(reader, 33)}
    refused = {i for i, text in enumerate(texts) if text == "refused"}
    assert found == {i: Status.ERROR if i in refused else Status.SUCCESS for i in range(100)}


async def test_a_stop_waits_for_calls_that_have_not_ended() -> None:
    desk = Desk()
    async with wire.serving(desk.protocol()) as (server, port), wire.calling(port) as connection:
        call = asyncio.create_task(wire.ask(connection, "later"))
        await wire.eventually(lambda: bool(desk.later))
        stopping = asyncio.create_task(server.stop())
        await asyncio.wait({stopping}, timeout=0.05)
        assert not stopping.done()
        desk.end_all()
        assert await call == "later"
        await stopping


async def test_a_call_that_never_ends_does_not_keep_a_stop() -> None:
    desk = Desk()
    limits = RpcLimits(stop_seconds=0.05)
    async with (
        wire.serving(desk.protocol(), limits=limits) as (server, port),
        wire.raw(port) as (_, writer),
    ):
        writer.write(wire.GREETING + wire.echo_call(0, "later"))
        await wire.eventually(lambda: bool(desk.later))
        await asyncio.wait_for(server.stop(), 30)


def kept_names() -> int:
    return call_header.method_named.cache_info().currsize


async def test_only_short_names_of_methods_are_remembered() -> None:
    kept = kept_names()
    async with wire.serving(Desk().protocol()) as (_, port), wire.raw(port) as (reader, writer):
        writer.write(
            wire.GREETING + b"".join(wire.echo_call(i, method="m" * 300) for i in range(3))
        )
        for answer in await wire.read_answers(reader, 3):
            assert answer.java_class == NO_SUCH_METHOD
    assert kept_names() == kept
