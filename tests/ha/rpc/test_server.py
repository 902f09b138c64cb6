"""A server over real sockets: calls side by side, faults, limits, connections dropped."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from prometheus_client import REGISTRY

from ha.rpc import java_names
from ha.rpc.errors import ConnectionLost, RemoteFault
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, CallKey, Status, encode_call
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer
from tests.ha.rpc import wire
from tests.ha.rpc.wire import Echo, echo
from tests.log_lines import captured


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_call_is_answered_and_its_handler_knows_who_asks() -> None:
    bench = wire.Bench()
    async with (
        wire.serving(wire.echo_protocol(bench.handle)) as (_, port),
        wire.calling(port) as connection,
    ):
        assert await wire.ask(connection, "quick") == "quick"
        assert await wire.ask(connection, "quick") == "quick"
    first, second = bench.calls
    assert (first.protocol, first.method, first.user) == (wire.ECHO, "echo", "alice")
    assert (first.real_user, first.host, first.retry_count) == (None, "127.0.0.1", 0)
    assert (first.call_id, second.call_id) == (0, 1)
    assert first.client_id == second.client_id != b""


async def test_a_slow_call_does_not_hold_up_a_quick_one() -> None:
    bench = wire.Bench()
    async with (
        wire.serving(wire.echo_protocol(bench.handle)) as (_, port),
        wire.calling(port) as connection,
    ):
        slow = asyncio.create_task(wire.ask(connection, "slow"))
        await wire.eventually(lambda: bench.started == ["slow"])
        assert await wire.ask(connection, "quick") == "quick"
        assert not slow.done()
        bench.finish.set()
        assert await slow == "slow"


async def refuse(_: Call, __: Echo) -> Echo:
    raise RemoteFault(java_names.STANDBY_EXCEPTION, "not the active one")


async def refuse_for_good(_: Call, __: Echo) -> Echo:
    raise RemoteFault(java_names.STANDBY_EXCEPTION, "go away", fatal=True)


async def stumble(_: Call, __: Echo) -> Echo:
    raise KeyError("inode 17")


async def test_a_fault_travels_with_its_java_class() -> None:
    async with (
        wire.serving(wire.echo_protocol(refuse)) as (_, port),
        wire.raw(port) as (reader, writer),
    ):
        writer.write(wire.GREETING + wire.echo_call(5))
        (answer,) = await wire.read_answers(reader, 1)
        assert (answer.call_id, answer.status, answer.detail) == (5, Status.ERROR, 1)
        assert (answer.java_class, answer.message) == (
            java_names.STANDBY_EXCEPTION,
            "not the active one",
        )
        assert answer.client_id == wire.CLIENT


async def test_a_fatal_fault_closes_the_connection() -> None:
    async with (
        wire.serving(wire.echo_protocol(refuse_for_good)) as (_, port),
        wire.calling(port) as connection,
    ):
        with pytest.raises(RemoteFault, match="go away") as caught:
            await wire.ask(connection)
        assert caught.value.fatal
        assert isinstance(await connection.wait_closed(), RemoteFault)


async def test_a_handlers_own_failure_is_an_io_exception_and_a_logged_traceback() -> None:
    with captured("rpc.handler.failed") as logs:
        async with (
            wire.serving(wire.echo_protocol(stumble)) as (_, port),
            wire.calling(port) as connection,
        ):
            with pytest.raises(RemoteFault, match="KeyError: 'inode 17'") as caught:
                await wire.ask(connection)
            assert not connection.closed
    assert caught.value.java_class == java_names.IO_EXCEPTION
    (entry,) = logs
    assert entry["exc_info"]
    assert entry["method"] == "echo"


@pytest.mark.parametrize(
    ("protocol", "method", "version", "java_class", "detail"),
    [
        (wire.ECHO, "nope", 1, java_names.NO_SUCH_METHOD, 2),
        ("org.example.Nope", "echo", 1, java_names.NO_SUCH_PROTOCOL, 3),
        (wire.ECHO, "echo", 2, java_names.VERSION_MISMATCH, 6),
    ],
)
async def test_what_is_not_served_is_an_error_and_the_connection_stays(
    protocol: str, method: str, version: int, java_class: str, detail: int
) -> None:
    frame = encode_call(CallKey(wire.CLIENT, 0, 0), protocol, method, b"")
    frame = frame.replace(b"\x18\x01\x00", b"\x18" + bytes((version,)) + b"\x00")
    async with wire.serving() as (_, port), wire.raw(port) as (reader, writer):
        writer.write(wire.GREETING + frame + wire.echo_call(1))
        failed, succeeded = await wire.read_answers(reader, 2)
    assert (failed.status, failed.java_class, failed.detail) == (Status.ERROR, java_class, detail)
    assert (succeeded.call_id, succeeded.status) == (1, Status.SUCCESS)


async def test_a_request_that_is_no_message_is_an_error() -> None:
    frame = encode_call(CallKey(wire.CLIENT, 0, 0), wire.ECHO, "echo", b"\x08")
    lacking = encode_call(CallKey(wire.CLIENT, 1, 0), wire.ECHO, "echo", b"")
    async with wire.serving() as (_, port), wire.calling(port), wire.raw(port) as (reader, writer):
        writer.write(wire.GREETING + frame + lacking)
        seen = await wire.read_answers(reader, 2)
    assert [(a.status, a.java_class) for a in seen] == [(Status.ERROR, java_names.RPC_SERVER)] * 2


# Limits.


async def test_a_busy_connection_is_not_read_any_further() -> None:
    bench = wire.Bench()
    limits = RpcLimits(max_calls_per_connection=3)
    big = wire.echo_call(0, "x" * 100_000)
    async with (
        wire.serving(wire.echo_protocol(bench.handle), limits=limits) as (_, port),
        wire.raw(port) as (_, writer),
    ):
        writer.write(wire.GREETING)
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
        await wire.eventually(lambda: len(bench.started) == 300)


async def test_the_limit_over_all_connections_is_shared_out() -> None:
    bench = wire.Bench()
    limits = RpcLimits(max_calls_per_connection=4, max_calls=4)
    async with AsyncExitStack() as stack:
        _, port = await stack.enter_async_context(
            wire.serving(wire.echo_protocol(bench.handle), limits=limits)
        )
        callers = [await stack.enter_async_context(wire.calling(port)) for _ in range(3)]
        calls = [asyncio.create_task(wire.ask(c, f"{n}")) for c in callers for n in range(4)]
        await wire.eventually(lambda: len(bench.started) == 4)
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
    async with wire.serving(wire.echo_protocol(shout), limits=limits) as (server, port):
        async with wire.raw(port) as (reader, writer):
            reader._transport.pause_reading()  # type: ignore[attr-defined] # the one way to be rude
            writer.write(wire.GREETING + b"".join(wire.echo_call(n) for n in range(200)))
            await wire.eventually(lambda: server.connection_count == 1)
            await wire.eventually(lambda: server.connection_count == 0)
        assert answered < 50


async def test_more_answers_than_we_may_hold_end_the_connection() -> None:
    bench = wire.Bench()

    async def shout(call: Call, request: Echo) -> Echo:
        await bench.handle(call, request)
        return Echo(context="x" * 1_000_000)

    limits = RpcLimits(outgoing_pause_bytes=100_000, max_outgoing_bytes=5_000_000)
    async with (
        wire.serving(wire.echo_protocol(shout), limits=limits) as (_, port),
        wire.raw(port) as (reader, writer),
    ):
        writer.write(wire.GREETING + b"".join(wire.echo_call(n) for n in range(20)))
        await wire.eventually(lambda: len(bench.started) == 20)
        bench.finish.set()
        assert len(await wire.until_closed(reader)) < 20_000_000


async def test_one_connection_too_many_is_closed() -> None:
    bench = wire.Bench()
    limits = RpcLimits(max_connections=1)
    async with wire.serving(wire.echo_protocol(bench.handle), limits=limits) as (server, port):
        async with wire.calling(port) as first:
            busy = asyncio.create_task(wire.ask(first))
            await wire.eventually(lambda: bench.started == ["hello"])
            async with wire.raw(port) as (reader, _):
                assert await wire.until_closed(reader) == b""
            bench.finish.set()
            assert await busy == "hello"
        await wire.eventually(lambda: server.connection_count == 0)
        async with wire.calling(port) as next_one:
            assert await wire.ask(next_one) == "hello"


@pytest.mark.parametrize(
    ("limits", "sent"),
    [
        (RpcLimits(handshake_seconds=0.2), b""),
        (RpcLimits(handshake_seconds=0.2), PREAMBLE[:5]),
        (RpcLimits(handshake_seconds=0.2), PREAMBLE + wire.GREETING[7:20]),
        (RpcLimits(frame_seconds=0.2), wire.GREETING + wire.echo_call(0)[:30]),
        (RpcLimits(idle_seconds=0.2), wire.GREETING),
    ],
    ids=["silent", "half a preamble", "half a context", "half a call", "idle"],
)
async def test_who_keeps_us_waiting_is_hung_up_on(limits: RpcLimits, sent: bytes) -> None:
    async with wire.serving(limits=limits) as (server, port), wire.raw(port) as (reader, writer):
        writer.write(sent)
        assert await wire.until_closed(reader, seconds=3) == b""
        await wire.eventually(lambda: server.connection_count == 0)


async def test_who_waits_for_an_answer_is_not_idle() -> None:
    bench = wire.Bench()
    limits = RpcLimits(idle_seconds=1.5, frame_seconds=0.1, handshake_seconds=0.1)
    async with (
        wire.serving(wire.echo_protocol(bench.handle), limits=limits) as (_, port),
        wire.calling(port) as connection,
    ):
        call = asyncio.create_task(wire.ask(connection))
        done, _ = await asyncio.wait([call], timeout=1.8)
        assert not done
        bench.finish.set()
        assert await call == "hello"
        gone = asyncio.create_task(connection.wait_closed())
        await asyncio.wait([gone], timeout=0.4)  # idle only since its answer
        assert not gone.done()
        await asyncio.wait_for(gone, 30)


async def test_a_frame_that_we_left_unread_is_not_slow() -> None:
    bench = wire.Bench()
    limits = RpcLimits(max_calls_per_connection=1, frame_seconds=1.5)
    second = wire.echo_call(1)
    async with (
        wire.serving(wire.echo_protocol(bench.handle), limits=limits) as (_, port),
        wire.raw(port) as (reader, writer),
    ):
        writer.write(wire.GREETING + wire.echo_call(0) + second[:20])
        await wire.eventually(lambda: len(bench.started) == 1)
        await asyncio.sleep(1.8)
        bench.finish.set()
        assert len(await wire.read_answers(reader, 1)) == 1
        await asyncio.sleep(0.3)  # two sweeps
        writer.write(second[20:])
        assert len(await wire.read_answers(reader, 1)) == 1


async def test_many_frames_with_a_piece_always_pending_are_not_one_slow_frame() -> None:
    # All together take longer than the limit; a machine that stands still for less disturbs none.
    limits = RpcLimits(frame_seconds=1.5)
    size = len(wire.echo_call(0))
    stream = b"".join(wire.echo_call(n) for n in range(30))
    async with wire.serving(limits=limits) as (_, port), wire.raw(port) as (reader, writer):
        writer.write(wire.GREETING + stream[:10])
        for start in range(10, len(stream), size):  # always ten bytes into the next frame
            writer.write(stream[start : start + size])
            await asyncio.sleep(0.06)
        assert len(await wire.read_answers(reader, 30)) == 30


async def test_who_is_connected_is_served_what_is_served_now() -> None:
    async with wire.serving() as (server, port), wire.calling(port) as connection:
        assert await wire.ask(connection) == "hello"
        server.serve([RpcProtocol(wire.ECHO, {"other": Method(Echo, echo)})])
        with pytest.raises(RemoteFault) as gone:
            await wire.ask(connection)
        assert gone.value.java_class == java_names.NO_SUCH_METHOD
        request = Echo(context="now")
        assert await connection.call("other", request, Echo, deadline_seconds=5) == request


# Dropping connections, and stopping.


async def test_only_the_clients_of_one_protocol_are_dropped() -> None:
    protocols = (wire.echo_protocol(), wire.echo_protocol(name="org.example.Control"))
    async with (
        wire.serving(*protocols) as (server, port),
        wire.calling(port) as data,
        wire.calling(port, "org.example.Control") as control,
    ):
        assert await wire.ask(data) == await wire.ask(control) == "hello"
        assert server.abort_connections(protocol=wire.ECHO) == 1
        assert isinstance(await asyncio.wait_for(data.wait_closed(), 30), ConnectionLost)
        assert await wire.ask(control) == "hello"
        assert server.abort_connections() == 1
        assert isinstance(await asyncio.wait_for(control.wait_closed(), 30), ConnectionLost)


async def test_a_handler_outlives_its_caller() -> None:
    bench = wire.Bench()
    finished = asyncio.Event()

    async def transition(call: Call, request: Echo) -> Echo:
        await bench.handle(call, request)
        finished.set()
        return request

    async with wire.serving(wire.echo_protocol(transition)) as (server, port):
        async with wire.raw(port) as (_, writer):
            writer.write(wire.GREETING + wire.echo_call(0))
            await wire.eventually(lambda: len(bench.started) == 1)
        await wire.eventually(lambda: server.connection_count == 0)
        bench.finish.set()
        await asyncio.wait_for(finished.wait(), 30)


async def test_stopping_lets_calls_finish_and_cancels_the_endless() -> None:
    bench = wire.Bench()
    server = RpcServer([wire.echo_protocol(bench.handle)], limits=RpcLimits(stop_seconds=0.2))
    port = await server.start("127.0.0.1", 0)
    async with wire.calling(port) as connection:
        endless = asyncio.create_task(wire.ask(connection, "endless"))
        await wire.eventually(lambda: len(bench.started) == 1)
        await server.stop()
        with pytest.raises(ConnectionLost):
            await endless


async def test_stopping_delivers_what_was_just_answered() -> None:
    bench = wire.Bench()
    server = RpcServer([wire.echo_protocol(bench.handle)])
    port = await server.start("127.0.0.1", 0)
    async with wire.calling(port) as connection:
        call = asyncio.create_task(wire.ask(connection, "late"))
        await wire.eventually(lambda: len(bench.started) == 1)
        asyncio.get_running_loop().call_later(0.05, bench.finish.set)
        await server.stop()
        assert await call == "late"


def test_two_protocols_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="one name"):
        RpcServer([wire.echo_protocol(), RpcProtocol(wire.ECHO, {"x": Method(Echo, echo)})])


async def test_calls_are_counted_by_known_methods_only() -> None:
    known = {"protocol": "Echo", "method": "echo", "outcome": "success"}
    unknown = {"protocol": "unknown", "method": "unknown", "outcome": "refused"}
    before = sample("nnha_rpc_calls_total", **known), sample("nnha_rpc_calls_total", **unknown)
    async with wire.serving() as (_, port), wire.calling(port) as connection:
        await wire.ask(connection)
        for name in ("a", "b"):
            with pytest.raises(RemoteFault):
                await connection.call(name, Echo(context=""), Echo, deadline_seconds=5)
    assert sample("nnha_rpc_calls_total", **known) == before[0] + 1
    assert sample("nnha_rpc_calls_total", **unknown) == before[1] + 2
