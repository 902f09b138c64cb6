"""What a DataNode says to a NameNode, call by call."""

from collections.abc import Sequence

import pytest

from datanode.model import Finalized, StorageId
from datanode.namenodes import namenode_client
from datanode.namenodes.identity import Identity, Namespace, namespace_of
from datanode.namenodes.namenode_client import CALL_SECONDS, NameNodeCalls
from datanode.namenodes.report_rows import encode_rows
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement
from datanode.replicas.volumes import StorageUse
from datanode.transfers.transfer import DamagedSource
from hadoop.blocks import PoolId
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import namenode_protocol_pb2 as nn
from hadoop.wire.block_messages import extended, plain
from tests.datanode.block_client import Place
from tests.datanode.recorded import Recorded
from tests.datanode.stores import POOL, block

SPACE = Namespace(77, "CID-1", 1234, POOL.pool)
WHO = Identity("uuid-1", "dn1", 1, 2, 3, SPACE)
DISK, SSD = StorageId("DS-1"), StorageId("DS-2")
TYPES = {DISK: "DISK", SSD: "SSD"}


@pytest.fixture
def wire() -> Recorded:
    return Recorded()


@pytest.fixture
def calls(wire: Recorded) -> NameNodeCalls:
    return NameNodeCalls(wire)


def storage(of: StorageId) -> hdfs.DatanodeStorageProto:
    """Return a storage's message; of a failed volume the type is not known any more."""
    return hdfs.DatanodeStorageProto(
        storageUuid=of,
        state=hdfs.DatanodeStorageProto.NORMAL,
        storageType=hdfs.StorageTypeProto.Value(TYPES.get(of, "DISK")),
    )


def test_who_it_is() -> None:
    assert WHO.node_id == hdfs.DatanodeIDProto(
        ipAddr="dn1", hostName="dn1", datanodeUuid="uuid-1", xferPort=1, infoPort=2, ipcPort=3
    )
    assert WHO.registration == pb.DatanodeRegistrationProto(
        datanodeID=WHO.node_id,
        storageInfo=nn.StorageInfoProto(
            layoutVersion=(1 << 32) - 57, namespceID=77, clusterID="CID-1", cTime=1234
        ),
        keys=tokens.ExportedBlockKeysProto(
            isBlockTokenEnabled=False, keyUpdateInterval=0, tokenLifeTime=0,
            currentKey=tokens.BlockKeyProto(keyId=0, expiryDate=0, keyBytes=b""),
        ),
        softwareVersion="3.5.0-nnha",
    )  # fmt: skip


def test_whose_namespace_a_name_node_has() -> None:
    info = nn.NamespaceInfoProto(
        blockPoolID=POOL.pool,
        storageInfo=nn.StorageInfoProto(
            layoutVersion=9, namespceID=77, clusterID="CID-1", cTime=1234
        ),
    )
    assert namespace_of(info) == SPACE
    assert SPACE.pool_version == POOL


async def test_the_handshake(wire: Recorded, calls: NameNodeCalls) -> None:
    await calls.version()
    await calls.register(WHO)
    assert wire.calls == [
        ("versionRequest", nn.VersionRequestProto(), CALL_SECONDS),
        (
            "registerDatanode",
            pb.RegisterDatanodeRequestProto(registration=WHO.registration),
            CALL_SECONDS,
        ),
    ]
    await calls.close()
    assert wire.calls == []


@pytest.mark.parametrize("wants_lease", [True, False])
@pytest.mark.parametrize("failed", [[], ["/a", "/b"]], ids=["all volumes work", "two have failed"])
async def test_a_heartbeat(
    wire: Recorded, calls: NameNodeCalls, failed: Sequence[str], *, wants_lease: bool
) -> None:
    use = StorageUse(SSD, "SSD", capacity=100, used=30, remaining=50)
    condition = namenode_client.Condition(
        [use], failed, transfers=4, connections=5, last_failure=1.5, lost_bytes=6,
        memory_bytes=8192, memory_used=4096,
    )  # fmt: skip
    await calls.heartbeat(WHO, condition, wants_lease=wants_lease)
    summary = pb.VolumeFailureSummaryProto(
        failedStorageLocations=failed, lastVolumeFailureDate=1500, estimatedCapacityLostTotal=6
    )
    assert wire.one("sendHeartbeat") == pb.HeartbeatRequestProto(
        registration=WHO.registration,
        reports=[
            hdfs.StorageReportProto(
                storageUuid=SSD, failed=False, capacity=100, dfsUsed=30, remaining=50,
                blockPoolUsed=30, storage=storage(SSD), nonDfsUsed=20,
            )
        ],
        xmitsInProgress=4,
        xceiverCount=5,
        failedVolumes=len(failed),
        cacheCapacity=8192,
        cacheUsed=4096,
        requestFullBlockReportLease=wants_lease,
        volumeFailureSummary=summary if failed else None,
    )  # fmt: skip


