"""Bytes over gRPC that no client of ours sends: refused by kind, and the node serves on."""

import asyncio
from pathlib import Path

import grpc
import grpc.aio
import pytest
from prometheus_client import REGISTRY

from journal.node.faces.grpc_room import OpenStream, OpenStreams, ReadingRoom
from journal.proto import journal_pb2 as pb
from journal.refusals import REFUSAL_KEY
from tests.campaigns.soak.fuzz_journal_doors import http2_call
from tests.journal.node.half_call import HalfCall
from tests.journal.node.process import DEADLINE_SECONDS, node_and_client

SERVICE = "/nnha.journal.JournalNode/"
NO_MESSAGE = b"\xff\xff"


async def said_back(port: int, said: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    writer.write_eof()
    async with asyncio.timeout(DEADLINE_SECONDS):
        answer = await reader.read()
    writer.close()
    return answer


PATHS = {
    "of no name in UTF-8": SERVICE.encode() + b"Get\x80Status",
    "of another service": b"/grpc.health.v1.Health/Check",
    "of no call": b"\xc0",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
async def test_a_path_ends_no_server(path: bytes, tmp_path: Path) -> None:
    """Survive these paths: the first one ended grpcio's server, for every writer."""
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        for _ in range(3):
            await said_back(daemon.rpc_port, http2_call(path))
        assert (await client.status()).is_formatted
    async with node_and_client(tmp_path) as (_, client):
        assert (await client.status()).is_formatted, "a writer that comes later is served, too"


async def test_what_is_no_message_is_refused_by_kind(tmp_path: Path) -> None:
    async with (
        node_and_client(tmp_path) as (daemon, client),
        grpc.aio.insecure_channel(f"127.0.0.1:{daemon.rpc_port}") as channel,
    ):
        await client.format()
        for name in ("NewEpoch", "GetStatus"):
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await channel.unary_unary(SERVICE + name)(NO_MESSAGE, timeout=DEADLINE_SECONDS)
            refused(failed.value, name)
        stream = channel.stream_stream(SERVICE + "Write")(iter([NO_MESSAGE]), timeout=30)
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await stream.read()
        refused(failed.value, "Write")


def refused(failed: grpc.aio.AioRpcError, name: str) -> None:
    assert failed.code() is grpc.StatusCode.INVALID_ARGUMENT
    (said,) = (value for key, value in failed.trailing_metadata() if key == REFUSAL_KEY)
    told = pb.Refusal.FromString(said)
    assert told.kind == pb.Refusal.BAD_REQUEST
    assert told.message == f"the request is no message of {name}"


async def test_a_call_of_an_unknown_name_is_refused_at_once(tmp_path: Path) -> None:
    """Refuse names that cannot be decoded, too: those waited until their caller gave up."""
    async with (
        node_and_client(tmp_path) as (daemon, _),
        grpc.aio.insecure_channel(f"127.0.0.1:{daemon.rpc_port}") as channel,
    ):
        for path in (f"{SERVICE}NoSuchCall", "/grpc.health.v1.Health/Check", "/x\udc80y"):
            call = channel.unary_unary(path.encode("utf-8", "surrogateescape"))
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call(b"", timeout=DEADLINE_SECONDS)
            assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_request_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, read_request_seconds=0.1) as (daemon, client):
        async with await HalfCall.begun(daemon.rpc_port, f"{SERVICE}NewEpoch", 10_000) as half:
            await half.push(5_000)
            async with asyncio.timeout(DEADLINE_SECONDS):
                await half.closed.wait()
        await client.format()
    met = REGISTRY.get_sample_value("nnha_jn_grpc_limits_met_total", {"limit": "half_request"})
    assert met is not None
    assert met >= 1


async def test_callers_wait_for_room_in_the_order_in_which_they_came() -> None:
    room = ReadingRoom(most=3, most_of_one=2)
    await room.enter("a")
    await room.enter("a")
    came: list[str] = []

    async def enter(who: str, name: str) -> None:
        await room.enter(who)
        came.append(name)

    third = asyncio.create_task(enter("a", "a3"))
    await asyncio.sleep(0)
    await enter("b", "b1")
    fourth, second = (asyncio.create_task(enter(*one)) for one in (("a", "a4"), ("b", "b2")))
    await asyncio.sleep(0)
    third.cancel()
    with pytest.raises(asyncio.CancelledError):
        await third
    assert came == ["b1"]
    room.leave("a")
    await fourth
    room.leave("b")
    await second
    assert came == ["b1", "a4", "b2"]


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_a_turn_that_comes_to_who_has_just_gone_is_given_on(leaves_first: bool) -> None:
    room = ReadingRoom(most=1, most_of_one=1)
    await room.enter("a")
    gone = asyncio.create_task(room.enter("b"))
    await asyncio.sleep(0)
    if leaves_first:
        room.leave("a")
    gone.cancel()
    if not leaves_first:
        room.leave("a")
    with pytest.raises(asyncio.CancelledError):
        await gone
    async with asyncio.timeout(DEADLINE_SECONDS):
        await room.enter("c")


def test_the_oldest_stream_gives_way() -> None:
    ended: list[str] = []
    streams = OpenStreams(most=3, most_of_one=2)

    def add(caller: str, name: str, *, unlimited: bool = False) -> None:
        streams.add(OpenStream(caller, lambda _: ended.append(name)), unlimited=unlimited)

    for name in ("a1", "a2", "a3"):
        add("a", name)
    assert ended == ["a1"]
    add("b", "b1")
    add("b", "b2")
    assert ended == ["a1", "a2"], "of all the first of whoever has the most"
    add("b", "b3", unlimited=True)
    assert ended == ["a1", "a2", "b1"]
