"""Block tokens at a DataNode: which operation asks for which, and what a refusal leaves behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from google.protobuf.message import Message
from prometheus_client import REGISTRY

from datanode.transfers.block_access import BlockAccess
from datanode.transfers.transfer import Targets, push
from hadoop import block_tokens
from hadoop.block_tokens import NO_KEYS, NO_TOKEN, Grant, Mode, TokenRefused
from hadoop.blocks import Block
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import extended
from hadoop.wire.connection import PeerLost
from hadoop.wire.packets import Op, encode_op
from hadoop.wire.peer import Peer
from tests.datanode import block_client
from tests.datanode.block_client import LIMITS, Place
from tests.datanode.stores import POOL, block

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
DATA: Final = bytes(range(251)) * 4
RING: Final = block_tokens.first_ring(5, NOW, HOUR, HOUR, lambda count: b"s" * count)
OTHERS: Final = block_tokens.first_ring(5000, NOW, HOUR, HOUR, lambda count: b"o" * count)


def access(*, wanted: bool = True, needed: str = "") -> BlockAccess:
    return BlockAccess(POOL.pool, wanted=wanted, needed=needed, wall_ms=lambda: NOW)


def asked() -> BlockAccess:
    """Return one that a NameNode has sent its keys."""
    found = access()
    found.learn("nn1", RING.message())
    return found


def token(mode: Mode, of: Block, **names: tuple[str, ...]) -> hdfs.TokenProto:
    return RING.token(Grant("alice", POOL.pool, of.block_id, frozenset({mode}), **names), NOW)


def base(of: Block, shown: hdfs.TokenProto) -> pb.BaseHeaderProto:
    return pb.BaseHeaderProto(block=extended(of, POOL.pool, len(DATA)), token=shown)


def client(of: Block, shown: hdfs.TokenProto) -> pb.ClientOperationHeaderProto:
    return pb.ClientOperationHeaderProto(baseHeader=base(of, shown), clientName="test")


def written(shown: hdfs.TokenProto, to: Place) -> Message:
    """Return a request that begins a new block."""
    return pb.OpWriteBlockProto(
        header=client(block(9), shown), stage=pb.OpWriteBlockProto.PIPELINE_SETUP_CREATE,
        pipelineSize=1, minBytesRcvd=0, maxBytesRcvd=0, latestGenerationStamp=0,
        requestedChecksum=pb.ChecksumProto(type=hdfs.CHECKSUM_CRC32C, bytesPerChecksum=512),
    )  # fmt: skip


def appended(shown: hdfs.TokenProto, to: Place) -> Message:
    """Return a request that opens a finalized replica under a stamp that is made up."""
    message = written(shown, to)
    assert isinstance(message, pb.OpWriteBlockProto)
    message.header.CopyFrom(client(block(), shown))
    message.stage = pb.OpWriteBlockProto.PIPELINE_SETUP_APPEND
    message.latestGenerationStamp, message.minBytesRcvd = 1777, len(DATA)
    return message


OPERATIONS: Final[
    dict[str, tuple[Op, Mode, int, Callable[[hdfs.TokenProto, Place], Message]]]
] = {
    "read": (Op.READ_BLOCK, Mode.READ, 0, lambda shown, _: pb.OpReadBlockProto(
        header=client(block(), shown), offset=0, len=9)),
    "checksum": (Op.BLOCK_CHECKSUM, Mode.READ, 0, lambda shown, _: pb.OpBlockChecksumProto(
        header=base(block(), shown))),
    "write": (Op.WRITE_BLOCK, Mode.WRITE, 9, written),
    "append": (Op.WRITE_BLOCK, Mode.WRITE, 0, appended),
    "transfer": (Op.TRANSFER_BLOCK, Mode.COPY, 0, lambda shown, to: pb.OpTransferBlockProto(
        header=client(block(), shown), targets=[to.info])),
    "copy": (Op.COPY_BLOCK, Mode.COPY, 0, lambda shown, _: pb.OpCopyBlockProto(
        header=base(block(), shown))),
    "replace": (Op.REPLACE_BLOCK, Mode.REPLACE, 0, lambda shown, to: pb.OpReplaceBlockProto(
        header=base(block(), shown), delHint="", source=to.info)),
}  # fmt: skip


def refused(mode: str) -> float:
    name = "nnha_datanode_tokens_refused_total"
    return REGISTRY.get_sample_value(name, {"mode": mode.lower()}) or 0.0


@pytest.mark.parametrize(("op", "mode", "of", "made"), OPERATIONS.values(), ids=OPERATIONS)
async def test_every_operation_asks_for_its_token(
    tmp_path: Path,
    op: Op,
    mode: Mode,
    of: int,
    made: Callable[[hdfs.TokenProto, Place], Message],
) -> None:
    async with block_client.node(tmp_path / "a", access=(keys := access(wanted=False))) as node:
        await block_client.write_whole([node.place], block(), DATA)
        keys.learn("nn1", RING.message())
        before, kept = refused(mode), [str(one) for one in node.store]
        others = [one for one in Mode if one is not mode]
        wrong = [NO_TOKEN, token(mode, block(77)), *(token(one, block(of)) for one in others)]
        for shown in wrong:
            answer = await block_client.ask(node.place, op, made(shown, node.place))
            assert answer.status == pb.Status.ERROR_ACCESS_TOKEN, shown
            assert POOL.pool not in answer.message
        assert refused(mode) == before + len(wrong)
        assert [str(one) for one in node.store] == kept
        right = made(token(mode, block(of)), node.place)
        answer = await block_client.ask(node.place, op, right)
        assert answer.status != pb.Status.ERROR_ACCESS_TOKEN


async def test_a_new_block_goes_only_to_storages_that_its_token_names(tmp_path: Path) -> None:
    async with block_client.node(tmp_path / "a", access=asked()) as node:
        shown = token(Mode.WRITE, block(9), storage_types=("SSD",))
        answer = await block_client.ask(node.place, Op.WRITE_BLOCK, written(shown, node.place))
        assert answer.status == pb.Status.ERROR_ACCESS_TOKEN
        assert "storage types" in answer.message


async def test_a_copy_from_another_datanode_needs_a_token_and_gets_no_answer(
    tmp_path: Path,
) -> None:
    async with (
        block_client.node(tmp_path / "a", access=(keys := access(wanted=False))) as source,
        block_client.node(tmp_path / "b", access=asked()) as target,
    ):
        await block_client.write_whole([source.place], block(), DATA)
        targets = Targets([target.place.info], [hdfs.StorageTypeProto.DISK], [""])
        await push(source.store, POOL.pool, block(), targets, LIMITS, access=keys)
        peer = await Peer.connect("127.0.0.1", target.place.port, seconds=10)
        message = written(NO_TOKEN, target.place)
        assert isinstance(message, pb.OpWriteBlockProto)
        message.header.clientName = ""
        await peer.send(encode_op(Op.WRITE_BLOCK, message), seconds=10)
        with pytest.raises(PeerLost):
            await peer.read(1, seconds=10)
        peer.close()
        assert len(target.store) == 0
        keys.learn("nn1", RING.message())
        await push(source.store, POOL.pool, block(), targets, LIMITS, access=keys)
        await block_client.until(lambda: len(target.store) == 1)


# ---- which NameNode has them on ----

HEADER: Final = base(block(), NO_TOKEN)
STATES: Final = {
    "none has registered it": (True, "", [], "no block token"),
    "none has, and they are off here": (False, "", [], ""),
    "all are without them": (True, "", [NO_KEYS, NO_KEYS], ""),
    "one is without them": (False, "", [NO_KEYS, RING.message()], ""),
    "all have them": (False, "", [OTHERS.message(), RING.message()], "no block token"),
    "one is without them, and it is reached from elsewhere": (
        True, "here they are needed", [RING.message(), NO_KEYS], "no block tokens here, and here",
    ),
    "all are without them, and it is reached from elsewhere": (
        True, "here they are needed", [NO_KEYS], "a NameNode gives no block tokens here, and here",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "needed", "told", "why"), STATES.values(), ids=STATES)
def test_tokens_are_asked_for_where_a_namenode_has_them(
    *, wanted: bool, needed: str, told: list[object], why: str
) -> None:
    found = access(wanted=wanted, needed=needed)
    for number, keys in enumerate(told):
        found.learn(f"nn{number}", keys)  # type: ignore[arg-type]
    if not why:
        found.check(HEADER, Mode.READ)
        return
    with pytest.raises(TokenRefused, match=why):
        found.check(HEADER, Mode.READ)


def test_the_keys_of_all_namenodes_count_and_the_newest_signs() -> None:
    found = asked()
    found.learn("nn2", OTHERS.message())
    for ring in (RING, OTHERS):
        grant = Grant("bob", POOL.pool, block().block_id, frozenset({Mode.READ}))
        found.check(base(block(), ring.token(grant, NOW)), Mode.READ)
    expiry_ms, key_id, grant = block_tokens.decode(found.token(block()).identifier)
    assert (expiry_ms, key_id) == (NOW + HOUR, OTHERS.current.key_id)
    assert grant == Grant("", POOL.pool, block().block_id, frozenset({Mode.WRITE}))


def test_keys_that_have_ended_are_forgotten() -> None:
    later = [NOW]
    found = BlockAccess(POOL.pool, wanted=True, wall_ms=lambda: later[0])
    found.learn("nn1", RING.message())
    later[0] = NOW + 9 * HOUR
    found.learn("nn2", OTHERS.message())
    later[0] = NOW
    grant = Grant("bob", POOL.pool, block().block_id, frozenset({Mode.READ}))
    found.check(base(block(), OTHERS.token(grant, NOW)), Mode.READ)
    with pytest.raises(TokenRefused, match="key 5, which is not known"):
        found.check(base(block(), RING.token(grant, NOW)), Mode.READ)


def test_without_keys_no_token_is_made() -> None:
    assert access().token(block()) == NO_TOKEN
