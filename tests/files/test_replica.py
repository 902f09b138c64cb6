"""What a DataNode may say of a replica, and what a reader makes of it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import pytest

from files.replica import ReadLimits, ReplicaRead, parts
from hadoop.blocks import Checksum
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.checksums import checksums_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch, DataNodeError, MalformedTransfer
from hadoop.wire.packets import PacketHeader, encode_message, encode_packet
from tests.files.given_keys import PLAIN
from tests.stand_in import stand_in

DATA = bytes(range(256)) * 8
CRC = Checksum()
LIMITS = ReadLimits(packet_seconds=5)
BEGIN, END = 600, 1900
"""In chunks of 512 that is from 512 to 2048."""


def opening(start: int = 512, chunk: int = 512, status: int = pb.Status.SUCCESS) -> bytes:
    answer = pb.BlockOpResponseProto(status=pb.Status.ValueType(status), message="no such replica")
    answer.readOpChecksumInfo.checksum.type = hdfs.ChecksumTypeProto.CHECKSUM_CRC32C
    answer.readOpChecksumInfo.checksum.bytesPerChecksum = chunk
    answer.readOpChecksumInfo.chunkOffset = start
    return encode_message(answer)


def packet(begin: int, end: int, seqno: int = 0, *, sums: bytes | None = None) -> bytes:
    data = DATA[begin:end]
    made = checksums_of(data, CRC) if sums is None else sums
    return encode_packet(PacketHeader(begin, seqno, last=False, length=len(data)), made, data)


def last(at: int = 2048) -> bytes:
    return encode_packet(PacketHeader(at, 9, last=True, length=0), b"", b"")


Said = Sequence[bytes]
GOOD: dict[str, Said] = {
    "one packet": [opening(), packet(512, 2048), last()],
    "two packets": [opening(), packet(512, 1024), packet(1024, 2048, 1), last()],
    "exactly to the end of its bytes": [opening(), packet(512, 1900), last(1900)],
}
BAD: dict[str, tuple[Said, type[Exception]]] = {
    "a refusal": ([opening(status=pb.Status.ERROR)], DataNodeError),
    "it begins too late": ([opening(start=1024), packet(1024, 2048), last()], MalformedTransfer),
    "it begins too early": ([opening(start=0), packet(0, 2048), last()], MalformedTransfer),
    "no chunks": ([opening(chunk=0)], MalformedTransfer),
    "chunks beyond all measure": ([opening(chunk=1 << 31)], MalformedTransfer),
    "a hole": ([opening(), packet(512, 1024), packet(1536, 2048, 1), last()], MalformedTransfer),
    "a repetition": ([opening(), packet(512, 1024), packet(512, 1024, 1)], MalformedTransfer),
    "too few sums": ([opening(), packet(512, 2048, sums=bytes(8)), last()], MalformedTransfer),
    "no sums": ([opening(), packet(512, 2048, sums=b""), last()], MalformedTransfer),
    "wrong sums": ([opening(), packet(512, 2048, sums=bytes(12)), last()], ChecksumMismatch),
    "an early end": ([opening(), packet(512, 1024), last(1024)], MalformedTransfer),
    "an end at once": ([opening(), last(512)], MalformedTransfer),
    "the connection ends": ([opening(), packet(512, 1024)], PeerLost),
    "it ends within a packet": ([opening(), packet(512, 2048)[:-1]], PeerLost),
    "no words at all": ([], PeerLost),
    "no message": ([b"\xff\xff\xff\xff\xff\xff"], MalformedTransfer),
}


@dataclass(slots=True)
class Outcome:
    got: bytes
    told: bytes


async def outcome(said: Said, check: Callable[[Outcome], None] = lambda _: None) -> Outcome:
    found = Outcome(b"", b"")
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.writelines(said)
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        heard.put_nowait(await reader.read())

    async with stand_in(speak) as port:
        block = hdfs.LocatedBlockProto(offset=0, corrupt=False)
        block.b.MergeFrom(hdfs.ExtendedBlockProto(poolId="BP-1", blockId=7, generationStamp=1))
        block.blockToken.MergeFrom(
            hdfs.TokenProto(identifier=b"", password=b"", kind="", service="")
        )
        node = hdfs.DatanodeInfoProto(
            id=hdfs.DatanodeIDProto(
                ipAddr="127.0.0.1", hostName="h", datanodeUuid="u",
                xferPort=port, infoPort=0, ipcPort=0,
            )
        )  # fmt: skip
        read = ReplicaRead(block, node, BEGIN, END)
        try:
            async with aclosing(
                parts(PLAIN, read, "reader", LIMITS, ByteBudget(1 << 20))
            ) as bytes_of:
                async for part in bytes_of:
                    found.got += part
        finally:
            check(found)
        async with asyncio.timeout(30):
            found.told = await heard.get()
    return found


@pytest.mark.parametrize("name", GOOD)
async def test_the_bytes_asked_for_come_out_of_whole_chunks(name: str) -> None:
    found = await outcome(GOOD[name])
    assert found.got == DATA[BEGIN:END]
    assert found.told == encode_message(pb.ClientReadStatusProto(status=pb.Status.CHECKSUM_OK))


@pytest.mark.parametrize("name", BAD)
async def test_whatever_else_is_said_is_an_error_behind_good_bytes(name: str) -> None:
    said, expected = BAD[name]

    def is_good(found: Outcome) -> None:
        assert DATA[BEGIN:END].startswith(found.got)

    with pytest.raises(expected) as raised:
        await outcome(said, is_good)
    assert raised.type is expected
