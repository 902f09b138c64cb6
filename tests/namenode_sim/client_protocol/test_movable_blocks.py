"""What a balancer asks a NameNode: which blocks of a DataNode it may move, and how fast."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, SAFE_MODE_EXCEPTION, STANDBY_EXCEPTION
from ha.rpc.protocol import Call
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from hadoop.proto import namenode_protocol_pb2 as pb
from namenode_sim.blocks.model import CorruptMark, Reason
from namenode_sim.blocks.safemode import enter
from namenode_sim.client_protocol.reads import movable_blocks
from namenode_sim.datanodes.model import StorageType
from namenode_sim.process.balancer_service import BalancerService
from tests.namenode_sim.client_protocol.datanodes_in_memory import (
    add_block,
    joined,
    report,
    sized,
    with_datanodes,
    written,
)
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

MB = 1 << 20
ILLEGAL = "java.lang.IllegalArgumentException"
NOT_FOUND = "org.apache.hadoop.HadoopIllegalArgumentException"


def of_user(user: str) -> Call:
    return Call("", "getBlocks", b"client-of-16byte", 1, 0, user, None, "127.0.0.1")


CALL = of_user("hdfs")


@dataclass(slots=True)
class Cluster:
    """Three DataNodes with blocks of 1, 2, 3, 4 and 5 MB on each."""

    served: Served
    numbers: list[int] = field(default_factory=list)

    async def ask(self, name: str = "d1", user: str = "hdfs", **more: object) -> list[int]:
        """Return the lengths of the blocks in the answer, in megabytes."""
        return [one.block.numBytes // MB for one in (await self.answer(name, user, **more))]

    async def answer(
        self, name: str = "d1", user: str = "hdfs", **more: object
    ) -> Sequence[pb.BlockWithLocationsProto]:
        node = self.served.cluster.nodes.get(name)
        who = types.DatanodeIDProto(
            ipAddr=node.id.ip if node else "10.9.9.9", hostName=name, datanodeUuid=name,
            xferPort=9866, infoPort=1, ipcPort=1,
        )  # fmt: skip
        fields = {"size": 1 << 40, "minBlockSize": 0, **more}
        request = pb.GetBlocksRequestProto(datanode=who, **fields)  # type: ignore[arg-type]
        method = BalancerService(self.served.face.admin()).methods()["getBlocks"]
        found = await method.handle(of_user(user), request)
        assert isinstance(found, pb.GetBlocksResponseProto)
        return found.blocks.blocks


@pytest.fixture
async def cluster() -> Cluster:
    served = with_datanodes(serve())
    served.cluster.blocks.set_starting(starting=False)
    made = Cluster(served)
    for length in range(1, 6):
        (block,) = await written(served, f"/f{length}", length * MB)
        made.numbers.append(block.blockId)
    return made


async def test_all_blocks_come_once_from_a_random_one_on(cluster: Cluster) -> None:
    starts = set()
    for _ in range(60):
        found = await cluster.ask()
        starts.add(found[0])
        assert found == [*range(found[0], 6), *range(1, found[0])]
    assert starts == {1, 2, 3, 4, 5}


async def test_a_block_is_listed_with_all_its_places(cluster: Cluster) -> None:
    (block,) = await cluster.answer(minBlockSize=5 * MB)
    assert block.block.blockId == cluster.numbers[4]
    assert sorted(block.datanodeUuids) == ["d1", "d2", "d3"]
    assert [f"DS-{name}-0" for name in block.datanodeUuids] == list(block.storageUuids)
    assert set(block.storageTypes) == {types.StorageTypeProto.DISK}


@pytest.mark.parametrize(("size", "enough"), [(1, 1), (15 * MB, 5), (14 * MB, 4)])
async def test_no_more_comes_than_was_asked_for(cluster: Cluster, size: int, enough: int) -> None:
    found = await cluster.ask(size=size)
    assert sum(found[:-1]) * MB < size
    assert len(found) >= enough


@pytest.mark.parametrize(("least", "count"), [(0, 5), (3 * MB, 3), (3 * MB + 1, 2), (1 << 40, 0)])
async def test_short_blocks_are_left_out(cluster: Cluster, least: int, count: int) -> None:
    assert len(await cluster.ask(minBlockSize=least)) == count


async def test_the_least_length_is_ten_megabytes_unless_said(cluster: Cluster) -> None:
    await written(cluster.served, "/long", 10 * MB)
    node = cluster.served.cluster.nodes["d1"]
    who = types.DatanodeIDProto(
        ipAddr=node.id.ip, hostName="d1", datanodeUuid="d1", xferPort=9866, infoPort=1, ipcPort=1
    )
    method = BalancerService(cluster.served.face.admin()).methods()["getBlocks"]
    answer = await method.handle(CALL, pb.GetBlocksRequestProto(datanode=who, size=1 << 40))
    assert isinstance(answer, pb.GetBlocksResponseProto)
    assert [one.block.numBytes for one in answer.blocks.blocks] == [10 * MB]


async def test_what_is_open_corrupt_or_to_be_deleted_is_not_moved(cluster: Cluster) -> None:
    served, blocks = cluster.served, cluster.served.cluster.blocks
    await served.create("/open")
    block = sized((await add_block(served, "/open")).b, 9 * MB)
    report(served, block, "d1", "d2", "d3")
    first, second, third = (blocks.map.find(number) for number in cluster.numbers[:3])
    assert first is not None
    assert second is not None
    assert third is not None
    (on_d1,) = (one.held for one in served.cluster.nodes["d1"].storages.values())
    (on_d2,) = (one.held for one in served.cluster.nodes["d2"].storages.values())
    blocks.mark_corrupt(first, on_d2, CorruptMark(Reason.CORRUPTION_REPORTED, None))
    blocks.order_deletion(second, on_d1.number, time.monotonic())
    blocks.order_deletion(third, on_d2.number, time.monotonic())
    assert sorted(await cluster.ask()) == [3, 4, 5]
    places = {one.block.blockId: sorted(one.datanodeUuids) for one in await cluster.answer()}
    assert places[cluster.numbers[2]] == ["d1", "d3"]


async def test_what_a_storage_may_have_lost_since_is_not_moved(cluster: Cluster) -> None:
    (storage,) = cluster.served.cluster.nodes["d1"].storages.values()
    storage.held.confirmed = False
    assert await cluster.ask() == []
    assert len(await cluster.ask("d2")) == 5


async def test_blocks_come_of_the_wished_type_of_storage(cluster: Cluster) -> None:
    (storage,) = cluster.served.cluster.nodes["d2"].storages.values()
    storage.type = StorageType.ARCHIVE
    disk, archive = types.StorageTypeProto.DISK, types.StorageTypeProto.ARCHIVE
    found = [
        len(await cluster.ask(name, storageType=kind))
        for name in ("d1", "d2")
        for kind in (disk, archive)
    ]
    assert found == [5, 0, 0, 5]


async def test_files_in_use_come_last_if_an_interval_says_so(cluster: Cluster) -> None:
    for number, length in enumerate((1, 4)):
        long_ago = 1000 + number
        await cluster.served.call("setTimes", src=f"/f{length}", mtime=long_ago, atime=long_ago)
    for _ in range(10):
        assert set((await cluster.ask(timeInterval=3_600_000))[:2]) == {1, 4}
        assert sorted(await cluster.ask(timeInterval=3_600_000)) == [1, 2, 3, 4, 5]
        assert set(await cluster.ask(timeInterval=3_600_000, size=5 * MB)) == {1, 4}


async def test_one_answer_has_a_limit(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert movable_blocks.MOST_BLOCKS == 2000
    monkeypatch.setattr(movable_blocks, "MOST_BLOCKS", 40)
    await written(cluster.served, "/many", *[1] * 41)
    assert len(await cluster.answer()) == 40


REFUSED = {
    "no size": ({"size": 0}, ILLEGAL, "Unexpected not positive size: 0"),
    "a size below 0": ({"size": 2**64 - 5}, ILLEGAL, "Unexpected not positive size: -5"),
    "a least length below 0": ({"minBlockSize": 2**64 - 1}, ILLEGAL, "not positive size"),
    "an unknown DataNode": ({"name": "d9"}, NOT_FOUND, "Datanode 10.9.9.9:9866 not found."),
    "no superuser": ({"user": "alice"}, ACCESS_CONTROL, "Superuser privilege is required"),
}


@pytest.mark.parametrize(("asked", "java_class", "says"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_answered_is_refused(
    cluster: Cluster, asked: dict[str, str], java_class: str, says: str
) -> None:
    with pytest.raises(RemoteFault, match=says) as refusal:
        await cluster.answer(**asked)
    assert refusal.value.java_class == java_class


async def test_a_datanode_that_registered_elsewhere_is_not_the_one_that_is_meant(
    cluster: Cluster,
) -> None:
    joined(cluster.served.cluster, "d4", ip="10.0.0.4")
    assert await cluster.ask("d4") == []
    joined(cluster.served.cluster, "d1", ip="10.0.0.77")
    who = types.DatanodeIDProto(
        ipAddr="10.0.0.1", hostName="d1", datanodeUuid="d1", xferPort=9866, infoPort=1, ipcPort=1
    )
    method = BalancerService(cluster.served.face.admin()).methods()["getBlocks"]
    with pytest.raises(RemoteFault, match=r"10\.0\.0\.1:9866 not found"):
        await method.handle(CALL, pb.GetBlocksRequestProto(datanode=who, size=1))


async def test_in_safe_mode_nothing_is_moved(cluster: Cluster) -> None:
    known = cluster.served.cluster
    known.set_safe_mode(enter(known.safe_mode))
    words = "Cannot execute getBlocks. Name node is in safe mode"
    with pytest.raises(RemoteFault, match=words) as refusal:
        await cluster.ask()
    assert refusal.value.java_class == SAFE_MODE_EXCEPTION


class Shut:
    """The gate of a standby."""

    def is_open(self) -> bool:
        return False

    async def admit(self, method: str, *, writes: bool) -> None:
        raise RemoteFault(STANDBY_EXCEPTION, f"{method} is the active's")


async def test_a_standby_answers_nothing_of_it(cluster: Cluster) -> None:
    cluster.served.face.gate = Shut()
    for name, request in (
        ("getBlocks", pb.GetBlocksRequestProto()),
        ("getBlockKeys", pb.GetBlockKeysRequestProto()),
    ):
        method = BalancerService(cluster.served.face.admin()).methods()[name]
        with pytest.raises(RemoteFault) as refusal:
            await method.handle(CALL, request)
        assert refusal.value.java_class == STANDBY_EXCEPTION
    with pytest.raises(RemoteFault) as refusal:
        await cluster.served.call("setBalancerBandwidth", bandwidth=5)
    assert refusal.value.java_class == STANDBY_EXCEPTION
    assert bandwidths(cluster.served) == [0, 0, 0]


async def test_there_are_no_keys(cluster: Cluster) -> None:
    method = BalancerService(cluster.served.face.admin()).methods()["getBlockKeys"]
    answer = await method.handle(CALL, pb.GetBlockKeysRequestProto())
    assert isinstance(answer, pb.GetBlockKeysResponseProto)
    assert not answer.keys.isBlockTokenEnabled
    assert answer.HasField("keys"), "a balancer asks them whether there are tokens"
    with pytest.raises(RemoteFault, match="Superuser"):
        await method.handle(of_user("alice"), pb.GetBlockKeysRequestProto())


def bandwidths(served: Served) -> list[int]:
    return [node.bandwidth_order for node in served.cluster.nodes.values()]


async def test_a_bandwidth_is_ordered_of_every_datanode(cluster: Cluster) -> None:
    served = cluster.served
    answer = await served.call("setBalancerBandwidth", bandwidth=7 * MB)
    assert answer == calls.SetBalancerBandwidthResponseProto()
    assert bandwidths(served) == [7 * MB] * 3
    with pytest.raises(RemoteFault, match="Superuser"):
        await served.call("setBalancerBandwidth", user="alice", bandwidth=1)
    assert bandwidths(served) == [7 * MB] * 3
    for nothing in (0, -3):
        await served.call("setBalancerBandwidth", bandwidth=nothing)
        assert bandwidths(served) == [0, 0, 0]
