"""Connections on real sockets: what comes is read, and no peer makes us hold more than a limit."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire import connection as wire_connection
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.peer import Peer
from tests.datanode.block_client import SECONDS, until

BYTES = bytes(range(251)) * 40_000
"""10 MB: more than the kernel keeps."""


@asynccontextmanager
async def connected(
    budget: ByteBudget,
) -> AsyncIterator[tuple[wire_connection.Connection, socket.socket]]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        _, connection = await loop.create_connection(
            lambda: wire_connection.Connection(budget), *listening.getsockname()
        )
        other, _ = listening.accept()
    with other:
        other.setblocking(False)
        try:
            yield connection, other
        finally:
            connection.abort()
            await until(lambda: not connection.is_open)


def has(connection: wire_connection.Connection, count: int) -> bool:
    return len(connection.waiting) == count


def deadline(seconds: float = SECONDS) -> float:
    return asyncio.get_running_loop().time() + seconds


async def read(connection: wire_connection.Connection, count: int, *, piece: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        await connection.wait_for(min(piece, count - len(found)), until=deadline())
        found += connection.waiting
        connection.skip(len(connection.waiting))
    return bytes(found)


@pytest.mark.parametrize("limit", [0, 100_000, 1 << 24])
@pytest.mark.parametrize("piece", [1, 5000, wire_connection.PACKET_BYTES])
async def test_what_is_sent_comes(limit: int, piece: int) -> None:
    budget = ByteBudget(limit)
    loop = asyncio.get_running_loop()
    async with connected(budget) as (connection, other):
        sending = asyncio.create_task(loop.sock_sendall(other, BYTES))
        assert await read(connection, len(BYTES), piece=piece) == BYTES
        await sending
    await until(lambda: budget.held == 0)


async def test_who_sends_much_gets_a_large_buffer_while_there_is_memory() -> None:
    budget = ByteBudget(2 * wire_connection.MANY_PACKETS_BYTES)
    loop = asyncio.get_running_loop()
    async with connected(budget) as (first, one), connected(budget) as (second, other):
        sending = [asyncio.create_task(loop.sock_sendall(each, BYTES)) for each in (one, other)]
        for connection, most in (
            (first, wire_connection.MANY_PACKETS_BYTES),
            (second, wire_connection.PACKET_BYTES),
        ):
            for _ in range(2):
                await connection.wait_for(wire_connection.PACKET_BYTES, until=deadline())
                connection.skip(len(connection.waiting))
            await connection.wait_for(1, until=deadline())
            await until(partial(has, connection, most))
            assert budget.held == wire_connection.MANY_PACKETS_BYTES - wire_connection.PACKET_BYTES
        await second.wait_for(wire_connection.MANY_PACKETS_BYTES, until=deadline())  # it must
        for task in sending:
            task.cancel()
        await asyncio.wait(sending)
    await until(lambda: budget.held == 0)


async def test_a_long_piece_waits_for_memory_and_gives_it_back() -> None:
    long = 3 * wire_connection.MANY_PACKETS_BYTES
    budget = ByteBudget(long)
    loop = asyncio.get_running_loop()
    async with connected(budget) as (connection, other):
        await budget.take(1 << 20)
        sending = asyncio.create_task(loop.sock_sendall(other, BYTES[: long + 1]))
        with pytest.raises(wire_connection.PeerLost, match="has sent nothing for too long"):
            await connection.wait_for(long, until=deadline(0.05))
        budget.give(1 << 20)
        await connection.wait_for(long, until=deadline())
        assert bytes(connection.waiting[:long]) == BYTES[:long]
        connection.skip(long)
        await connection.wait_for(1, until=deadline())
        await sending
        with pytest.raises(wire_connection.PeerLost, match="has sent nothing"):
            await connection.wait_for(2, until=deadline(0.05))
        assert budget.held == 0
        with pytest.raises(wire_connection.PeerLost, match="sends more at once than fits"):
            await connection.wait_for(2 * long, until=deadline())


async def test_who_stood_still_does_not_blame_the_other_side() -> None:
    async with connected(ByteBudget(0)) as (connection, other):
        until = deadline(0.01)
        waiting = asyncio.create_task(connection.wait_for(3, until=until))
        await asyncio.sleep(0)
        other.send(b"abc")
        while deadline(0) <= until:
            pass  # as a disk does that is too busy
        await waiting
        assert bytes(connection.waiting) == b"abc"


async def test_a_sender_waits_for_the_kernel_and_not_for_ever() -> None:
    async with connected(ByteBudget(0)) as (connection, other):
        connection.write(BYTES)
        with pytest.raises(wire_connection.PeerLost, match=r"has taken nothing for 0.05 s"):
            await connection.flushed(seconds=0.05)
        loop = asyncio.get_running_loop()
        taken = bytearray()
        while len(taken) < len(BYTES):
            taken += await loop.sock_recv(other, 1 << 20)
        assert taken == BYTES
        await connection.flushed(seconds=SECONDS)
        connection.close()
        with pytest.raises(wire_connection.PeerLost, match="has closed"):
            await connection.flushed(seconds=SECONDS)


async def test_what_came_before_the_end_is_read_then_the_end_is_told() -> None:
    async with connected(ByteBudget(0)) as (connection, other):
        other.send(b"abc")
        other.shutdown(socket.SHUT_WR)
        await connection.wait_for(3, until=deadline())
        assert bytes(connection.waiting) == b"abc"
        with pytest.raises(wire_connection.PeerLost, match="has closed the connection"):
            await connection.wait_for(4, until=deadline())
        connection.write(b"still")  # it may be waiting for an answer
        await connection.flushed(seconds=SECONDS)
        assert await asyncio.get_running_loop().sock_recv(other, 10) == b"still"


async def test_the_length_of_a_message_has_at_most_five_bytes() -> None:
    async with connected(ByteBudget(0)) as (connection, other):
        peer = Peer(connection)
        other.send(bytes.fromhex("8080808000"))
        empty = await peer.read_message(pb.BlockChecksumOptionsProto, seconds=SECONDS)
        assert empty == pb.BlockChecksumOptionsProto()
        other.send(bytes.fromhex("8080808080"))
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(MalformedTransfer, match="more than 5 bytes"):
            await peer.read_message(pb.BlockChecksumOptionsProto, seconds=SECONDS)
