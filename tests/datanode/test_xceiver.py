"""Operations other than reads and writes, and peers that are none."""

import asyncio
import contextlib
import hashlib
import os
import zlib
from functools import partial
from pathlib import Path

import pytest

from datanode import model
from datanode.transfers.block_checksum import MAX_SUMS_BYTES
from hadoop.blocks import Checksum, ChecksumType
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.checksums import checksums_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.packets import MAX_MESSAGE_BYTES, Op, encode_op
from hadoop.wire.peer import TransferLimits
from tests.datanode import block_client
from tests.datanode.stores import CHECKSUM, block
from tests.stand_in import TURNS_OF_AN_ACCEPT, hung_up_on_at_the_stop

DATA = bytes(range(251)) * 400
"""100,400 bytes: 25 packets, and a short chunk at the end."""
OK = pb.Status.SUCCESS


def has_whole(one: block_client.Node) -> bool:
    return any(isinstance(kept, model.Finalized) for kept in one.store)


async def test_a_copy_comes_in_whole_or_not_at_all(nodes: list[block_client.Node]) -> None:
    writing = await block_client.begin(block_client.places(nodes[:2]), block(), client="")
    await writing.send(DATA[:4096])
    await block_client.until(lambda: len(nodes[0].store) == len(nodes[1].store) == 1)
    writing.peer.abort()
    await block_client.until(lambda: len(nodes[0].store) == len(nodes[1].store) == 0)
    writing = await block_client.begin(block_client.places(nodes[:2]), block(), client="")
    await writing.send(DATA[:4096])
    await writing.end()
    for one in nodes[:2]:
        await block_client.until(partial(has_whole, one))
    for one in nodes[:2]:
        assert await block_client.read(one.place, block(), 0, 4096) == DATA[:4096]


@pytest.mark.parametrize("whole", [True, False])
async def test_a_client_lets_a_replica_be_sent_on(
    nodes: list[block_client.Node], whole: bool
) -> None:
    writing = await block_client.begin(block_client.places(nodes[:1]), block())
    await writing.write(DATA[:5000])
    if whole:
        await writing.close()
    request = pb.OpTransferBlockProto(
        header=block_client.header(block()), targets=[nodes[1].place.info]
    )
    answer = await block_client.ask(nodes[0].place, Op.TRANSFER_BLOCK, request)
    assert answer.status == OK, answer.message
    assert isinstance(
        nodes[1].store.find(block()), model.Finalized if whole else model.BeingWritten
    )
    assert await block_client.read(nodes[1].place, block(), 0, 5000) == DATA[:5000]
    answer = await block_client.ask(nodes[0].place, Op.TRANSFER_BLOCK, request)
    assert answer.status == pb.Status.ERROR
    writing.peer.abort()


async def test_a_node_that_was_down_in_an_append_can_be_added_to_the_next_pipeline(
    nodes: list[block_client.Node],
) -> None:
    await block_client.write_whole(block_client.places(nodes), block(), DATA[:700])
    writing = await block_client.begin(
        block_client.places(nodes[:2]),
        block(),
        stage=block_client.STAGE.PIPELINE_SETUP_APPEND,
        stamp=1002,
        length=700,
    )
    await writing.write(DATA[700:900])
    await writing.close()
    newer, stale = block(stamp=1002), nodes[2]
    request = pb.OpTransferBlockProto(header=block_client.header(newer), targets=[stale.place.info])
    answer = await block_client.ask(nodes[0].place, Op.TRANSFER_BLOCK, request)
    assert answer.status == OK, answer.message
    assert await block_client.read(stale.place, newer, 0, 900) == DATA[:900]


