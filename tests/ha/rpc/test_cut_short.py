"""RPC clients and servers with a fault at each await: seats, budgets, calls and slots come back."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from prometheus_client import REGISTRY

from ha.conf.keys.security import Mode
from ha.conf.topology import HostPort
from ha.rpc import errors, packets
from ha.rpc import wire as client_wire
from ha.rpc.client import RpcConnection
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.limits import RpcLimits
from ha.rpc.server import Call, RpcServer
from ha.rpc.spare_connection import SpareConnection
from ha.security.access_control import AccessControl
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc import wire
from tests.ha.security.test_unproven import HOST, Lines

NO_USERS_UID = 60_124
USER = str(NO_USERS_UID)
GREETING = packets.PREAMBLE + packets.encode_context(wire.CLIENT, wire.ECHO, USER, None)
LIMITS = RpcLimits(stop_seconds=0.01, frame_seconds=600, handshake_seconds=600)
TYPED = (errors.RpcError, errors.RemoteFault, ConnectionError, asyncio.IncompleteReadError)
GAUGES = ("nnha_rpc_connections", "nnha_rpc_buffered_bytes", "nnha_rpc_calls_in_flight")


def holdings() -> Mapping[str, float]:
    return {name: REGISTRY.get_sample_value(name) or 0 for name in GAUGES}


async def slow(_: Call, request: wire.Echo) -> wire.Echo:
    if request.context == "for ever":
        await asyncio.Event().wait()
    for _turn in range(3):
        await asyncio.sleep(0)
    return request


async def unanswered(connection: RpcConnection) -> None:
    with suppress(errors.DeadlineExceeded):
        await wire.ask(connection, "for ever", seconds=0)


class Place:
    """A server, and the life of some of its callers; ``named``: their names must be found first."""

    def __init__(self, named: bool) -> None:
        self._named = named
        self.server = self._new()

    def _new(self) -> RpcServer:
        access = AccessControl(
            Mode.AUTO,
            target="t",
            audit=Lines(),
            uid_of=lambda *_: NO_USERS_UID,
            later=lambda *_: None,
        )
        return RpcServer(
            [wire.echo_protocol(slow)],
            limits=LIMITS,
            budget=FrameBudget(),
            access=access if self._named else None,
        )

    async def life(self) -> None:
        self.server = self._new()
        port = await self.server.start(HOST, 0)
        try:
            async with wire.raw(port) as (reader, writer):
                writer.write(GREETING + wire.echo_call(0) + wire.echo_call(1)[:-2])
                await wire.read_answers(reader, 1)
                writer.write(wire.echo_call(1)[-2:] + wire.echo_call(2, "for ever"))
                await self._call(port)
        finally:
            await self.server.stop()

    async def _call(self, port: int) -> None:
        connection = await RpcConnection.open(
            HOST, port, protocol=wire.ECHO, user=USER, deadline_seconds=20
        )
        try:
            await asyncio.gather(*(wire.ask(connection, text, seconds=20) for text in "ab"))
        except errors.RemoteFault:
            if not self._named:  # else it is so: the table of rights has no echo
                raise
        finally:
            await connection.close()

    async def after(self, _: int) -> None:
        await self.server.stop()
        assert self.server.connection_count == 0


@pytest.mark.parametrize("named", [False, True], ids=["", "named"])
@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.STOP])
async def test_a_server_that_is_cut_short_gives_all_back(fault: Fault, named: bool) -> None:
    place = Place(named)
    cuts = Cuts(place.life, fault, stop=lambda: place.server.stop(), typed=TYPED)
    assert await awaits.cut_at_each_await(cuts, place.after, holdings=holdings) > 12


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.BREAK])
async def test_a_call_that_is_cut_short_gives_its_slot_back(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_wire, "MAX_CALLS_IN_FLIGHT", 2)
    async with wire.serving(wire.echo_protocol(slow)) as (_, port), wire.calling(port) as calling:

        async def life() -> None:
            texts = [str(number) for number in range(6)]
            assert await asyncio.gather(*(wire.ask(calling, text) for text in texts)) == texts

        async def after(_: int) -> None:
            await life()

        cuts = Cuts(life, fault, typed=TYPED)
        assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 12


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.BREAK])
async def test_calls_that_get_no_answer_are_forgotten(fault: Fault) -> None:
    """The first takes all the room that there is, and the second waits until its caller is gone."""
    limits = RpcLimits(max_calls=1, max_calls_per_connection=1, stop_seconds=0.01)
    over = asyncio.Event()

    async def wait(_: Call, request: wire.Echo) -> wire.Echo:
        await over.wait()
        return request

    protocol = wire.echo_protocol(wait)
    async with wire.serving(protocol, limits=limits) as (_, port), wire.calling(port) as kept:

        async def life() -> None:
            over.clear()
            await unanswered(kept)
            async with wire.calling(port) as fresh:
                await unanswered(fresh)

        async def after(_: int) -> None:
            over.set()

        cuts = Cuts(life, fault, typed=TYPED)
        assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) >= 2


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "left"])
@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.EVICT])
async def test_a_spare_connection_that_is_cut_short_is_closed(fault: Fault, taken: bool) -> None:
    async with wire.serving() as (_, port):
        place, opened = HostPort(HOST, port), asyncio.Event()

        async def connect(host: str, port: int, **given: Any) -> RpcConnection:  # noqa: ANN401
            connection = await RpcConnection.open(host, port, **given)
            opened.set()
            return connection

        async def life() -> None:
            opened.clear()
            spare = SpareConnection(lambda: place, wire.ECHO, connect=connect)
            begun = {
                asyncio.create_task(spare.run(), name="a spare connection"),
                asyncio.create_task(opened.wait()),
            }
            try:
                await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)  # it is put where it can be taken
                if taken and (connection := spare.take(place)) is not None:
                    await connection.close()
            finally:
                for task in begun:
                    task.cancel()
                await asyncio.gather(*begun, return_exceptions=True)

        async def after(_: int) -> None:
            pass

        cuts = Cuts(life, fault, typed=TYPED, evicts="a spare")
        assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 4
