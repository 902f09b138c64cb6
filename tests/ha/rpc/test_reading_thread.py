"""Calls that a thread of their connection carries out, and all that must be as on the loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from ha.conf.keys.security import Mode
from ha.rpc import java_names as java
from ha.rpc.errors import RemoteFault
from ha.rpc.frame_budget import FREE_BYTES, FrameBudget
from ha.rpc.limits import DEFAULT_LIMITS, RpcLimits
from ha.rpc.packets import PREAMBLE, CallKey, Status, encode_call, encode_context
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.rpc.reading_thread import THREAD_BYTES
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from tests.ha.rpc.blocking_client import BlockingClient
from tests.ha.rpc.test_naming import NO_USERS_UID
from tests.ha.rpc.wire import CLIENT, ECHO, GREETING, Echo, echo_call, eventually
from tests.ha.security.test_unproven import Lines
from tests.log_lines import captured

WAIT_SECONDS = 30.0
UNREAD_BYTES = 16 * 1024 * 1024
"""More than the sockets of two ends hold."""


class Desk:
    """``echo`` may be carried out in a thread, ``other`` only on the loop; what was, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.threads: set[str] = set()
        self.held = threading.Event()
        self.entered = threading.Event()

    def protocol(self) -> RpcProtocol:
        return RpcProtocol(
            ECHO,
            {
                "echo": Method(Echo, self.on_loop, in_thread=self.in_thread),
                "other": Method(Echo, self.on_loop),
            },
        )

    async def on_loop(self, _: Call, request: Echo) -> Echo:
        self.done.append(request.context)
        await asyncio.sleep(0)
        return request

    def in_thread(self, request: Echo) -> Echo:
        self.threads.add(threading.current_thread().name)
        match request.context:
            case "held":
                self.entered.set()
                assert self.held.wait(WAIT_SECONDS)
            case "refused" | "fatal" as which:
                raise RemoteFault(java.STANDBY_EXCEPTION, "no", fatal=which == "fatal")
            case "broken":
                raise KeyError(17)
            case _:
                pass
        self.done.append(request.context)
        return request


@asynccontextmanager
async def served(
    desk: Desk, limits: RpcLimits = DEFAULT_LIMITS, budget: FrameBudget | None = None
) -> AsyncIterator[tuple[RpcServer, Callable[[], BlockingClient]]]:
    server = RpcServer([desk.protocol()], limits=limits, budget=budget)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, lambda: BlockingClient(port, GREETING)
    finally:
        desk.held.set()
        await server.stop()
        assert not reading_threads(), "a server's end is the end of its threads"


def reading_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("calls of ")]


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_calls_are_answered_while_the_loop_stands_still() -> None:
    desk = Desk()
    with ThreadPoolExecutor(1) as pool:
        async with served(desk) as (_, connect):
            with connect() as client:
                await asyncio.to_thread(client.ask, echo_call(0, "first"))
                calls = [echo_call(number, str(number)) for number in range(1, 50)]
                # The loop does nothing else until all are answered.
                answers = pool.submit(client.ask, *calls).result(WAIT_SECONDS)
                assert [answer.call_id for answer in answers] == list(range(1, 50))
    assert desk.done == ["first", *map(str, range(1, 50))]
    assert desk.threads == {"calls of echo"}


async def test_no_call_no_thread() -> None:
    async with served(Desk()) as (_, connect):
        with connect() as client:
            await asyncio.to_thread(client.ask, echo_call(0, method="other"))
            assert not reading_threads()


async def test_no_thread_begins_while_the_loop_has_something_to_send() -> None:
    """Keep its answer from the middle of another one."""
    desk, large = Desk(), "x" * UNREAD_BYTES
    async with served(desk, RpcLimits(outgoing_pause_bytes=2 * UNREAD_BYTES)) as (_, connect):
        with connect() as client:
            call = echo_call(0, large, method="other")
            await asyncio.to_thread(client.socket.sendall, call)
            await eventually(lambda: desk.done == [large], seconds=WAIT_SECONDS)
            await asyncio.to_thread(client.socket.sendall, echo_call(1, "small"))
            await eventually(lambda: desk.done == [large, "small"])
            assert not desk.threads
            answers = [await asyncio.to_thread(client.answer) for _ in range(2)]
            assert [answer.call_id for answer in answers] == [0, 1]
            await asyncio.to_thread(client.ask, echo_call(2, "later"))
    assert desk.threads


