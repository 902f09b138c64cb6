"""A client against honest, slow, dying and lying servers: every call ends, and says how."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ha.conf.topology import HostPort
from ha.rpc import errors
from ha.rpc import wire as client_wire
from ha.rpc.call_header import Asked
from ha.rpc.client import RpcConnection, call_once
from ha.rpc.java_names import STANDBY_EXCEPTION, VERSION_MISMATCH
from ha.rpc.limits import DEFAULT_LIMITS
from ha.rpc.packets import CallKey, Detail, encode_failure, encode_success
from ha.rpc.session import NO_KEY, ServerSession
from tests.ha.rpc import wire
from tests.stand_in import stand_in

Speaker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LARGE = 16 * 1024 * 1024
"""More than the sockets of two ends hold."""


@asynccontextmanager
async def peer(speak: Speaker) -> AsyncIterator[int]:
    async def then_die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await speak(reader, writer)
        finally:
            writer.transport.abort()

    async with stand_in(then_die) as port:
        yield port


async def next_calls(
    session: ServerSession, reader: asyncio.StreamReader, count: int
) -> list[Asked]:
    asked: list[Asked] = []
    while True:
        while (event := session.next_event()) is not None:
            if isinstance(event, Asked):
                asked.append(event)
        if len(asked) >= count:
            return asked
        data = await reader.read(65536)
        if not data:
            raise ConnectionResetError
        session.receive(data)


def new_session() -> ServerSession:
    return ServerSession(DEFAULT_LIMITS)


def echoed(asked: Asked) -> bytes:
    return encode_success(asked.key, asked.request)


async def test_answers_may_come_in_any_order() -> None:
    async def backwards(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls = await next_calls(new_session(), reader, 5)
        writer.write(b"".join(echoed(call) for call in reversed(calls)))
        await reader.read()

    async with peer(backwards) as port, wire.calling(port) as connection:
        assert await asyncio.gather(*(wire.ask(connection, str(n)) for n in range(5))) == list(
            "01234"
        )


async def test_an_answer_may_come_in_any_pieces_and_without_a_client_id() -> None:
    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (call,) = await next_calls(new_session(), reader, 1)
        for byte in encode_success(CallKey(b"", call.key.call_id, 0), call.request):
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()

    async with peer(dribble) as port, wire.calling(port) as connection:
        assert await wire.ask(connection) == "hello"


async def test_a_late_answer_is_dropped_and_the_connection_lives() -> None:
    late = asyncio.Event()

    async def tardy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = new_session()
        (first,) = await next_calls(session, reader, 1)
        await late.wait()
        writer.write(echoed(first))
        (second,) = await next_calls(session, reader, 1)
        writer.write(echoed(second))
        await reader.read()

    async with peer(tardy) as port, wire.calling(port) as connection:
        with pytest.raises(errors.DeadlineExceeded, match=r"no answer to echo within 0\.05 s"):
            await wire.ask(connection, "first", seconds=0.05)
        late.set()
        assert await wire.ask(connection, "second") == "second"


@pytest.mark.parametrize("refused", [False, True])
async def test_a_call_over_a_connection_of_its_own_ends_that_connection(refused: bool) -> None:
    ended = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (call,) = await next_calls(new_session(), reader, 1)
        failed = encode_failure(call.key, STANDBY_EXCEPTION, "no", Detail.ERROR_APPLICATION)
        writer.write(failed if refused else echoed(call))
        await reader.read()
        ended.set()

    async with peer(once) as port:
        place, said = HostPort("127.0.0.1", port), wire.Echo(context="hello")
        with pytest.raises(errors.RemoteFault) if refused else nullcontext():
            await call_once(place, wire.ECHO, "echo", said, wire.Echo, deadline_seconds=20)
        async with asyncio.timeout(20):
            await ended.wait()


async def test_a_frozen_server_is_found_by_the_deadline_of_each_call() -> None:
    async def freeze(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    async with peer(freeze) as port, wire.calling(port) as connection:
        started = loop.time()
        outcomes = await asyncio.gather(
            *(wire.ask(connection, "x" * 1_000_000, seconds=0.3) for _ in range(20)),
            return_exceptions=True,
        )
        assert all(isinstance(outcome, errors.DeadlineExceeded) for outcome in outcomes)
        assert loop.time() - started < 5


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    async with wire.serving(wire.echo_protocol()) as (_, port), wire.calling(port) as connection:
        call = asyncio.create_task(wire.ask(connection))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await wire.ask(connection, "next") == "next"


async def test_more_calls_than_slots_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_wire, "MAX_CALLS_IN_FLIGHT", 2)
    async with wire.serving(wire.echo_protocol()) as (_, port), wire.calling(port) as connection:
        texts = [str(n) for n in range(20)]
        assert await asyncio.gather(*(wire.ask(connection, text) for text in texts)) == texts


async def test_who_waits_for_a_server_to_read_goes_on_when_it_reads() -> None:
    reads = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reads.wait()
        for call in await next_calls(new_session(), reader, 2):
            writer.write(echoed(call))
        await reader.read()

    async with peer(late) as port, wire.calling(port) as connection:
        large = asyncio.create_task(wire.ask(connection, "x" * LARGE, seconds=30))
        await asyncio.sleep(0)
        with pytest.raises(errors.DeadlineExceeded, match="not sent: the server takes no more"):
            await wire.ask(connection, "impatient", seconds=0.01)
        small = asyncio.create_task(wire.ask(connection, "small", seconds=30))
        await asyncio.sleep(0)
        reads.set()
        assert (len(await large), await small) == (LARGE, "small")


async def test_who_waits_for_a_server_to_read_hears_of_its_end() -> None:
    ends = asyncio.Event()

    async def deaf(_reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await ends.wait()

    async with peer(deaf) as port, wire.calling(port) as connection:
        calls = [asyncio.create_task(wire.ask(connection, "x" * LARGE, seconds=60))]
        await asyncio.sleep(0)
        calls.append(asyncio.create_task(wire.ask(connection, "small", seconds=60)))
        await asyncio.sleep(0)
        ends.set()
        async with asyncio.timeout(30):
            failures = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(failure) for failure in failures] == [errors.ConnectionLost] * 2


async def test_a_call_that_is_begun_is_a_call_like_any_other() -> None:
    bench = wire.Bench()
    bench.finish.set()
    async with (
        wire.serving(wire.echo_protocol(bench.handle)) as (_, port),
        wire.calling(port) as connection,
    ):
        assert await wire.ask(connection, "0") == "0"
        begun = [connection.begin("echo", wire.Echo(context=text)) for text in ("1", "2")]
        assert await wire.ask(connection, "3") == "3"
        told = [RpcConnection.finish(await answer, wire.Echo).context for answer in begun]
        unknown = await connection.begin("nope", wire.Echo(context=""))
        with pytest.raises(errors.RemoteFault):
            RpcConnection.finish(unknown, wire.Echo)
        connection._next_call_id = 0x7FFFFFFF
        assert [await wire.ask(connection, text) for text in "45"] == ["4", "5"]
        await connection.close()
        with pytest.raises(errors.ConnectionLost, match="echo was not sent"):
            connection.begin("echo", wire.Echo(context="6"))
    assert told == ["1", "2"]
    calls = sorted((call.call_id, call.retry_count) for call in bench.calls)
    ids = [0, 0, 1, 2, 3, 0x7FFFFFFF]
    assert calls == [(each, 0) for each in ids], "no retry, and no negative id, which is no call's"


# Connections that end.


async def test_nobody_there() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with pytest.raises(errors.ConnectFailed, match=f"127.0.0.1:{port}"):
            await RpcConnection.open("127.0.0.1", port, protocol="x", deadline_seconds=5)


async def test_somebody_who_does_not_take_connections() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        host, port = deaf.getsockname()
        async with AsyncExitStack() as stack:

            async def fill_the_backlog() -> None:
                for _ in range(10):
                    connection = await RpcConnection.open(
                        host, port, protocol="x", deadline_seconds=0.1
                    )
                    stack.push_async_callback(connection.close)

            with pytest.raises(errors.ConnectFailed, match=r"within 0\.1 s"):
                await fill_the_backlog()


@pytest.mark.parametrize("linger", [False, True], ids=["EOF", "reset"])
async def test_the_end_of_the_peer_is_noticed_at_once(linger: bool) -> None:
    die = asyncio.Event()

    async def mortal(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_calls(new_session(), reader, 1)
        await die.wait()
        if linger:
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    loop = asyncio.get_running_loop()
    async with peer(mortal) as port, wire.calling(port) as connection:
        call = asyncio.create_task(wire.ask(connection))
        watch = asyncio.create_task(connection.wait_closed())
        await asyncio.wait([watch], timeout=0.05)
        assert not watch.done()
        died = loop.time()
        die.set()
        assert isinstance(await watch, errors.ConnectionLost)
        assert loop.time() - died < 5
        with pytest.raises(errors.ConnectionLost):
            await call
        assert connection.closed
        with pytest.raises(errors.ConnectionLost, match="not sent"):
            await wire.ask(connection)


async def test_closing_ends_pending_calls() -> None:
    async def freeze(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(freeze) as port, wire.calling(port) as connection:
        call = asyncio.create_task(wire.ask(connection))
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(errors.ConnectionLost, match="closed by this side"):
            await call
        assert "closed by this side" in str(await connection.wait_closed())


# Servers that refuse, and servers that lie.


def saying(make: Callable[[Asked], bytes]) -> Speaker:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (call,) = await next_calls(new_session(), reader, 1)
        writer.write(make(call))
        await reader.read()

    return speak


async def test_an_error_answer_is_a_fault_and_the_connection_lives() -> None:
    trace = "not here\n\tat org.apache.hadoop.Foo.bar(Foo.java:1)\n"

    def refusal(call: Asked) -> bytes:
        return encode_failure(call.key, STANDBY_EXCEPTION, trace, Detail.ERROR_APPLICATION)

    async with peer(saying(refusal)) as port, wire.calling(port) as connection:
        with pytest.raises(errors.RemoteFault) as caught:
            await wire.ask(connection)
        assert (caught.value.java_class, caught.value.reason) == (STANDBY_EXCEPTION, "not here")
        assert caught.value.message == trace
        assert not connection.closed


async def test_a_fatal_answer_to_no_call_in_particular_ends_all() -> None:
    def refusal(_: Asked) -> bytes:
        return encode_failure(
            NO_KEY, VERSION_MISMATCH, "old", Detail.FATAL_VERSION_MISMATCH, fatal=True
        )

    async with peer(saying(refusal)) as port, wire.calling(port) as connection:
        with pytest.raises(errors.RemoteFault, match="old") as caught:
            await wire.ask(connection)
        assert caught.value.fatal
        assert isinstance(await connection.wait_closed(), errors.RemoteFault)


@pytest.mark.parametrize(
    "lie",
    {
        "a huge frame": lambda _: b"\x7f\xff\xff\xff",
        "no protobuf": lambda _: b"\x00\x00\x00\x02\x01\xff",
        "an answer to somebody else": lambda call: encode_success(
            CallKey(bytes(16), call.key.call_id, 0), call.request
        ),
    }.values(),
)
async def test_bytes_without_sense_end_the_connection(lie: Callable[[Asked], bytes]) -> None:
    async with peer(saying(lie)) as port, wire.calling(port) as connection:
        with pytest.raises(errors.MalformedFrame):
            await wire.ask(connection)
        assert isinstance(await connection.wait_closed(), errors.MalformedFrame)


async def test_a_response_of_another_kind_ends_only_its_call() -> None:
    def nonsense(call: Asked) -> bytes:
        return encode_success(call.key, b"")

    async with peer(saying(nonsense)) as port, wire.calling(port) as connection:
        with pytest.raises(errors.MalformedFrame, match="required"):
            await wire.ask(connection)
        assert not connection.closed


async def answer_of(data: bytes) -> Exception | wire.Echo:
    """Return what one call makes of a server that says just this and closes."""
    async with peer(saying(lambda _: data)) as port, wire.calling(port) as connection:
        try:
            return await connection.call(
                "echo", wire.Echo(context=""), wire.Echo, deadline_seconds=0.5
            )
        except (
            errors.RemoteFault,
            errors.ConnectionLost,
            errors.DeadlineExceeded,
            errors.MalformedFrame,
        ) as failure:
            return failure


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(
    lambda body: len(body).to_bytes(4, "big") + body)))  # fmt: skip
def test_any_bytes_end_in_a_value_or_a_typed_error(data: bytes) -> None:
    asyncio.run(asyncio.wait_for(answer_of(data), 30))


async def test_the_client_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_wire, "MAX_FRAME_BYTES", 1000)

    def long_answer(call: Asked) -> bytes:
        return encode_success(call.key, wire.Echo(context="x" * 2000).SerializeToString())

    async with peer(saying(long_answer)) as port, wire.calling(port) as connection:
        with pytest.raises(errors.MalformedFrame, match="the limit is 1000"):
            await wire.ask(connection)
        await wire.eventually(lambda: connection.closed)


@pytest.mark.parametrize(
    ("host", "port"), [("nn1..example", 8020), ("n" * 64, 8020), ("127.0.0.1", 1 << 20)]
)
async def test_an_address_that_cannot_be_is_one_where_nobody_is(host: str, port: int) -> None:
    # Addresses are read from ZooKeeper, too, where anything may have been written.
    with pytest.raises(errors.ConnectFailed, match=r"is no address|does not resolve: label"):
        await RpcConnection.open(host, port, protocol="any", deadline_seconds=20.0)
