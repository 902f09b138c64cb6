"""The SASL handshake before operations, and connections whose bytes a layer protects."""

import asyncio
import base64
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from datanode.transfers.block_access import BlockAccess
from ha.security.kerberos.auth_to_local import parse_rules
from ha.security.kerberos.own import OwnKerberos, log_in
from ha.security.sasl.digest_md5 import DigestInitiator
from ha.security.sasl.mechanism import Protection
from hadoop.block_tokens import NO_TOKEN, Grant, Mode
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.handshake import MAGIC, Step, connect, initiate, is_privileged, next_step, service
from hadoop.wire.packets import Op, encode_message, encode_op
from hadoop.wire.peer import Peer, TransferLimits
from tests.datanode import block_client
from tests.datanode.block_client import SECONDS, Node, Place, until
from tests.datanode.stores import POOL, block
from tests.datanode.test_block_tokens import DATA, HOUR, NOW, OTHERS, RING, refused, token
from tests.needs import OTHER_USER

ALL: Final = tuple(Protection)


def keys(*protections: Protection, key_bits: int = 0) -> BlockAccess:
    """Return what asks for the handshake, and has the keys of a NameNode."""
    found = BlockAccess(
        POOL.pool, wanted=True, protections=protections, key_bits=key_bits, wall_ms=lambda: NOW
    )
    found.learn("nn1", RING.message())
    return found


def call_with(*protections: Protection, aes: bool = False) -> None:
    """Have the clients of this process make the handshake."""
    rules = parse_rules("DEFAULT", "hadoop", "R")
    log_in(OwnKerberos("nn/h@R", None, rules, (), (), data_wanted=protections, data_by_aes=aes))


def everything() -> hdfs.TokenProto:
    return RING.token(Grant("alice", POOL.pool, block().block_id, frozenset(Mode)), NOW)


async def prove(node: Node, shown: hdfs.TokenProto, *protections: Protection) -> Peer:
    peer = await block_client.plain(node.place.port)
    await initiate(peer, shown, protections, seconds=SECONDS)
    return peer


def header(shown: hdfs.TokenProto, length: int = len(DATA)) -> pb.ClientOperationHeaderProto:
    return block_client.header(block(), length, token=shown)


READ: Final = encode_op(
    Op.READ_BLOCK, pb.OpReadBlockProto(header=header(everything()), offset=0, len=9)
)


@pytest.mark.parametrize(
    ("chosen", "key_bits"), [*((one, 0) for one in ALL), (Protection.PRIVACY, 256)]
)
async def test_every_operation_between_all_ends_works_in_each_protection(
    tmp_path: Path, chosen: Protection, key_bits: int
) -> None:
    call_with(chosen, aes=bool(key_bits))
    await do_everything(tmp_path, lambda: keys(*ALL, key_bits=key_bits))


async def do_everything(folder: Path, access: Callable[[], BlockAccess]) -> None:
    """Have a pipeline, reads, checksums, a transfer and a move between DataNodes."""
    big = DATA * 1000
    shown = everything()
    async with (
        block_client.node(folder / "a", access=access()) as a,
        block_client.node(folder / "b", access=access()) as b,
        block_client.node(folder / "c", access=access()) as c,
        block_client.node(folder / "d", access=access()) as d,
    ):
        await block_client.write_whole([a.place, b.place], block(), big, shown)
        for one in (a, b):
            found = await block_client.read(one.place, block(), 100, 900_000, token=shown)
            assert found == big[100:900_100]
        asked = pb.OpBlockChecksumProto(header=header(shown, len(big)).baseHeader)
        sums = [
            await block_client.ask(one.place, Op.BLOCK_CHECKSUM, asked, shown) for one in (a, b)
        ]
        assert sums[0].checksumResponse == sums[1].checksumResponse
        sent = pb.OpTransferBlockProto(header=header(shown, len(big)), targets=[c.place.info])
        answer = await block_client.ask(a.place, Op.TRANSFER_BLOCK, sent, shown)
        assert answer.status == pb.Status.SUCCESS, answer.message
        moved = pb.OpReplaceBlockProto(
            header=header(shown, len(big)).baseHeader, delHint="", source=b.place.info
        )
        answer = await block_client.ask(d.place, Op.REPLACE_BLOCK, moved, shown)
        assert answer.status == pb.Status.SUCCESS, answer.message
        for one in (c, d):
            assert await block_client.read(one.place, block(), 0, 2000, token=shown) == big[:2000]