async def test_block_checksums(nodes: list[block_client.Node]) -> None:
    crc32 = Checksum(ChecksumType.CRC32)
    await block_client.write_whole(block_client.places(nodes[:1]), block(), DATA)
    sums = checksums_of(DATA, CHECKSUM)
    request = pb.OpBlockChecksumProto(header=block_client.header(block()).baseHeader)
    found = (await block_client.ask(nodes[0].place, Op.BLOCK_CHECKSUM, request)).checksumResponse
    assert found.blockChecksum == hashlib.md5(sums).digest()
    assert (found.bytesPerCrc, found.crcPerBlock) == (512, len(sums) // 4)
    part = pb.OpBlockChecksumProto(header=block_client.header(block(), 700).baseHeader)
    found = (await block_client.ask(nodes[0].place, Op.BLOCK_CHECKSUM, part)).checksumResponse
    assert found.blockChecksum == hashlib.md5(checksums_of(DATA[:700], CHECKSUM)).digest()
    writing = await block_client.begin(block_client.places(nodes[1:2]), block(1), checksum=crc32)
    writing.peer.abort()
    request.blockChecksumOptions.blockChecksumType = pb.BlockChecksumTypeProto.COMPOSITE_CRC
    found = (await block_client.ask(nodes[0].place, Op.BLOCK_CHECKSUM, request)).checksumResponse
    whole = checksums_of(DATA, Checksum(ChecksumType.CRC32C, 1 << 20))
    assert found.blockChecksum == whole
    assert zlib.crc32(DATA).to_bytes(4, "big") != whole


async def test_a_block_with_too_many_checksums_is_not_summed_up(
    nodes: list[block_client.Node],
) -> None:
    of_bytes = Checksum(ChecksumType.CRC32C, 1)
    writing = await block_client.begin(block_client.places(nodes[:1]), block(), checksum=of_bytes)
    replica = nodes[0].store.find(block())
    assert isinstance(replica, model.BeingWritten)
    paths = nodes[0].store.volumes[replica.storage].paths(replica)
    length = MAX_SUMS_BYTES // 4 + 1
    for path, size in ((paths.block, length), (paths.meta, 7 + 4 * length)):
        os.truncate(path, size)
    nodes[0].store.received(block(), length)
    nodes[0].store.acknowledged(block(), length, b"")
    request = pb.OpBlockChecksumProto(header=block_client.header(block()).baseHeader)
    answer = await block_client.ask(nodes[0].place, Op.BLOCK_CHECKSUM, request)
    assert answer.status == pb.Status.ERROR
    assert "67108868 bytes of checksums" in answer.message
    writing.peer.abort()


@pytest.mark.parametrize("said", ["deadbeef", "001c05", "474554202f20", "001c50ffffffff7f"])
async def test_strangers_are_hung_up_on(nodes: list[block_client.Node], said: str) -> None:
    peer = await block_client.connect(nodes[0].place.port)
    await peer.send(bytes.fromhex(said), seconds=block_client.SECONDS)
    with pytest.raises(PeerLost, match="has closed"):
        await peer.read(1, seconds=block_client.SECONDS)


async def test_what_we_do_not_do_is_refused_in_words(nodes: list[block_client.Node]) -> None:
    request = pb.OpBlockChecksumProto(header=block_client.header(block()).baseHeader)
    answer = await block_client.ask(nodes[0].place, Op.REQUEST_SHORT_CIRCUIT_FDS, request)
    assert answer.status == pb.Status.ERROR_UNSUPPORTED
    assert answer.message == "this DataNode does not do short-circuit reads"


async def test_a_block_token_changes_nothing_for_there_are_none(
    nodes: list[block_client.Node],
) -> None:
    await block_client.write_whole(block_client.places(nodes[:1]), block(), DATA)
    for size, taken in ((60_000, True), (MAX_MESSAGE_BYTES, False)):
        peer = await block_client.connect(nodes[0].place.port)
        request = pb.OpReadBlockProto(header=block_client.header(block()), offset=0, len=1)
        request.header.baseHeader.token.CopyFrom(
            hdfs.TokenProto(
                identifier=b"x" * size, password=b"forged", kind="HDFS_BLOCK_TOKEN", service=""
            )
        )
        with contextlib.suppress(PeerLost):
            await peer.send(encode_op(Op.READ_BLOCK, request), seconds=block_client.SECONDS)
        if taken:
            answer = await peer.read_message(pb.BlockOpResponseProto, seconds=block_client.SECONDS)
            assert answer.status == OK
        else:
            with pytest.raises(PeerLost, match="has closed"):
                await peer.read(1, seconds=block_client.SECONDS)
        peer.abort()
    assert await block_client.read(nodes[0].place, block(), 0, len(DATA)) == DATA


async def test_another_pool_is_refused(nodes: list[block_client.Node]) -> None:
    peer = await block_client.connect(nodes[0].place.port)
    request = pb.OpReadBlockProto(header=block_client.header(block()), offset=0, len=1)
    request.header.baseHeader.block.poolId = "BP-other"
    await peer.send(encode_op(Op.READ_BLOCK, request), seconds=block_client.SECONDS)
    answer = await peer.read_message(pb.BlockOpResponseProto, seconds=block_client.SECONDS)
    assert "'BP-other' is not the pool" in answer.message
    peer.close()


async def test_connections_have_a_limit_and_silence_has_an_end(tmp_path: Path) -> None:
    limits = TransferLimits(operation_seconds=0.2, max_connections=1)
    async with block_client.node(tmp_path / "a", limits) as one:
        first = await block_client.connect(one.place.port)
        async with asyncio.timeout(block_client.SECONDS):
            while one.server.active == 0:
                await asyncio.sleep(0.002)
        second = await block_client.connect(one.place.port)
        with pytest.raises(PeerLost, match="has closed"):
            await second.read(1, seconds=block_client.SECONDS)
        with pytest.raises(PeerLost, match="has closed"):
            await first.read(1, seconds=block_client.SECONDS)


@pytest.mark.parametrize("turns", range(TURNS_OF_AN_ACCEPT))
async def test_a_newcomer_to_a_server_that_stops_is_hung_up_on(tmp_path: Path, turns: int) -> None:
    async with block_client.node(tmp_path / "a") as one:
        await hung_up_on_at_the_stop(one.place.port, one.server.stop, turns)
