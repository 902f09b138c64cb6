"""Connections that are encrypted by keys of the NameNode, without Kerberos or with it."""

import asyncio
import base64
from pathlib import Path
from typing import Final

import pytest

from datanode.transfers.block_access import BlockAccess
from ha.security.sasl.digest_md5 import DigestInitiator
from ha.security.sasl.mechanism import Protection
from hadoop import block_tokens
from hadoop.block_tokens import NO_TOKEN
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire import handshake
from hadoop.wire.errors import MalformedTransfer, UnknownKey
from hadoop.wire.handshake import Step
from hadoop.wire.packets import encode_message
from tests.datanode import block_client
from tests.datanode.block_client import SECONDS, Place, until
from tests.datanode.stores import POOL, block
from tests.datanode.test_block_tokens import DATA, HOUR, NOW, OTHERS, RING, refused
from tests.datanode.test_handshake import (
    ALL,
    BEGIN,
    PROTOCOL_BREAKS,
    READ,
    call_with,
    do_everything,
    everything,
    sent,
    socket_answers,
)
from tests.log_lines import captured
from tests.needs import OTHER_USER

NONCE: Final = bytes(range(1, 9))


def encrypting(algorithm: str = "", *, key_bits: int = 0, now_ms: int = NOW) -> BlockAccess:
    """Return what asks for encrypted connections, and has the keys of a NameNode."""
    found = BlockAccess(
        POOL.pool, wanted=True, algorithm=algorithm, key_bits=key_bits, wall_ms=lambda: now_ms
    )
    found.learn("nn1", RING.message())
    return found


def data_key(algorithm: str = "", pool: str = POOL.pool) -> hdfs.DataEncryptionKeyProto:
    return RING.data_key(pool, NONCE, NOW, algorithm)


@pytest.mark.parametrize(("algorithm", "key_bits"), [("", 0), ("rc4", 0), ("3des", 0), ("", 256)])
@pytest.mark.parametrize("kerberos", [False, True])
async def test_every_operation_between_all_ends_works(
    tmp_path: Path, algorithm: str, key_bits: int, *, kerberos: bool
) -> None:
    if kerberos:
        call_with(Protection.AUTHENTICATION)
    block_client.encrypt_by(data_key(algorithm))
    await do_everything(tmp_path, lambda: encrypting(algorithm, key_bits=key_bits))


@pytest.mark.parametrize("key_bits", [0, 128])
async def test_the_network_sees_no_byte_of_a_block_between_any_two(
    tmp_path: Path, key_bits: int
) -> None:
    block_client.encrypt_by(data_key())
    async with (
        block_client.node(tmp_path / "a", access=encrypting(key_bits=key_bits)) as one,
        block_client.node(tmp_path / "b", access=encrypting(key_bits=key_bits)) as other,
        block_client.relay(one.place) as (first, passed),
        block_client.relay(other.place) as (second, passed_on),
    ):
        await block_client.write_whole([first, second], block(), DATA, everything())
        found = await block_client.read(first, block(), 0, 600, token=everything())
        assert found == DATA[:600]
        for seen in (passed, passed_on):
            assert len(seen) > len(DATA)
            assert DATA[:100] not in seen
            assert everything().password not in seen
        block_client.hang_up()
        await block_client.idle(one)


@pytest.mark.parametrize(("algorithm", "size"), [("3des", 34), ("rc4", 28)])
async def test_the_caller_takes_the_cipher_that_its_key_names(
    tmp_path: Path, algorithm: str, size: int
) -> None:
    """A text of 8 bytes gets a length, a signature and a number; 3DES fills up its blocks."""
    block_client.encrypt_by(data_key(algorithm))
    async with (
        block_client.node(tmp_path / "a", access=encrypting()) as node,
        block_client.relay(node.place) as (between, passed),
    ):
        peer = await block_client.connect(between.port)
        passed.clear()
        await peer.send(READ[:8], seconds=SECONDS)
        await until(lambda: len(passed) >= 4)
        length = int.from_bytes(passed[:4])
        await until(lambda: len(passed) == 4 + length)
        assert len(passed) == size
        block_client.hang_up()
        await block_client.idle(node)


def test_a_cipher_that_is_not_known_is_none() -> None:
    assert handshake.service(ALL, "des").ciphers == []
    assert handshake.service(ALL).ciphers == ["3des", "rc4"]


@pytest.mark.parametrize("parts", PROTOCOL_BREAKS.values(), ids=PROTOCOL_BREAKS)
async def test_what_is_no_handshake_gets_no_answer(tmp_path: Path, parts: list[bytes]) -> None:
    async with block_client.node(tmp_path / "a", access=encrypting()) as node:
        with captured("datanode.operation_failed") as lines:
            assert await sent(node.place, *parts) == b""
            await block_client.idle(node)
        plain = "without the handshake that dfs.encrypt.data.transfer asks for"
        begun = b"".join(parts)[:4]
        is_plain = len(begun) == 4 and begun != handshake.MAGIC
        assert is_plain == any(plain in str(line["why"]) for line in lines)


USERS: Final = {
    "of a NameNode that is not ours": (
        handshake.data_user(OTHERS.data_key(POOL.pool, NONCE, NOW, "")), Step.ERROR_UNKNOWN_KEY,
        "key 5000, which is not known here",
    ),
    "of another pool": (handshake.data_user(data_key(pool="BP-9")), Step.ERROR, "none of this"),
    "a block token": (base64.b64encode(everything().identifier).decode(), Step.ERROR, "names no"),
    "with another secret": (handshake.data_user(data_key()), Step.ERROR, "authentication failed"),
}  # fmt: skip