async def test_no_thread_begins_before_the_answers_of_the_same_turn_have_left() -> None:
    async with served(Desk()) as (_, connect):
        with connect() as client:
            client.socket.settimeout(5.0)
            calls = echo_call(0, method="nope"), echo_call(1), echo_call(2)
            answers = await asyncio.to_thread(client.ask, *calls)
    assert [answer.call_id for answer in answers] == [0, 1, 2]


async def test_a_thread_carries_out_nothing_that_its_caller_may_not_ask_for() -> None:
    """Begin it for a call that may be made; another one comes next."""
    desk, lines = Desk(), Lines()
    access = AccessControl(Mode.AUTO, target="t", audit=lines, uid_of=lambda *_: NO_USERS_UID)
    method = Method(Echo, desk.on_loop, in_thread=desk.in_thread)
    methods = {"getReplicaVisibleLength": method, "getDatanodeInfo": method}
    server = RpcServer([RpcProtocol(java.CLIENT_DATANODE_PROTOCOL, methods)], access=access)
    port = await server.start("127.0.0.1", 0)
    who = encode_context(CLIENT, java.CLIENT_DATANODE_PROTOCOL, str(NO_USERS_UID), None)

    def call(number: int, name: str) -> bytes:
        request = Echo(context=name).SerializeToString()
        return encode_call(CallKey(CLIENT, number, 0), java.CLIENT_DATANODE_PROTOCOL, name, request)

    names = ["getReplicaVisibleLength", "getDatanodeInfo", "getReplicaVisibleLength"]
    try:
        with BlockingClient(port, PREAMBLE + who) as client:
            calls = [call(number, name) for number, name in enumerate(names)]
            answers = await asyncio.to_thread(client.ask, *calls)
    finally:
        await server.stop()
    told = [(answer.status, answer.java_class) for answer in answers]
    assert told == [(Status.SUCCESS, ""), (Status.ERROR, java.ACCESS_CONTROL), (Status.SUCCESS, "")]
    assert desk.threads
    assert desk.done == ["getReplicaVisibleLength"] * 2
    assert [(one.outcome, one.action) for one in lines.entries] == [
        (Outcome.REFUSED, "getDatanodeInfo")
    ]


