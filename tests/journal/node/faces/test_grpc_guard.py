"""Bytes over gRPC that no client of ours sends: refused by kind, and the node serves on."""

import asyncio
from pathlib import Path

import grpc
import grpc.aio
import pytest

from journal.proto import journal_pb2 as pb
from journal.refusals import REFUSAL_KEY
from tests.campaigns.soak.fuzz_journal_doors import http2_call
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
    """The first of these ended grpcio's server, for every writer."""
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
