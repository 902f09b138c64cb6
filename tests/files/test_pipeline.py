"""What the first DataNode of a pipeline may say, and whom a writer leaves out for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from files.pipeline import NodeFailed, Pipeline, Place
from files.window import Sent, Window
from files.write import DEFAULT_LIMITS
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.packets import encode_message
from tests.files.given_keys import PLAIN
from tests.stand_in import stand_in

LIMITS = replace(
    DEFAULT_LIMITS, connect_seconds=5, set_up_seconds=0.3, ack_seconds=0.3, node_seconds=0.01
)
SUCCESS, ERROR = pb.Status.SUCCESS, pb.Status.ERROR


def places(port: int) -> list[Place]:
    return [
        Place(
            hdfs.DatanodeInfoProto(
                id=hdfs.DatanodeIDProto(
                    ipAddr="127.0.0.1", hostName="h", datanodeUuid=str(number),
                    xferPort=port + number, infoPort=0, ipcPort=0,
                )
            ),
            hdfs.StorageTypeProto.DISK,
            f"DS-{number}",
        )
        for number in range(3)
    ]  # fmt: skip


def set_up(status: pb.Status.ValueType = SUCCESS, bad: str = "") -> bytes:
    return encode_message(pb.BlockOpResponseProto(status=status, firstBadLink=bad, message="why"))


def ack(seqno: int, *replies: pb.Status.ValueType) -> bytes:
    return encode_message(pb.PipelineAckProto(seqno=seqno, reply=replies))


ALL = (SUCCESS, SUCCESS, SUCCESS)
REQUEST = pb.OpWriteBlockProto(
    header=pb.ClientOperationHeaderProto(
        baseHeader=pb.BaseHeaderProto(
            block=hdfs.ExtendedBlockProto(poolId="BP-1", blockId=7, generationStamp=1)
        ),
        clientName="c",
    ),
    stage=pb.OpWriteBlockProto.PIPELINE_SETUP_CREATE, pipelineSize=3, minBytesRcvd=0,
    maxBytesRcvd=0, latestGenerationStamp=0,
    requestedChecksum=pb.ChecksumProto(type=hdfs.ChecksumTypeProto.CHECKSUM_CRC32C,
                                       bytesPerChecksum=512),
)  # fmt: skip

SAID: dict[str, tuple[Sequence[bytes], int | None]] = {
    "all is well": ([set_up(), ack(0, *ALL), ack(1, *ALL)], None),
    "signs of life between": ([set_up(), ack(-1, *ALL), ack(0, *ALL), ack(1, *ALL)], None),
    "it refuses": ([set_up(ERROR)], 0),
    "it could not reach the third": ([set_up(ERROR, "127.0.0.1:{2}")], 2),
    "it names one that is not there": ([set_up(ERROR, "10.0.0.1:1")], 0),
    "no answer to the set-up": ([], 0),
    "no message": ([b"\xff\xff\xff\xff\xff\xff"], 0),
    "the second is lost": ([set_up(), ack(0, *ALL), ack(1, SUCCESS, ERROR)], 1),
    "the third is": ([set_up(), ack(0, SUCCESS, SUCCESS, ERROR)], 2),
    "more replies than DataNodes": ([set_up(), ack(0, *ALL, ERROR)], 3),
    "an acknowledgement out of order": ([set_up(), ack(1, *ALL)], 0),
    "one of nothing": ([set_up(), ack(0, *ALL), ack(1, *ALL), ack(2, *ALL)], None),
    "silence": ([set_up(), ack(0, *ALL)], 0),
    "a restart": ([set_up(), ack(-2, SUCCESS, pb.Status.OOB_RESTART)], 1),
    "a life sign that accuses": ([set_up(), ack(-1, SUCCESS, ERROR)], 1),
}


@pytest.mark.parametrize("name", SAID)
async def test_what_is_said(name: str) -> None:
    said, expected = SAID[name]
    never = asyncio.Event()
    ports: list[int] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        for one in said:
            if b"{2}" in one:
                one = set_up(ERROR, f"127.0.0.1:{ports[0] + 2}")
            writer.write(one)
        await writer.drain()
        await never.wait()

    async with stand_in(speak) as port:
        ports.append(port)
        window = Window(0, 0)
        failed: int | None = None
        pipeline = None
        try:
            pipeline = await Pipeline.open(PLAIN, places(port), REQUEST, window, LIMITS)
            for number in range(2):
                packet = Sent(number, 100 * (number + 1), b"packet")
                window.add(packet)
                await pipeline.send(packet)
            await pipeline.until(lambda window: not window.waiting)
        except NodeFailed as failure:
            failed = failure.index
        finally:
            if pipeline is not None:
                await pipeline.close()
        assert failed == expected
        assert expected is not None or window.acked == 200
        never.set()


async def test_who_it_was_is_known_from_what_came_before_the_end() -> None:
    """The first DataNode accuses the second and goes away while it is sent a packet."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(set_up() + ack(0, SUCCESS, ERROR))
        await writer.drain()
        await reader.readexactly(1000)
        writer.transport.abort()

    async with stand_in(speak) as port:
        window = Window(0, 0)
        packet = Sent(0, 100, bytes(16 << 20))
        limits = replace(LIMITS, ack_seconds=20)
        pipeline = await Pipeline.open(PLAIN, places(port), REQUEST, window, limits)
        window.add(packet)
        with pytest.raises(NodeFailed) as failure:
            await pipeline.send(packet)
        assert failure.value.index == 1
        await pipeline.close()