@pytest.mark.parametrize("chosen", ALL)
async def test_only_privacy_hides_blocks_from_the_network(
    tmp_path: Path, chosen: Protection
) -> None:
    call_with(chosen)
    async with (
        block_client.node(tmp_path / "a", access=keys(chosen)) as node,
        block_client.relay(node.place) as (between, passed),
    ):
        await block_client.write_whole([between], block(), DATA, everything())
        assert (DATA[:200] in passed) == (chosen is not Protection.PRIVACY)
        passed.clear()
        found = await block_client.read(between, block(), 0, 600, token=everything())
        assert found == DATA[:600]
        assert (DATA[:200] in passed) == (chosen is not Protection.PRIVACY)
        assert everything().password not in passed or chosen is not Protection.PRIVACY
        block_client.hang_up()
        await block_client.idle(node)


async def test_with_integrity_an_altered_byte_ends_the_connection(tmp_path: Path) -> None:
    call_with(Protection.INTEGRITY)
    async with (
        block_client.node(tmp_path / "a", access=keys(*ALL)) as node,
        block_client.relay(node.place, DATA[:50]) as (between, _),
    ):
        await block_client.write_whole([node.place], block(), DATA, everything())
        with pytest.raises(PeerLost, match="altered"):
            await block_client.read(between, block(), 0, 600, token=everything())
        block_client.hang_up()
        await block_client.idle(node)


async def test_several_operations_share_one_handshake(tmp_path: Path) -> None:
    call_with(Protection.PRIVACY)
    async with block_client.node(tmp_path / "a", access=keys(*ALL)) as node:
        await block_client.write_whole([node.place], block(), DATA, everything())
        peer = await block_client.connect(node.place.port, everything())
        for _ in range(3):
            found = await block_client.read(
                node.place, block(), 0, 700, peer=peer, token=everything()
            )
            assert found == DATA[:700]