async def test_news_by_storage(wire: Recorded, calls: NameNodeCalls) -> None:
    lost = StorageId("DS-lost")
    news = {
        SSD: [Announcement(News.RECEIVED, SSD, block(), 30), deleted(1, SSD)],
        lost: [deleted(2, lost)],
    }
    await calls.incremental(WHO, news, TYPES)
    told = pb.ReceivedDeletedBlockInfoProto
    of_ssd = [
        told(block=plain(block(), 30), status=told.RECEIVED),
        told(block=plain(block(1), 5), status=told.DELETED),
    ]
    of_lost = [told(block=plain(block(2), 5), status=told.DELETED)]
    assert wire.one("blockReceivedAndDeleted") == pb.BlockReceivedAndDeletedRequestProto(
        registration=WHO.registration,
        blockPoolId=POOL.pool,
        blocks=[
            pb.StorageReceivedDeletedBlocksProto(
                storageUuid=SSD, storage=storage(SSD), blocks=of_ssd
            ),
            pb.StorageReceivedDeletedBlocksProto(
                storageUuid=lost, storage=storage(lost), blocks=of_lost
            ),
        ],
    )


def deleted(number: int, at: StorageId) -> Announcement:
    return Announcement(News.DELETED, at, block(number), 5)


REPLICAS = [Finalized(block(), DISK, 300), Finalized(block(1), DISK, 400)]


@pytest.mark.parametrize(("split_blocks", "together"), [(2, [1, 1]), (3, [2])])
async def test_a_full_report(
    wire: Recorded, calls: NameNodeCalls, split_blocks: int, together: list[int]
) -> None:
    """Report volumes without replicas, too; as many replicas as the limit are many."""
    for _ in range(2):
        await calls.full_report(WHO, REPLICAS, TYPES, lease=9, split_blocks=split_blocks)
    of_volumes = [report(DISK, REPLICAS), report(SSD, [])]
    sent = [request for _, request, _ in wire.calls]
    ids = [one.context.id for one in sent if isinstance(one, pb.BlockReportRequestProto)]
    count = len(together)
    assert ids == [ids[0]] * count + [ids[0] + 1] * count
    assert ids[0] > 0
    assert wire.calls == [
        (
            "blockReport",
            pb.BlockReportRequestProto(
                registration=WHO.registration,
                blockPoolId=POOL.pool,
                reports=of_volumes if count == 1 else [of_volumes[number]],
                context=pb.BlockReportContextProto(
                    totalRpcs=count, curRpc=number, id=report_id, leaseId=9
                ),
            ),
            namenode_client.REPORT_SECONDS,
        )
        for number, report_id in zip([*range(count)] * 2, ids, strict=True)
    ]


def report(of: StorageId, replicas: Sequence[Finalized]) -> pb.StorageBlockReportProto:
    count, buffers = encode_rows(replicas)
    return pb.StorageBlockReportProto(
        storage=storage(of), numberOfBlocks=count, blocksBuffers=buffers
    )


async def test_a_replica_on_a_volume_that_has_failed_since(
    wire: Recorded, calls: NameNodeCalls
) -> None:
    await calls.full_report(WHO, REPLICAS, {}, lease=9, split_blocks=9)
    request = wire.one("blockReport", namenode_client.REPORT_SECONDS)
    assert isinstance(request, pb.BlockReportRequestProto)
    assert list(request.reports) == [report(DISK, REPLICAS)]


async def test_damage_of_its_own_and_of_others(wire: Recorded, calls: NameNodeCalls) -> None:
    await calls.bad_replica(WHO, Finalized(block(), SSD, 300), "SSD")
    await calls.bad_source(WHO, DamagedSource(block(1), 400, Place(9).info.id))
    own = located(300, 0, WHO.node_id)
    own.storageIDs.append("DS-2")
    own.storageTypes.append(hdfs.StorageTypeProto.SSD)
    theirs = located(400, 1, Place(9).info.id)
    assert wire.calls == [
        ("reportBadBlocks", pb.ReportBadBlocksRequestProto(blocks=[one]), CALL_SECONDS)
        for one in (own, theirs)
    ]


def located(length: int, number: int, at: hdfs.DatanodeIDProto) -> hdfs.LocatedBlockProto:
    return hdfs.LocatedBlockProto(
        b=extended(block(number), POOL.pool, length),
        offset=0,
        locs=[hdfs.DatanodeInfoProto(id=at)],
        corrupt=False,
        blockToken=hdfs.TokenProto(identifier=b"", password=b"", kind="", service=""),
    )


async def test_a_command_that_was_not_carried_out(wire: Recorded, calls: NameNodeCalls) -> None:
    await calls.error(WHO, 2, "gone")
    assert wire.one("errorReport") == pb.ErrorReportRequestProto(
        registartion=WHO.registration, errorCode=2, msg="gone"
    )


@pytest.mark.parametrize("nodes", [[], [WHO.node_id]], ids=["nobody has it", "one has it"])
async def test_the_end_of_a_recovery(
    wire: Recorded, calls: NameNodeCalls, nodes: list[hdfs.DatanodeIDProto]
) -> None:
    storages = [DISK for _ in nodes]
    await calls.commit_recovery(
        namenode_client.recovery_request(
            block(), PoolId("BP-9"), new_stamp=1005, length=7, nodes=nodes, storages=storages
        )
    )
    expected = pb.CommitBlockSynchronizationRequestProto(
        block=extended(block(), PoolId("BP-9")),
        newGenStamp=1005,
        newLength=7,
        closeFile=True,
        deleteBlock=not nodes,
        newTaragets=nodes,
        newTargetStorages=storages,
    )
    assert wire.one("commitBlockSynchronization") == expected
