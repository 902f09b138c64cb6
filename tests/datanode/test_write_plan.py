"""What a request to write asks for, and what of it goes on to the next DataNode."""

import pytest

from datanode.transfers.write_plan import write_plan
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.errors import MalformedTransfer
from tests.datanode.block_client import STAGE, Place, header
from tests.datanode.stores import POOL, block

DISK, SSD = hdfs.StorageTypeProto.DISK, hdfs.StorageTypeProto.SSD
ARCHIVE = hdfs.StorageTypeProto.ARCHIVE
TARGETS = [Place(port).info for port in (1, 2, 3)]


def request(targets: list[hdfs.DatanodeInfoProto]) -> pb.OpWriteBlockProto:
    return pb.OpWriteBlockProto(
        header=header(block()),
        targets=targets,
        source=Place(9).info,
        stage=STAGE.PIPELINE_SETUP_CREATE,
        pipelineSize=len(targets) + 1,
        minBytesRcvd=5,
        maxBytesRcvd=7,
        latestGenerationStamp=1002,
        requestedChecksum=pb.ChecksumProto(
            type=hdfs.ChecksumTypeProto.CHECKSUM_CRC32C, bytesPerChecksum=512
        ),
        storageType=DISK,
        storageId="DS-0",
    )


def test_the_next_data_node_is_told_what_was_meant_for_it() -> None:
    first = request(TARGETS[:2])
    first.targetStorageTypes.extend([SSD, ARCHIVE])
    first.targetStorageIds.extend(["DS-1", "DS-2"])
    first.targetPinnings.extend([True, False])

    second = request(TARGETS[1:2])
    second.ClearField("source")
    second.pipelineSize = first.pipelineSize
    second.storageType, second.storageId = SSD, "DS-1"
    second.targetStorageTypes.append(ARCHIVE)
    second.targetStorageIds.append("DS-2")
    second.pinning = True
    second.targetPinnings.append(False)
    assert write_plan(first, POOL.pool).for_next() == second

    third = request([])
    third.ClearField("source")
    third.pipelineSize = first.pipelineSize
    third.storageType, third.storageId = ARCHIVE, "DS-2"
    third.pinning = False
    assert write_plan(second, POOL.pool).for_next() == third


def test_our_own_storage_is_nobody_elses() -> None:
    """Allow for an old client, which names no storages of the others."""
    passed = write_plan(request(TARGETS[:1]), POOL.pool).for_next()
    assert not passed.HasField("storageId")
    assert passed.storageType == DISK


@pytest.mark.parametrize(("count", "taken"), [(0, True), (64, True), (65, False)])
def test_a_pipeline_has_a_limit(count: int, taken: bool) -> None:
    asked = request([TARGETS[0]] * count)
    if taken:
        assert len(write_plan(asked, POOL.pool).request.targets) == count
    else:
        with pytest.raises(MalformedTransfer, match="65 targets; at most 64"):
            write_plan(asked, POOL.pool)


@pytest.mark.parametrize(("stamp", "taken"), [((1 << 63) - 1, True), (1 << 63, False)])
def test_a_new_stamp_has_a_limit(stamp: int, taken: bool) -> None:
    """Refuse longer ones: the names of such files are not read at the next start."""
    asked = request([])
    asked.latestGenerationStamp = stamp
    if taken:
        assert write_plan(asked, POOL.pool).request.latestGenerationStamp == stamp
    else:
        with pytest.raises(MalformedTransfer, match="a generation stamp that cannot be"):
            write_plan(asked, POOL.pool)
