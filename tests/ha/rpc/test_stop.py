"""A server's end: what handlers undo when they are cancelled, and who may not come any more."""

import asyncio
import socket
import threading

import pytest

from ha.rpc.call_access import CallAccess
from ha.rpc.call_header import Asked
from ha.rpc.connection import ServerConnection
from ha.rpc.dispatcher import Dispatcher
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.limits import DEFAULT_LIMITS, RpcLimits
from ha.rpc.packets import encode_success
from ha.rpc.protocol import Catalogue
from ha.rpc.reading_thread import THREAD_BYTES, ReadingThread, Since
from ha.rpc.server import Call
from ha.rpc.session import Event, ServerSession
from tests.ha.rpc import wire

QUICK = RpcLimits(stop_seconds=0.02)
WAIT_SECONDS = 30.0


class Undoing:
    """Handlers that have something to undo, as long as the test wants."""

    def __init__(self) -> None:
        self.begun = 0
        self.undone = 0
        self.may_end = asyncio.Event()

    async def handle(self, _: Call, request: wire.Echo) -> wire.Echo:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            for _turn in range(20):
                await asyncio.sleep(0)
            if request.context == "endless":
                await self.may_end.wait()
            self.undone += 1
        return request


@pytest.mark.parametrize(("context", "undone"), [("short", 2), ("endless", 0)])
async def test_a_stop_waits_for_what_cancelled_handlers_undo_and_not_for_ever(
    context: str, undone: int
) -> None:
    """Let handlers undo: what follows a stop closes the disk and the session that they use."""
    undoing = Undoing()
    protocol = wire.echo_protocol(undoing.handle)
    async with (
        wire.serving(protocol, limits=QUICK) as (server, port),
        wire.raw(port) as (_, writer),
    ):
        writer.write(wire.GREETING + wire.echo_call(0, context) + wire.echo_call(1, context))
        await wire.eventually(lambda: undoing.begun == 2)
        await asyncio.wait_for(server.stop(), WAIT_SECONDS)
        assert undoing.undone == undone
        timer = server._sweeper
        assert timer is not None
        assert timer.cancelled()
        undoing.may_end.set()
        await wire.eventually(lambda: undoing.undone == 2)


async def test_a_server_that_ends_takes_no_connection_and_begins_no_thread() -> None:
    """Begin none: a thread that was begun later would never be recalled."""
    budget = FrameBudget()
    dispatcher = Dispatcher(Catalogue(), DEFAULT_LIMITS, budget, CallAccess(None))
    seen: list[tuple[bool, bool, int]] = []
    for dispatcher.accepting in (True, False):
        connection = ServerConnection(DEFAULT_LIMITS, dispatcher)
        admitted = dispatcher.admit(connection)
        threaded = dispatcher.may_begin_thread(connection)
        seen.append((admitted, threaded, budget.used_bytes))
        dispatcher.forget(connection)
    assert seen == [(True, True, THREAD_BYTES), (False, False, 0)]
    assert not dispatcher.connections


async def test_a_thread_that_is_recalled_takes_no_more_of_what_has_come_meanwhile() -> None:
    """Stop it although a peer sends on and on, which would keep the server from its end."""
    ours, theirs = socket.socketpair()
    session = ServerSession(DEFAULT_LIMITS)
    carried, given_back = list[bytes](), list[Event | None]()
    entered, held, over = threading.Event(), threading.Event(), threading.Event()

    def carry_out(asked: Asked) -> bytes:
        carried.append(asked.request)
        entered.set()
        assert held.wait(WAIT_SECONDS)
        return encode_success(asked.key, asked.request)

    def ended(event: Event | None) -> None:
        given_back.append(event)
        over.set()

    session.receive(wire.GREETING + wire.echo_call(0))
    first = next(event for event in iter(session.next_event, None) if isinstance(event, Asked))
    with ours, theirs:
        thread = ReadingThread(session, Since(0.0, 0.0), carry_out, ended)
        thread.begin(ours, first)
        assert await asyncio.to_thread(entered.wait, WAIT_SECONDS)
        theirs.sendall(wire.echo_call(1))
        thread.recall()
        held.set()
        assert await asyncio.to_thread(over.wait, WAIT_SECONDS)
        thread.end()
        assert (carried, given_back) == ([first.request], [None])
        assert ours.recv(1 << 16) == wire.echo_call(1), "it is the loop's to read"