async def sent(to: Place, *parts: bytes) -> bytes:
    """Send bytes, hang up our half, and return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", to.port)
    try:
        for part in parts:
            writer.write(part)
        writer.write_eof()
        async with asyncio.timeout(SECONDS):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def step(data: bytes) -> Step:
    """Return the message that an answer of the DataNode consists of."""
    length = data[0] if data[0] < 0x80 else (data[0] & 0x7F) | data[1] << 7
    body = data[1 if data[0] < 0x80 else 2 :]
    assert len(body) == length
    return Step.FromString(body)


BEGIN: Final = MAGIC + encode_message(Step(status=Step.SUCCESS))
PROTOCOL_BREAKS: Final = {
    "nothing": [],
    "an operation without a handshake": [READ],
    "half of the magic": [MAGIC[:2]],
    "another magic": [MAGIC[:3] + b"\xee", BEGIN[4:]],
    "the magic, and no more": [MAGIC],
    "a plain operation after the magic": [MAGIC, READ],
    "half a step": [BEGIN[:-1]],
    "a step of a megabyte and one": [MAGIC, b"\x81\x80\x40" + bytes(64)],
    "a length without an end": [MAGIC, b"\xff" * 9],
    "a step without a status": [MAGIC, b"\x02\x12\x00"],
    "the client gives up": [MAGIC, encode_message(Step(status=Step.ERROR, message="x" * 5000))],
}


@pytest.mark.parametrize("parts", PROTOCOL_BREAKS.values(), ids=PROTOCOL_BREAKS)
async def test_what_is_no_handshake_gets_no_answer(tmp_path: Path, parts: list[bytes]) -> None:
    async with block_client.node(tmp_path / "a", access=keys(*ALL)) as node:
        assert await sent(node.place, *parts) == b""
        await block_client.idle(node)


SAID: Final[dict[str, tuple[Callable[[bytes], bytes], str, bool]]] = {
    "directives that make no sense": (lambda _: b"\x00", "authentication failed", False),
    "an oversized response": (lambda right: right + b" " * 5000, "authentication failed", False),
    "another proof": (
        lambda right: right.replace(b"response=", b"response=0"), "authentication failed", False,
    ),
    "another user's authorization id": (
        lambda right: right + b',authzid="root"', "authentication failed", False,
    ),
    "its own authorization id, and a proof without it": (
        lambda right: right + b",authzid=" + right.partition(b"username=")[2].partition(b",")[0],
        "authentication failed", False,
    ),
    "a protection that is not offered": (
        lambda right: right.replace(b"qop=auth-int", b"qop=auth"), "authentication failed", False,
    ),
    "a user that is no base64": (
        lambda right: right.replace(b'username="', b'username="*'), "no block token", True,
    ),
    "a user that is no token": (
        lambda right: right.replace(b'username="', b'username="////'), "makes no sense", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "said", "of_token"), SAID.values(), ids=SAID)
async def test_a_proof_that_is_wrong_is_answered_once(
    tmp_path: Path, spoil: Callable[[bytes], bytes], said: str, *, of_token: bool
) -> None:
    async with block_client.node(tmp_path / "a", access=keys(Protection.INTEGRITY)) as node:
        peer = await block_client.connect(node.place.port)
        await peer.send(BEGIN, seconds=SECONDS)
        shown = everything()
        user, password = map(base64.b64encode, (shown.identifier, shown.password))
        right = DigestInitiator(service(ALL[1:2]), user.decode(), password)
        answer = right.step((await next_step(peer, seconds=SECONDS)).payload)
        spoiled = spoil(answer.token or b"")
        await peer.send_message(Step(status=Step.SUCCESS, payload=spoiled), seconds=SECONDS)
        refusal = await peer.read_message(Step, seconds=SECONDS)
        assert (refusal.status, refusal.accessTokenError) == (Step.ERROR, of_token)
        assert said in refusal.message
        assert not refusal.payload
        with pytest.raises(PeerLost):
            await peer.read(1, seconds=SECONDS)


async def test_a_first_step_with_a_token_is_answered_once(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", access=keys(*ALL)) as node:
        early = MAGIC + encode_message(Step(status=Step.SUCCESS, payload=b'username="x"'))
        assert step(await sent(node.place, early)).message == "authentication failed"


def altered(shown: hdfs.TokenProto) -> hdfs.TokenProto:
    return hdfs.TokenProto(
        identifier=shown.identifier, password=b"x" * len(shown.password), kind="", service=""
    )


BAD_TOKENS: Final = {
    "none": (NO_TOKEN, "authentication failed"),
    "of a NameNode that is not ours": (
        OTHERS.token(Grant("eve", POOL.pool, 0, frozenset(Mode)), NOW), "not known here",
    ),
    "with another password": (altered(everything()), "authentication failed"),
    "that has ended": (
        RING.token(Grant("alice", POOL.pool, 0, frozenset(Mode)), NOW - HOUR - 1), "has ended",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("shown", "said"), BAD_TOKENS.values(), ids=BAD_TOKENS)
async def test_a_token_that_proves_nothing_gets_nobody_in(
    tmp_path: Path, shown: hdfs.TokenProto, said: str
) -> None:
    async with block_client.node(tmp_path / "a", access=keys(*ALL)) as node:
        before = refused("handshake")
        with pytest.raises(MalformedTransfer, match=f"refuses the handshake: .*{said}"):
            await prove(node, shown, *ALL)
        await block_client.idle(node)
        assert refused("handshake") == before + 1


async def test_a_handshake_does_not_stand_for_the_token_of_an_operation(tmp_path: Path) -> None:
    call_with(Protection.INTEGRITY)
    async with block_client.node(tmp_path / "a", access=keys(*ALL)) as node:
        await block_client.write_whole([node.place], block(), DATA, everything())
        peer = await prove(node, token(Mode.READ, block(77)), *ALL)
        asked = pb.OpReadBlockProto(header=header(token(Mode.READ, block(77))), offset=0, len=9)
        await peer.send(encode_op(Op.READ_BLOCK, asked), seconds=SECONDS)
        answer = await peer.read_message(pb.BlockOpResponseProto, seconds=SECONDS)
        assert answer.status == pb.Status.ERROR_ACCESS_TOKEN


async def test_a_handshake_that_is_not_asked_for_is_refused(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", access=keys()) as node:
        with pytest.raises(PeerLost):
            await prove(node, everything(), *ALL)


async def test_a_caller_that_stops_in_its_handshake_is_hung_up_on(tmp_path: Path) -> None:
    limits = TransferLimits(operation_seconds=0.2)
    async with block_client.node(tmp_path / "a", limits, access=keys(*ALL)) as node:
        peers = [await block_client.connect(node.place.port) for _ in range(3)]
        await peers[1].send(MAGIC, seconds=SECONDS)
        await peers[2].send(BEGIN, seconds=SECONDS)
        await next_step(peers[2], seconds=SECONDS)
        for peer in peers:
            with pytest.raises(PeerLost, match="closed"):
                await peer.read(1, seconds=SECONDS)
        await block_client.idle(node)


async def test_half_handshakes_give_way_to_a_writer(tmp_path: Path) -> None:
    limits = TransferLimits(operation_seconds=SECONDS, packet_seconds=SECONDS, max_connections=2)
    async with block_client.node(tmp_path / "a", limits, access=keys(*ALL)) as node:
        halves = [await block_client.plain(node.place.port) for _ in range(2)]
        for half in halves:
            await half.send(BEGIN, seconds=SECONDS)
            await next_step(half, seconds=SECONDS)
        call_with(Protection.PRIVACY)
        await block_client.write_whole([node.place], block(), DATA, everything())
        with pytest.raises(PeerLost, match="has closed"):
            await halves[0].read(1, seconds=SECONDS)


async def test_a_datanode_that_proves_nothing_gets_no_operation() -> None:
    """It has no keys: it can only make the proof up, or ask for no protection."""
    heard = list[bytes]()

    async def pose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(BEGIN))
        challenge = b'realm="0",nonce="x",qop="auth,auth-int",charset=utf-8,algorithm=md5-sess'
        writer.write(encode_message(Step(status=Step.SUCCESS, payload=challenge)))
        await reader.read(4096)
        writer.write(encode_message(Step(status=Step.SUCCESS, payload=b"rspauth=" + b"0" * 32)))
        heard.append(await reader.read())
        writer.close()

    call_with(Protection.INTEGRITY)
    async with await asyncio.start_server(pose, "127.0.0.1", 0) as server:
        to = Place(server.sockets[0].getsockname()[1]).info.id
        with pytest.raises(MalformedTransfer, match="does not know the password"):
            await connect(to, everything(), key=None, seconds=SECONDS)
        await until(lambda: bool(heard))
    assert heard == [b""]


def test_ports_below_1024_are_privileged() -> None:
    assert [is_privileged(port) for port in (1, 1023, 1024, 9866)] == [True, True, False, False]


@OTHER_USER.mark
async def test_on_a_port_that_only_root_can_have_there_is_no_handshake(tmp_path: Path) -> None:
    call_with(Protection.PRIVACY)
    port = next(port for port in range(1023, 600, -1) if not socket_answers(port))
    async with block_client.node(tmp_path / "a", access=keys(*ALL), port=port) as node:
        await block_client.write_whole([node.place], block(), DATA, everything())
        assert await block_client.read(node.place, block(), 0, 9, token=everything()) == DATA[:9]


def socket_answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
