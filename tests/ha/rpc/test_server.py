"""A server over real sockets: calls side by side, faults, limits, connections dropped."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from ha.rpc.errors import ConnectionLost, RemoteFault
from ha.rpc.java_names import (
    IO_EXCEPTION,
    NO_SUCH_METHOD,
    NO_SUCH_PROTOCOL,
    RPC_SERVER,
    STANDBY_EXCEPTION,
    VERSION_MISMATCH,
)
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, CallKey, Status, encode_call
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer
from tests.ha.rpc.wire import (
    CLIENT,
    ECHO,
    GREETING,
    Bench,
    Echo,
    ask,
    calling,
    echo,
    echo_call,
    echo_protocol,
    eventually,
    raw,
    read_answers,
    serving,
    until_closed,
)


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_call_is_answered_and_its_handler_knows_who_asks() -> None:
    bench = Bench()
    async with serving(echo_protocol(bench.handle)) as (_, port), calling(port) as connection:
        assert await ask(connection, "quick") == "quick"
        assert await ask(connection, "quick") == "quick"
    first, second = bench.calls
    assert (first.protocol, first.method, first.user) == (ECHO, "echo", "alice")
    assert (first.real_user, first.host, first.retry_count) == (None, "127.0.0.1", 0)
    assert (first.call_id, second.call_id) == (0, 1)
    assert first.client_id == second.client_id != b""


async def test_a_slow_call_does_not_hold_up_a_quick_one() -> None:
    bench = Bench()
    async with serving(echo_protocol(bench.handle)) as (_, port), calling(port) as connection:
        slow = asyncio.create_task(ask(connection, "slow"))
        await eventually(lambda: bench.started == ["slow"])
        assert await ask(connection, "quick") == "quick"
        assert not slow.done()
        bench.finish.set()
        assert await slow == "slow"


async def refuse(_: Call, __: Echo) -> Echo:
    raise RemoteFault(STANDBY_EXCEPTION, "not the active one")


async def refuse_for_good(_: Call, __: Echo) -> Echo:
    raise RemoteFault(STANDBY_EXCEPTION, "go away", fatal=True)


async def stumble(_: Call, __: Echo) -> Echo:
    raise KeyError("inode 17")


async def test_a_fault_travels_with_its_java_class() -> None:
    async with serving(echo_protocol(refuse)) as (_, port), raw(port) as (reader, writer):
        writer.write(GREETING + echo_call(5))
        (answer,) = await read_answers(reader, 1)
        assert (answer.call_id, answer.status, answer.detail) == (5, Status.ERROR, 1)
        assert (answer.java_class, answer.message) == (STANDBY_EXCEPTION, "not the active one")
        assert answer.client_id == CLIENT


async def test_a_fatal_fault_closes_the_connection() -> None:
    async with serving(echo_protocol(refuse_for_good)) as (_, port), calling(port) as connection:
        with pytest.raises(RemoteFault, match="go away") as caught:
            await ask(connection)
        assert caught.value.fatal
        assert isinstance(await connection.wait_closed(), RemoteFault)


async def test_a_handlers_own_failure_is_an_io_exception_and_a_logged_traceback() -> None:
    with capture_logs() as logs:
        async with serving(echo_protocol(stumble)) as (_, port), calling(port) as connection:
            with pytest.raises(RemoteFault, match="KeyError: 'inode 17'") as caught:
                await ask(connection)
            assert not connection.closed
    assert caught.value.java_class == IO_EXCEPTION
    (entry,) = [entry for entry in logs if entry["event"] == "rpc.handler.failed"]
    assert entry["exc_info"]
    assert entry["method"] == "echo"


@pytest.mark.parametrize(
    ("protocol", "method", "version", "java_class", "detail"),
    [
        (ECHO, "nope", 1, NO_SUCH_METHOD, 2),
        ("org.example.Nope", "echo", 1, NO_SUCH_PROTOCOL, 3),
        (ECHO, "echo", 2, VERSION_MISMATCH, 6),
    ],
)
async def test_what_is_not_served_is_an_error_and_the_connection_stays(
    protocol: str, method: str, version: int, java_class: str, detail: int
) -> None:
    frame = encode_call(CallKey(CLIENT, 0, 0), protocol, method, b"")
    frame = frame.replace(b"\x18\x01\x00", b"\x18" + bytes((version,)) + b"\x00")
    async with serving() as (_, port), raw(port) as (reader, writer):
        writer.write(GREETING + frame + echo_call(1))
        failed, succeeded = await read_answers(reader, 2)
    assert (failed.status, failed.java_class, failed.detail) == (Status.ERROR, java_class, detail)
    assert (succeeded.call_id, succeeded.status) == (1, Status.SUCCESS)


async def test_a_request_that_is_no_message_is_an_error() -> None:
    frame = encode_call(CallKey(CLIENT, 0, 0), ECHO, "echo", b"\x08")
    lacking = encode_call(CallKey(CLIENT, 1, 0), ECHO, "echo", b"")
    async with serving() as (_, port), calling(port), raw(port) as (reader, writer):
        writer.write(GREETING + frame + lacking)
        seen = await read_answers(reader, 2)
    assert [(a.status, a.java_class) for a in seen] == [(Status.ERROR, RPC_SERVER)] * 2


# Limits.


async def test_a_busy_connection_is_not_read_any_further() -> None:
    bench = Bench()
    limits = RpcLimits(max_calls_per_connection=3)
    big = echo_call(0, "x" * 100_000)
    async with (
        serving(echo_protocol(bench.handle), limits=limits) as (_, port),
        raw(port) as (_, writer),
    ):
        writer.write(GREETING)
        for _ in range(300):
            writer.write(big)
        unsent = -1
        async with asyncio.timeout(30):
            # What the server leaves unread fills both sockets, and then stays with the sender.
            while unsent != writer.transport.get_write_buffer_size() or not unsent:
                unsent = writer.transport.get_write_buffer_size()
                await asyncio.sleep(0.1)
        assert len(bench.started) == 3
        assert unsent > 10_000_000
        bench.finish.set()
        await eventually(lambda: len(bench.started) == 300)


async def test_the_limit_over_all_connections_is_shared_out() -> None:
    bench = Bench()
    limits = RpcLimits(max_calls_per_connection=4, max_calls=4)
    async with AsyncExitStack() as stack:
        _, port = await stack.enter_async_context(
            serving(echo_protocol(bench.handle), limits=limits)
        )
        callers = [await stack.enter_async_context(calling(port)) for _ in range(3)]
        calls = [asyncio.create_task(ask(c, f"{n}")) for c in callers for n in range(4)]
        await eventually(lambda: len(bench.started) == 4)
        await asyncio.sleep(0.05)
        assert len(bench.started) == 4
        bench.finish.set()
        assert len(await asyncio.gather(*calls)) == 12


async def test_answers_that_nobody_reads_stop_the_calls_and_then_the_connection() -> None:
    answered = 0

    async def shout(_: Call, __: Echo) -> Echo:
        nonlocal answered
        answered += 1
        return Echo(context="x" * 1_000_000)

    limits = RpcLimits(
        max_calls_per_connection=4, outgoing_pause_bytes=100_000, stalled_write_seconds=0.3
    )
    async with serving(echo_protocol(shout), limits=limits) as (server, port):
        async with raw(port) as (reader, writer):
            reader._transport.pause_reading()  # type: ignore[attr-defined] # the one way to be rude
            writer.write(GREETING + b"".join(echo_call(n) for n in range(200)))
            await eventually(lambda: server.connection_count == 1)
            await eventually(lambda: server.connection_count == 0)
        assert answered < 50


async def test_more_answers_than_we_may_hold_end_the_connection() -> None:
    bench = Bench()

    async def shout(call: Call, request: Echo) -> Echo:
        await bench.handle(call, request)
        return Echo(context="x" * 1_000_000)

    limits = RpcLimits(outgoing_pause_bytes=100_000, max_outgoing_bytes=5_000_000)
    async with (
        serving(echo_protocol(shout), limits=limits) as (_, port),
        raw(port) as (reader, writer),
    ):
        writer.write(GREETING + b"".join(echo_call(n) for n in range(20)))
        await eventually(lambda: len(bench.started) == 20)
        bench.finish.set()
        assert len(await until_closed(reader)) < 20_000_000


async def test_one_connection_too_many_is_closed() -> None:
    bench = Bench()
    limits = RpcLimits(max_connections=1)
    async with serving(echo_protocol(bench.handle), limits=limits) as (server, port):
        async with calling(port) as first:
            busy = asyncio.create_task(ask(first))
            await eventually(lambda: bench.started == ["hello"])
            async with raw(port) as (reader, _):
                assert await until_closed(reader) == b""
            bench.finish.set()
            assert await busy == "hello"
        await eventually(lambda: server.connection_count == 0)
        async with calling(port) as next_one:
            assert await ask(next_one) == "hello"


@pytest.mark.parametrize(
    ("limits", "sent"),
    [
        (RpcLimits(handshake_seconds=0.2), b""),
        (RpcLimits(handshake_seconds=0.2), PREAMBLE[:5]),
        (RpcLimits(handshake_seconds=0.2), PREAMBLE + GREETING[7:20]),
        (RpcLimits(frame_seconds=0.2), GREETING + echo_call(0)[:30]),
        (RpcLimits(idle_seconds=0.2), GREETING),
    ],
    ids=["silent", "half a preamble", "half a context", "half a call", "idle"],
)
async def test_who_keeps_us_waiting_is_hung_up_on(limits: RpcLimits, sent: bytes) -> None:
    async with serving(limits=limits) as (server, port), raw(port) as (reader, writer):
        writer.write(sent)
        assert await until_closed(reader, seconds=3) == b""
        await eventually(lambda: server.connection_count == 0)


async def test_who_waits_for_an_answer_is_not_idle() -> None:
    bench = Bench()
    limits = RpcLimits(idle_seconds=1.5, frame_seconds=0.1, handshake_seconds=0.1)
    async with (
        serving(echo_protocol(bench.handle), limits=limits) as (_, port),
        calling(port) as connection,
    ):
        call = asyncio.create_task(ask(connection))
        done, _ = await asyncio.wait([call], timeout=1.8)
        assert not done
        bench.finish.set()
        assert await call == "hello"
        gone = asyncio.create_task(connection.wait_closed())
        await asyncio.wait([gone], timeout=0.4)  # idle only since its answer
        assert not gone.done()
        await asyncio.wait_for(gone, 30)


async def test_a_frame_that_we_left_unread_is_not_slow() -> None:
    bench = Bench()
    limits = RpcLimits(max_calls_per_connection=1, frame_seconds=1.5)
    second = echo_call(1)
    async with (
        serving(echo_protocol(bench.handle), limits=limits) as (_, port),
        raw(port) as (reader, writer),
    ):
        writer.write(GREETING + echo_call(0) + second[:20])
        await eventually(lambda: len(bench.started) == 1)
        await asyncio.sleep(1.8)
        bench.finish.set()
        assert len(await read_answers(reader, 1)) == 1
        await asyncio.sleep(0.3)  # two sweeps
        writer.write(second[20:])
        assert len(await read_answers(reader, 1)) == 1


async def test_many_frames_with_a_piece_always_pending_are_not_one_slow_frame() -> None:
    # All together take longer than the limit; a machine that stands still for less disturbs none.
    limits = RpcLimits(frame_seconds=1.5)
    size = len(echo_call(0))
    stream = b"".join(echo_call(n) for n in range(30))
    async with serving(limits=limits) as (_, port), raw(port) as (reader, writer):
        writer.write(GREETING + stream[:10])
        for start in range(10, len(stream), size):  # always ten bytes into the next frame
            writer.write(stream[start : start + size])
            await asyncio.sleep(0.06)
        assert len(await read_answers(reader, 30)) == 30


async def test_who_is_connected_is_served_what_is_served_now() -> None:
    async with serving() as (server, port), calling(port) as connection:
        assert await ask(connection) == "hello"
        server.serve([RpcProtocol(ECHO, {"other": Method(Echo, echo)})])
        with pytest.raises(RemoteFault) as gone:
            await ask(connection)
        assert gone.value.java_class == NO_SUCH_METHOD
        request = Echo(context="now")
        assert await connection.call("other", request, Echo, deadline_seconds=5) == request


# Dropping connections, and stopping.


async def test_only_the_clients_of_one_protocol_are_dropped() -> None:
    protocols = (echo_protocol(), echo_protocol(name="org.example.Control"))
    async with (
        serving(*protocols) as (server, port),
        calling(port) as data,
        calling(port, "org.example.Control") as control,
    ):
        assert await ask(data) == await ask(control) == "hello"
        assert server.abort_connections(protocol=ECHO) == 1
        assert isinstance(await asyncio.wait_for(data.wait_closed(), 30), ConnectionLost)
        assert await ask(control) == "hello"
        assert server.abort_connections() == 1
        assert isinstance(await asyncio.wait_for(control.wait_closed(), 30), ConnectionLost)


async def test_a_handler_outlives_its_caller() -> None:
    bench = Bench()
    finished = asyncio.Event()

    async def transition(call: Call, request: Echo) -> Echo:
        await bench.handle(call, request)
        finished.set()
        return request

    async with serving(echo_protocol(transition)) as (server, port):
        async with raw(port) as (_, writer):
            writer.write(GREETING + echo_call(0))
            await eventually(lambda: len(bench.started) == 1)
        await eventually(lambda: server.connection_count == 0)
        bench.finish.set()
        await asyncio.wait_for(finished.wait(), 30)


async def test_stopping_lets_calls_finish_and_cancels_the_endless() -> None:
    bench = Bench()
    server = RpcServer([echo_protocol(bench.handle)], limits=RpcLimits(stop_seconds=0.2))
    port = await server.start("127.0.0.1", 0)
    async with calling(port) as connection:
        endless = asyncio.create_task(ask(connection, "endless"))
        await eventually(lambda: len(bench.started) == 1)
        await server.stop()
        with pytest.raises(ConnectionLost):
            await endless


async def test_stopping_delivers_what_was_just_answered() -> None:
    bench = Bench()
    server = RpcServer([echo_protocol(bench.handle)])
    port = await server.start("127.0.0.1", 0)
    async with calling(port) as connection:
        call = asyncio.create_task(ask(connection, "late"))
        await eventually(lambda: len(bench.started) == 1)
        asyncio.get_running_loop().call_later(0.05, bench.finish.set)
        await server.stop()
        assert await call == "late"


def test_two_protocols_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="one name"):
        RpcServer([echo_protocol(), RpcProtocol(ECHO, {"x": Method(Echo, echo)})])


async def test_calls_are_counted_by_known_methods_only() -> None:
    known = {"protocol": "Echo", "method": "echo", "outcome": "success"}
    unknown = {"protocol": "unknown", "method": "unknown", "outcome": "refused"}
    before = sample("nnha_rpc_calls_total", **known), sample("nnha_rpc_calls_total", **unknown)
    async with serving() as (_, port), calling(port) as connection:
        await ask(connection)
        for name in ("a", "b"):
            with pytest.raises(RemoteFault):
                await connection.call(name, Echo(context=""), Echo, deadline_seconds=5)
    assert sample("nnha_rpc_calls_total", **known) == before[0] + 1
    assert sample("nnha_rpc_calls_total", **unknown) == before[1] + 2
