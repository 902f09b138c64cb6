"""Connections whose bytes a layer of SASL protects: what comes out, and what ends them."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from ha.security.sasl.mechanism import Layer
from ha.security.sasl.message_layer import CIPHERS, DigestLayer, Keys
from hadoop.proto.data_transfer_pb2 import BlockOpResponseProto, Status
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.connection import Connection, PeerLost
from hadoop.wire.packets import OP_HEAD, VERSION, Op
from hadoop.wire.peer import Peer
from hadoop.wire.sealed import MAX_TOKEN_BYTES, Sealed
from tests.datanode.block_client import SECONDS, until

READ: Final = OP_HEAD.pack(VERSION, Op.READ_BLOCK) + bytes(200)


def layers(*, cipher: str = "") -> tuple[Layer, Layer]:
    chosen = CIPHERS[cipher] if cipher else None
    ours, theirs = (
        DigestLayer(Keys(b"s" * 16, is_server=server), chosen, 65536) for server in (True, False)
    )
    return ours, theirs


@asynccontextmanager
async def sealed(
    layer: Layer, budget: ByteBudget
) -> AsyncIterator[tuple[Sealed, Connection, socket.socket]]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        _, connection = await loop.create_connection(
            lambda: Connection(budget), *listening.getsockname()
        )
        other, _ = listening.accept()
    with other:
        other.setblocking(False)
        try:
            yield Sealed(connection, layer), connection, other
        finally:
            connection.abort()
            await until(lambda: not connection.is_open)


async def begun(peer: Peer, data: bytes, *, seconds: float) -> None:
    peer.begin_send(data)
    await peer.flushed(seconds=seconds)


def framed(tokens: list[bytes]) -> bytes:
    return b"".join(len(one).to_bytes(4, "big") + one for one in tokens)


def cut(data: bytes, sizes: random.Random) -> list[bytes]:
    parts, at = [], 0
    while at < len(data):
        size = sizes.choice((0, 1, 7, 500, 65_000, 200_000))
        parts.append(data[at : at + size])
        at += size
    return parts


@pytest.mark.parametrize("cipher", ["", "rc4", "3des"])
@pytest.mark.parametrize("seed", range(4))
async def test_what_is_sealed_comes_out_however_it_is_cut(cipher: str, seed: int) -> None:
    """Java has a token for each of its writes, which may be longer than we asked for."""
    sizes = random.Random(seed)
    data = sizes.randbytes(700_000)
    ours, theirs = layers(cipher=cipher)
    async with sealed(ours, ByteBudget(1 << 22)) as (mine, _, other):
        loop = asyncio.get_running_loop()
        raw = framed([theirs.wrap(part) for part in cut(data, sizes)])
        sending = asyncio.create_task(loop.sock_sendall(other, raw))
        found = bytearray()
        while len(found) < len(data):
            wanted = min(sizes.choice((1, 6, 3000, 65_000, 150_000)), len(data) - len(found))
            await mine.wait_for(wanted, until=loop.time() + SECONDS)
            assert len(mine.waiting) >= wanted
            found += mine.waiting[:wanted]
            mine.skip(wanted)
        await sending
        assert bytes(found) == data


async def test_what_is_written_is_cut_to_what_the_peer_takes() -> None:
    ours, theirs = layers(cipher="rc4")
    data = random.Random(1).randbytes(200_000)
    async with sealed(ours, ByteBudget(0)) as (mine, connection, other):
        mine.write(memoryview(data))
        mine.write(b"")
        mine.write(b"end")
        loop, raw = asyncio.get_running_loop(), bytearray()
        await connection.flushed(seconds=SECONDS)
        connection.close()
        while part := await loop.sock_recv(other, 1 << 16):
            raw += part
    found, lengths = b"", []
    while raw:
        lengths.append(int.from_bytes(raw[:4], "big"))
        found += theirs.unwrap(bytes(raw[4 : 4 + lengths[-1]]))
        del raw[: 4 + lengths[-1]]
    assert found == data + b"end"
    assert max(lengths) <= 65536
    assert len(lengths) == 5


def _bad_streams() -> dict[str, tuple[bytes, str]]:
    _, theirs = layers()
    first, second = theirs.wrap(b"first"), theirs.wrap(b"second")
    flipped = bytes((first[0] ^ 1, *first[1:]))
    huge = (MAX_TOKEN_BYTES + 1).to_bytes(4, "big")
    return {
        "altered": (framed([flipped]), "altered"),
        "out of order": (framed([second, first]), "not the next"),
        "left out": (framed([second]), "not the next"),
        "repeated": (framed([first, first]), "not the next"),
        "empty": (framed([b""]) + bytes(9), "not the next"),
        "too short": (framed([first[-6:]]), "altered"),
        "too long": (huge + bytes(99), "a token of"),
        "as long as can be said": (b"\xff" * 99, "a token of"),
        "cut off": (framed([first])[:-1], "closed"),
        "plain": (READ, "fits|closed"),
    }


@pytest.mark.parametrize(("raw", "why"), _bad_streams().values(), ids=_bad_streams())
async def test_a_token_that_is_not_the_next_one_ends_the_connection(raw: bytes, why: str) -> None:
    ours, _ = layers()
    async with sealed(ours, ByteBudget(1 << 20)) as (mine, connection, other):
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(other, raw)
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(PeerLost, match=why):
            await mine.wait_for(6, until=loop.time() + SECONDS)
        assert bytes(mine.waiting) in (b"", b"first")
        assert connection.is_open == (why not in ("altered", "not the next"))


@pytest.mark.parametrize(("count", "why"), [(1 << 20, "too many"), (1 << 22, "than fits")])
async def test_tokens_of_one_byte_hold_no_more_memory_than_a_limit(count: int, why: str) -> None:
    ours, theirs = layers()
    budget = ByteBudget(2 << 20)
    async with sealed(ours, budget) as (mine, _, other):
        loop = asyncio.get_running_loop()
        raw = framed([theirs.wrap(b"x") for _ in range(60_000)])
        sending = asyncio.create_task(loop.sock_sendall(other, raw))
        with pytest.raises(PeerLost, match=why):
            await mine.wait_for(count, until=loop.time() + SECONDS)
        assert budget.held <= 2 << 20
        sending.cancel()


async def test_many_short_tokens_let_other_connections_go_on() -> None:
    ours, theirs = layers()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with sealed(ours, ByteBudget(1 << 20)) as (mine, connection, other):
        loop = asyncio.get_running_loop()
        raw = framed([theirs.wrap(b"x") for _ in range(500)])
        await loop.sock_sendall(other, raw)
        await connection.wait_for(len(raw), until=loop.time() + SECONDS)
        task = asyncio.create_task(others())
        await mine.wait_for(500, until=loop.time() + SECONDS)
        task.cancel()
        assert bytes(mine.waiting) == b"x" * 500
    assert turns >= 499


@pytest.mark.parametrize("waits", [Peer.send, begun])
async def test_a_peer_that_takes_all_at_once_lets_other_connections_go_on(
    waits: Callable[..., Awaitable[None]],
) -> None:
    """The kernel of a reader has room for more than we encrypt in a turn of the loop."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ours, _ = layers(cipher="3des")
    async with sealed(ours, ByteBudget(0)) as (_, connection, _):
        peer = Peer(connection)
        peer.protect(ours)
        task = asyncio.create_task(others())
        for _ in range(100):
            await waits(peer, b"x" * 100, seconds=SECONDS)
        task.cancel()
    assert turns >= 99


async def test_messages_of_one_turn_share_a_token() -> None:
    ours, theirs = layers(cipher="3des")
    async with sealed(ours, ByteBudget(0)) as (_, connection, other):
        peer = Peer(connection)
        peer.protect(ours)
        for _ in range(20):
            await peer.send_soon(BlockOpResponseProto(status=Status.SUCCESS), seconds=SECONDS)
        peer.close()
        raw, loop = bytearray(), asyncio.get_running_loop()
        while part := await loop.sock_recv(other, 1 << 16):
            raw += part
    assert int.from_bytes(raw[:4], "big") == len(raw) - 4
    assert theirs.unwrap(bytes(raw[4:])) == b"\x02\x08\x00" * 20


async def test_empty_texts_between_others_are_passed_over() -> None:
    ours, theirs = layers()
    async with sealed(ours, ByteBudget(0)) as (mine, _, other):
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(
            other, framed([theirs.wrap(one) for one in (b"", b"ab", b"", b"c")])
        )
        await mine.wait_for(1, until=loop.time() + SECONDS)
        mine.skip(1)
        await mine.wait_for(2, until=loop.time() + SECONDS)
        assert bytes(mine.waiting) == b"bc"