@pytest.mark.parametrize(("user", "status", "said"), USERS.values(), ids=USERS)
async def test_what_proves_nothing_is_answered_once(
    tmp_path: Path, user: str, status: int, said: str
) -> None:
    async with block_client.node(tmp_path / "a", access=encrypting()) as node:
        before = refused("handshake")
        peer = await block_client.plain(node.place.port)
        await peer.send(BEGIN, seconds=SECONDS)
        initiator = DigestInitiator(handshake.service((Protection.PRIVACY,)), user, b"secret")
        step = await handshake.next_step(peer, seconds=SECONDS)
        answer = Step(status=Step.SUCCESS, payload=initiator.step(step.payload).token)
        await peer.send_message(answer, seconds=SECONDS)
        refusal = await peer.read_message(Step, seconds=SECONDS)
        assert refusal.status == status
        assert said in refusal.message
        await block_client.idle(node)
        assert refused("handshake") == before + 1


@pytest.mark.parametrize("protection", [Protection.AUTHENTICATION, Protection.INTEGRITY])
async def test_less_than_privacy_is_not_offered(tmp_path: Path, protection: Protection) -> None:
    async with block_client.node(tmp_path / "a", access=encrypting()) as node:
        peer = await block_client.plain(node.place.port)
        with pytest.raises(MalformedTransfer, match="No common protection layer"):
            await handshake.initiate(peer, everything(), (protection,), seconds=SECONDS)


async def test_a_key_whose_block_key_has_ended_is_not_known(tmp_path: Path) -> None:
    block_client.encrypt_by(data_key())
    late = encrypting(now_ms=RING.current.expiry_ms)
    async with block_client.node(tmp_path / "a", access=late) as node:
        await block_client.connect(node.place.port)
    later = encrypting(now_ms=RING.current.expiry_ms + 1)
    async with block_client.node(tmp_path / "b", access=later) as node:
        with pytest.raises(UnknownKey, match=r"does not know our key: .* key 5, which"):
            await block_client.connect(node.place.port)


async def test_a_datanode_goes_on_by_its_newest_key(tmp_path: Path) -> None:
    """Its first has ended everywhere; a client's key of before goes as long as its block key."""
    later = NOW + 2 * HOUR
    rolled = block_tokens.rolled(RING, later, lambda count: b"r" * count)
    both = [encrypting(now_ms=later) for _ in "ab"]
    for access in both:
        access.learn("nn1", rolled.message())
    block_client.encrypt_by(data_key())
    async with (
        block_client.node(tmp_path / "a", access=both[0]) as one,
        block_client.node(tmp_path / "b", access=both[1]) as other,
    ):
        grant = block_tokens.Grant(
            "alice", POOL.pool, block().block_id, frozenset(block_tokens.Mode)
        )
        shown = rolled.token(grant, later)
        await block_client.write_whole([one.place, other.place], block(), DATA, shown)


async def test_without_keys_a_datanode_lets_no_one_in_and_sends_nothing(tmp_path: Path) -> None:
    empty = BlockAccess(POOL.pool, wanted=True, algorithm="", wall_ms=lambda: NOW)
    async with block_client.node(tmp_path / "a", access=empty) as node:
        to = node.place.info.id
        with pytest.raises(UnknownKey, match="no NameNode has sent the keys"):
            await empty.connect(to, NO_TOKEN, seconds=SECONDS)
        block_client.encrypt_by(data_key())
        with pytest.raises(UnknownKey, match="not known here"):
            await block_client.connect(node.place.port)


async def test_a_pipeline_names_the_datanode_that_does_not_encrypt(tmp_path: Path) -> None:
    """Nothing of the block is sent to it in the clear."""
    block_client.encrypt_by(data_key())
    plain = BlockAccess(POOL.pool, wanted=True, wall_ms=lambda: NOW)
    plain.learn("nn1", RING.message())
    async with (
        block_client.node(tmp_path / "a", access=encrypting()) as one,
        block_client.node(tmp_path / "b", access=plain) as other,
    ):
        places = [one.place, other.place]
        writing = await block_client.begin(places, block(), token=everything())
        assert writing.set_up.status == pb.Status.ERROR
        assert writing.set_up.firstBadLink == other.place.address
        assert len(other.store) == 0


async def test_a_datanode_that_has_not_the_secret_gets_no_operation() -> None:
    heard = list[bytes]()

    async def pose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(BEGIN))
        challenge = b'realm="0",nonce="x",qop="auth-conf",charset=utf-8,algorithm=md5-sess'
        challenge += b',cipher="3des"'
        writer.write(encode_message(Step(status=Step.SUCCESS, payload=challenge)))
        await reader.read(4096)
        writer.write(encode_message(Step(status=Step.SUCCESS, payload=b"rspauth=" + b"0" * 32)))
        heard.append(await reader.read())
        writer.close()

    block_client.encrypt_by(data_key())
    async with await asyncio.start_server(pose, "127.0.0.1", 0) as server:
        place = Place(server.sockets[0].getsockname()[1])
        with pytest.raises(MalformedTransfer, match="does not know the password"):
            await block_client.connect(place.port)
        await until(lambda: bool(heard))
    assert heard == [b""]


@OTHER_USER.mark
async def test_on_a_port_that_only_root_can_have_it_is_the_same(tmp_path: Path) -> None:
    block_client.encrypt_by(data_key())
    port = next(port for port in range(1023, 600, -1) if not socket_answers(port))
    async with block_client.node(tmp_path / "a", access=encrypting(), port=port) as node:
        await block_client.write_whole([node.place], block(), DATA, everything())
        assert await sent(node.place, READ) == b""