@pytest.mark.parametrize("turns", [1, 2, 3, 7])
async def test_calls_are_carried_out_in_the_order_in_which_they_were_sent(turns: int) -> None:
    """Mix both kinds, in runs of every length, some at once and some one by one."""
    desk = Desk()
    async with served(desk) as (_, connect):
        with connect() as client:
            calls = [
                echo_call(n, str(n), method="other" if (n // turns) % 3 == 1 else "echo")
                for n in range(200)
            ]
            answered: set[int] = set()
            for size in (1, 2, 50, 1, 96, 50):
                some, calls = calls[:size], calls[size:]
                answers = await asyncio.to_thread(client.ask, *some)
                assert all(answer.status is Status.SUCCESS for answer in answers)
                answered |= {answer.call_id for answer in answers}
    assert answered == set(range(200))
    assert desk.done == list(map(str, range(200)))
    assert desk.threads, "a thread has taken part"


async def test_a_call_in_pieces_and_one_too_large_for_a_thread() -> None:
    desk = Desk()
    async with served(desk) as (_, connect):
        with connect() as client:
            await asyncio.to_thread(client.ask, echo_call(0, "first"))
            for number, size in enumerate((300_000, THREAD_BYTES, 3 * THREAD_BYTES, 5), 1):
                data = echo_call(number, "x" * size)
                await asyncio.to_thread(client.socket.sendall, data[:3])
                (answer,) = await asyncio.to_thread(client.ask, data[3:])
                assert answer.call_id == number
    assert [len(text) for text in desk.done[1:]] == [300_000, THREAD_BYTES, 3 * THREAD_BYTES, 5]


async def test_each_end_of_a_call_is_told_as_on_the_loop() -> None:
    desk = Desk()
    names = {"protocol": "Echo", "method": "echo"}
    refused = sample("nnha_rpc_calls_total", outcome="refused", **names)
    failed = sample("nnha_rpc_calls_total", outcome="failed", **names)
    took = sample("nnha_rpc_call_seconds_count", **names)
    in_flight = sample("nnha_rpc_calls_in_flight")
    with captured("rpc.handler.failed") as logs:
        async with served(desk) as (_, connect):
            with connect() as client:
                no, broken = await asyncio.to_thread(
                    client.ask, echo_call(0, "refused"), echo_call(1, "broken")
                )
                no_text = encode_call(CallKey(CLIENT, 2, 0), ECHO, "echo", b"\x0a\x01\xff")
                (bad,) = await asyncio.to_thread(client.ask, no_text)
                # Counted while the thread goes on.
                assert sample("nnha_rpc_calls_total", outcome="refused", **names) == refused + 2
                (fatal,) = await asyncio.to_thread(client.ask, echo_call(3, "fatal"))
                assert await asyncio.to_thread(client.closed)
    assert (no.java_class, no.message, no.status) == (java.STANDBY_EXCEPTION, "no", Status.ERROR)
    assert (broken.java_class, broken.message) == (java.IO_EXCEPTION, "KeyError: 17")
    assert [line["method"] for line in logs] == ["echo"]
    assert (bad.java_class, bad.status) == (java.RPC_SERVER, Status.ERROR)
    assert (fatal.java_class, fatal.status) == (java.STANDBY_EXCEPTION, Status.FATAL)
    assert sample("nnha_rpc_calls_total", outcome="refused", **names) == refused + 3
    assert sample("nnha_rpc_calls_total", outcome="failed", **names) == failed + 1
    assert sample("nnha_rpc_call_seconds_count", **names) == took + 4
    assert sample("nnha_rpc_calls_in_flight") == in_flight


async def test_what_is_no_call_ends_the_connection_as_on_the_loop() -> None:
    async with served(Desk()) as (server, connect):
        with connect() as client:
            await asyncio.to_thread(client.ask, echo_call(0))
            await asyncio.to_thread(client.socket.sendall, b"\xff\xff\xff\xff")
            assert await asyncio.to_thread(client.closed)
            await eventually(lambda: server.connection_count == 0)


async def test_who_hangs_up_is_forgotten_and_its_call_carried_out() -> None:
    desk = Desk()
    async with served(desk) as (server, connect):
        with connect() as client:
            await asyncio.to_thread(client.socket.sendall, echo_call(0, "held"))
            assert await asyncio.to_thread(desk.entered.wait, WAIT_SECONDS)
        desk.held.set()
        await eventually(lambda: server.connection_count == 0)
        await eventually(lambda: not reading_threads())
    assert desk.done == ["held"]


@pytest.mark.parametrize(
    ("limits", "then"),
    {
        "half a frame": (RpcLimits(frame_seconds=0.1), echo_call(1)[:9]),
        "silence": (RpcLimits(idle_seconds=0.1), b""),
    }.values(),
    ids=["half a frame", "silence"],
)
async def test_a_peer_that_a_thread_waits_for_is_not_waited_for_for_ever(
    limits: RpcLimits, then: bytes
) -> None:
    async with served(Desk(), limits) as (server, connect):
        with connect() as client:
            await asyncio.to_thread(client.ask, echo_call(0))
            await asyncio.to_thread(client.socket.sendall, then)
            assert await asyncio.to_thread(client.closed)
            await eventually(lambda: server.connection_count == 0)


async def test_a_call_that_takes_long_is_no_silence() -> None:
    desk = Desk()
    async with served(desk, RpcLimits(idle_seconds=0.1, frame_seconds=0.1)) as (server, connect):
        with connect() as client:
            await asyncio.to_thread(client.socket.sendall, echo_call(0, "held") + echo_call(1)[:9])
            assert await asyncio.to_thread(desk.entered.wait, WAIT_SECONDS)
            with connect() as silent:
                await asyncio.to_thread(silent.ask, echo_call(0))
                assert await asyncio.to_thread(silent.closed), "who is silent as long is let go"
            assert server.connection_count == 1
            desk.held.set()
            assert (await asyncio.to_thread(client.answer)).call_id == 0


async def test_who_reads_no_answers_is_let_go() -> None:
    limits = RpcLimits(stalled_write_seconds=0.1)
    async with served(Desk(), limits) as (server, connect):
        with connect() as client:
            await asyncio.to_thread(client.ask, echo_call(0))
            client.socket.settimeout(None)
            large = echo_call(1, "x" * 500_000)
            with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
                await asyncio.to_thread(client.socket.sendall, large * 200)
            await eventually(lambda: server.connection_count == 0)


async def test_a_connection_with_a_thread_gives_way_where_there_is_no_seat() -> None:
    limits = RpcLimits(max_connections=2)
    async with served(Desk(), limits) as (server, connect):
        with connect() as first, connect() as second:
            await asyncio.to_thread(first.ask, echo_call(0))
            await asyncio.to_thread(second.ask, echo_call(0))
            with connect() as third:
                await asyncio.to_thread(third.ask, echo_call(0))
                assert await asyncio.to_thread(first.closed)
                assert server.connection_count == 2


async def test_where_the_budget_has_no_room_the_loop_does_it() -> None:
    desk, budget = Desk(), FrameBudget(THREAD_BYTES + FREE_BYTES)
    async with served(desk, budget=budget) as (_, connect):
        with connect() as first, connect() as second:
            await asyncio.to_thread(first.ask, echo_call(0, "thread"))
            assert budget.used_bytes == THREAD_BYTES
            assert len(reading_threads()) == 1
            await asyncio.to_thread(second.ask, echo_call(0, "loop"))
            assert len(reading_threads()) == 1
            await asyncio.to_thread(first.ask, echo_call(1, method="other"))
            assert budget.used_bytes == 0
            await asyncio.to_thread(second.ask, echo_call(1, "thread again"))
            assert budget.used_bytes == THREAD_BYTES
        await eventually(lambda: budget.used_bytes == 0)


async def test_a_servers_end_lets_the_call_under_way_end() -> None:
    desk = Desk()
    async with served(desk, RpcLimits(stop_seconds=WAIT_SECONDS)) as (server, connect):
        with connect() as client, connect() as idle:
            await asyncio.to_thread(idle.ask, echo_call(0))
            await asyncio.to_thread(client.socket.sendall, echo_call(0, "held") + echo_call(1))
            assert await asyncio.to_thread(desk.entered.wait, WAIT_SECONDS)
            stopping = asyncio.create_task(server.stop())
            assert await asyncio.to_thread(idle.closed)
            desk.held.set()
            assert (await asyncio.to_thread(client.answer)).call_id == 0
            await stopping
            assert server.connection_count == 0


async def test_a_call_that_outlasts_the_grace_is_waited_for_without_its_caller() -> None:
    desk = Desk()
    async with served(desk, RpcLimits(stop_seconds=0.05)) as (server, connect):
        with connect() as client:
            await asyncio.to_thread(client.socket.sendall, echo_call(0, "held"))
            assert await asyncio.to_thread(desk.entered.wait, WAIT_SECONDS)
            stopping = asyncio.create_task(server.stop())
            assert await asyncio.to_thread(client.closed)
            assert not stopping.done()
            desk.held.set()
            await stopping
    assert desk.done == ["held"]
