"""What clients read of DataNodes and of blocks without enough replicas, and what they report."""

import time
from typing import Final

import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2
from hadoop.proto.hdfs_types_pb2 import (
    DatanodeInfoProto,
    DatanodeReportTypeProto,
    DatanodeStorageProto,
)
from namenode_sim.datanodes.membership.host_lists import text_lists
from namenode_sim.datanodes.model import AdminState, Room, StorageState, StorageType
from namenode_sim.datanodes.redundancy import Redundancy
from tests.namenode_sim.client_protocol import datanodes_in_memory as datanodes
from tests.namenode_sim.client_protocol.datanodes_in_memory import report
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve

NO_TOKEN: Final = hdfs_types_pb2.TokenProto(identifier=b"", password=b"", kind="", service="")
STATS: Final = ("under_replicated", "corrupt_blocks", "missing_blocks", "missing_repl_one_blocks")


class Kept:
    """A NameNode with DataNodes, whose blocks are kept at their replicas."""

    def __init__(self, count: int = 3) -> None:
        self.served = datanodes.with_datanodes(serve(), count)
        self.blocks = self.served.cluster.blocks
        self.blocks.set_starting(starting=False)
        self.redundancy = Redundancy(self.served.cluster)
        for storage in self.blocks.map.storages:
            storage.confirmed = True

    def work(self) -> None:
        while self.redundancy.work(time.monotonic()):
            pass

    async def file(
        self, src: str, *on: str, replication: int = 3
    ) -> hdfs_types_pb2.ExtendedBlockProto:
        await self.served.create(src, replication=replication)
        block = datanodes.sized((await datanodes.add_block(self.served, src)).b, 7)
        report(self.served, block, *on)
        assert await self.served.complete(src, last=block)
        self.work()
        return block

    async def stats(self) -> tuple[int, ...]:
        answer = await self.served.call("getFsStats")
        self.same_as_the_replicated(answer, await self.served.call("getFsReplicatedBlockStats"))
        return tuple(getattr(answer, name) for name in STATS)

    @staticmethod
    def same_as_the_replicated(whole: Message, replicated: Message) -> None:
        assert isinstance(whole, calls.GetFsStatsResponseProto)
        assert isinstance(replicated, calls.GetFsReplicatedBlockStatsResponseProto)
        assert whole.under_replicated == replicated.low_redundancy
        assert whole.missing_blocks == replicated.missing_blocks

    async def corrupt_files(self, path: str, cookie: str = "") -> tuple[list[str], str]:
        fields: Fields = {"path": path, **({"cookie": cookie} if cookie else {})}
        answer = await self.served.call("listCorruptFileBlocks", **fields)
        assert isinstance(answer, calls.ListCorruptFileBlocksResponseProto)
        return list(answer.corrupt.files), answer.corrupt.cookie

    async def damaged(self, block: hdfs_types_pb2.ExtendedBlockProto, *names: str) -> None:
        await self.served.call("reportBadBlocks", user="bob", blocks=[located(block, *names)])
        self.work()

    def dies(self, name: str) -> None:
        node = self.served.cluster.nodes[name]
        node.alive = False
        for storage in node.storages.values():
            self.blocks.empty_storage(storage.held)
        self.work()


def located(
    block: hdfs_types_pb2.ExtendedBlockProto, *names: str
) -> hdfs_types_pb2.LocatedBlockProto:
    who = (
        hdfs_types_pb2.DatanodeIDProto(
            ipAddr="10.0.0.1", hostName=name, datanodeUuid=name, xferPort=1, infoPort=2, ipcPort=3
        )
        for name in names
    )
    infos = [hdfs_types_pb2.DatanodeInfoProto(id=one) for one in who]
    return hdfs_types_pb2.LocatedBlockProto(
        b=block, offset=0, locs=infos, corrupt=False, blockToken=NO_TOKEN
    )


async def names(served: Served, kind: str) -> list[str]:
    number = DatanodeReportTypeProto.Value(kind)
    answer = await served.call("getDatanodeReport", type=number)
    storages = await served.call("getDatanodeStorageReport", type=number)
    assert isinstance(answer, calls.GetDatanodeReportResponseProto)
    assert isinstance(storages, calls.GetDatanodeStorageReportResponseProto)
    found = [info.id.datanodeUuid for info in answer.di]
    assert [one.datanodeInfo.id.datanodeUuid for one in storages.datanodeStorageReports] == found
    for one in storages.datanodeStorageReports:
        if not one.datanodeInfo.id.datanodeUuid:
            continue  # it never came
        assert [report.capacity for report in one.storageReports] == [datanodes.ROOM.capacity]
    return found


@pytest.mark.row("B30")
async def test_datanodes_by_kind() -> None:
    kept = Kept()
    kept.dies("d2")
    assert await names(kept.served, "ALL") == ["d1", "d2", "d3"]
    assert await names(kept.served, "LIVE") == ["d1", "d3"]
    assert await names(kept.served, "DEAD") == ["d2"]
    nodes = kept.served.face.cluster.nodes
    states = {
        "DECOMMISSIONING": AdminState.DECOMMISSION_INPROGRESS,
        "ENTERING_MAINTENANCE": AdminState.ENTERING_MAINTENANCE,
        "IN_MAINTENANCE": AdminState.IN_MAINTENANCE,
    }
    for kind, state in states.items():
        assert await names(kept.served, kind) == []
        for name in ("d1", "d2"):
            kept.served.face.cluster.set_admin(nodes[name], state)
        assert await names(kept.served, kind) == ["d1"]
    kept.served.face.cluster.set_admin(nodes["d1"], AdminState.DECOMMISSIONED)
    assert await names(kept.served, "LIVE") == ["d1", "d3"]


@pytest.mark.row("B30")
async def test_the_include_list_names_dead_datanodes_that_never_came() -> None:
    kept = Kept()
    kept.dies("d2")
    nodes = kept.served.face.cluster.nodes
    lists = text_lists(f"{nodes['d1'].id.ip} never.example:1234", "never.example", ("i", "e"))
    kept.served.face.cluster.hosts = lists
    assert await names(kept.served, "DEAD") == [""]  # and d2 is not to be any more
    assert await names(kept.served, "ALL") == ["d1", "d3", ""]
    answer = await kept.served.call("getDatanodeReport", type=DatanodeReportTypeProto.DEAD)
    assert isinstance(answer, calls.GetDatanodeReportResponseProto)
    never = answer.di[0]
    assert (never.id.hostName, never.id.xferPort, never.lastUpdate) == ("never.example", 1234, 0)
    assert never.adminState == DatanodeInfoProto.DECOMMISSIONED


PRIVILEGED: dict[str, Fields] = {
    "getDatanodeReport": {"type": DatanodeReportTypeProto.ALL},
    "getDatanodeStorageReport": {"type": DatanodeReportTypeProto.ALL},
    "listCorruptFileBlocks": {"path": "/"},
}


@pytest.mark.parametrize(("method", "fields"), PRIVILEGED.items(), ids=PRIVILEGED.keys())
async def test_only_the_superuser_is_told(method: str, fields: Fields) -> None:
    kept = Kept()
    with pytest.raises(RemoteFault) as refusal:
        await kept.served.call(method, user="bob", **fields)
    assert refusal.value.java_class.endswith("AccessControlException")


async def test_sizes_are_those_of_live_datanodes() -> None:
    kept = Kept()
    rooms = {"d1": Room(1, 20, 300), "d2": Room(7, 7, 7), "d3": Room(4000, 50000, 600000)}
    for name, room in rooms.items():
        next(iter(kept.served.cluster.nodes[name].storages.values())).room = room
    kept.dies("d2")
    answer = await kept.served.call("getFsStats")
    assert isinstance(answer, calls.GetFsStatsResponseProto)
    assert (answer.capacity, answer.used, answer.remaining) == (4001, 50020, 600300)


NORMAL, SHARED = DatanodeStorageProto.NORMAL, DatanodeStorageProto.READ_ONLY_SHARED
STATES: dict[str, tuple[StorageState, DatanodeStorageProto.StorageState.ValueType, bool]] = {
    "in order": (StorageState.NORMAL, NORMAL, False),
    "shared": (StorageState.READ_ONLY_SHARED, SHARED, False),
    "failed": (StorageState.FAILED, NORMAL, True),
}


@pytest.mark.parametrize(("state", "told", "failed"), STATES.values(), ids=STATES.keys())
async def test_a_storage_is_told_with_its_sizes_and_state(
    state: StorageState, told: DatanodeStorageProto.StorageState.ValueType, failed: bool
) -> None:
    served = serve()
    (storage,) = datanodes.joined(served.cluster, "d1").storages.values()
    storage.room, storage.type, storage.state = Room(1, 2, 3, 4, 5), StorageType.SSD, state
    answer = await served.call("getDatanodeStorageReport", type=DatanodeReportTypeProto.ALL)
    assert isinstance(answer, calls.GetDatanodeStorageReportResponseProto)
    (found,) = answer.datanodeStorageReports[0].storageReports
    assert found == hdfs_types_pb2.StorageReportProto(
        storageUuid="DS-d1-0",
        failed=failed,
        capacity=1,
        dfsUsed=2,
        remaining=3,
        blockPoolUsed=4,
        nonDfsUsed=5,
        storage=DatanodeStorageProto(
            storageUuid="DS-d1-0", state=told, storageType=hdfs_types_pb2.StorageTypeProto.SSD
        ),
    )


async def test_no_block_group_of_erasure_coding_is_counted() -> None:
    answer = await serve().call("getFsECBlockGroupStats")
    assert isinstance(answer, calls.GetFsECBlockGroupStatsResponseProto)
    assert {number for _, number in answer.ListFields()} == {0}
    assert len(answer.ListFields()) == len(answer.DESCRIPTOR.fields)  # dfsadmin prints what is set


async def test_counts_follow_the_replicas() -> None:
    kept = Kept()
    await kept.file("/three", "d1", "d2", "d3")
    assert await kept.stats() == (0, 0, 0, 0)
    await kept.file("/one", "d1", replication=1)
    kept.dies("d2")
    assert await kept.stats() == (1, 0, 0, 0)
    kept.dies("d1")
    assert await kept.stats() == (2, 0, 1, 1)
    kept.dies("d3")
    assert await kept.stats() == (2, 0, 2, 1)


async def test_set_replication_orders_deletions_at_once() -> None:
    kept = Kept()
    await kept.file("/f", "d1", "d2", "d3")
    await kept.served.call("setReplication", src="/f", replication=1)
    kept.work()
    answer = await kept.served.call("getFsStats")
    assert isinstance(answer, calls.GetFsStatsResponseProto)
    assert answer.pending_deletion_blocks == 2


@pytest.mark.row("B17")
async def test_a_reader_reports_damage() -> None:
    kept = Kept(4)
    told: list[tuple[int, int, str]] = []
    kept.served.cluster.on_damage = lambda *replica: told.append(replica)
    block = await kept.file("/f", "d1", "d2", "d3")
    await kept.damaged(block, "d2")
    assert await kept.stats() == (1, 1, 0, 0)
    (found,) = (await datanodes.locations(kept.served, "/f")).blocks
    assert sorted(place.id.datanodeUuid for place in found.locs) == ["d1", "d3"]
    await kept.damaged(block, "d2")
    assert await kept.stats() == (1, 1, 0, 0)
    assert told == [(block.blockId, block.generationStamp, "d2")], "once"


@pytest.mark.row("B17")
async def test_a_block_that_is_damaged_everywhere_is_served_as_corrupt() -> None:
    kept = Kept()
    block = await kept.file("/f", "d1", "d2", "d3")
    await kept.damaged(block, "d1", "d2", "d3")
    assert await kept.stats() == (1, 1, 1, 0)
    (found,) = (await datanodes.locations(kept.served, "/f")).blocks
    assert (found.corrupt, len(found.locs)) == (True, 3)
    assert len(kept.blocks.invalidations) == 0


async def test_reports_that_say_nothing_of_a_present_replica_do_not_count() -> None:
    kept = Kept(4)
    block = await kept.file("/f", "d1", "d2", "d3")
    older = hdfs_types_pb2.ExtendedBlockProto()
    older.CopyFrom(block)
    older.generationStamp -= 1
    await kept.damaged(older, "d1")
    await kept.damaged(block, "d4")
    older.blockId += 1000
    await kept.damaged(older, "nobody")
    assert await kept.stats() == (0, 0, 0, 0)


async def test_damage_on_an_unknown_datanode_is_refused_and_nothing_is_marked() -> None:
    kept = Kept()
    block = await kept.file("/f", "d1", "d2", "d3")
    with pytest.raises(RemoteFault) as refusal:
        await kept.damaged(block, "d1", "nobody")
    assert refusal.value.message.startswith(
        f"Cannot mark blk_{block.blockId}_{block.generationStamp} as corrupt because datanode"
    )
    assert await kept.stats() == (0, 0, 0, 0)


async def test_damage_in_another_pool_is_refused() -> None:
    kept = Kept()
    block = await kept.file("/f", "d1", "d2", "d3")
    block.poolId = "BP-2"
    with pytest.raises(RemoteFault, match="Unexpected BlockPoolId BP-2"):
        await kept.damaged(block, "d1")
    assert await kept.stats() == (0, 0, 0, 0)


async def test_too_many_at_once_are_refused() -> None:
    kept = Kept()
    block = await kept.file("/f", "d1", "d2", "d3")
    with pytest.raises(RemoteFault, match="1001 replicas"):
        await kept.damaged(block, *["d1"] * 1001)
    assert await kept.stats() == (0, 0, 0, 0)
    await kept.damaged(block, *["d1"] * 1000)
    assert await kept.stats() == (1, 1, 0, 0)


@pytest.mark.row("B30")
async def test_corrupt_files_are_listed_in_pieces() -> None:
    kept = Kept()
    await kept.served.mkdirs("/a")
    for number in range(103):
        await kept.file(f"/a/{number}", "d1", replication=1)
    await kept.file("/b", "d1", replication=1)
    kept.dies("d1")
    first, cookie = await kept.corrupt_files("/a")
    rest, cookie = await kept.corrupt_files("/a", cookie)
    assert sorted(first + rest) == sorted(f"/a/{number}" for number in range(103))
    assert len(first) == 100
    assert await kept.corrupt_files("/a", cookie) == ([], cookie)
    assert (await kept.corrupt_files("/b"))[0] == ["/b"]


LISTED: dict[str, list[str]] = {
    "/": ["/a/b/f", "/ab", "/f"],
    "/a": ["/a/b/f"],
    "/a/b": ["/a/b/f"],
    "/a/b/f": ["/a/b/f"],
    "/ab": ["/ab"],
    "/a/": [],
    "/b": [],
}


async def test_corrupt_files_are_listed_by_whole_names() -> None:
    kept = Kept()
    await kept.served.mkdirs("/a/b")
    for path in LISTED["/"]:
        await kept.file(path, "d1", replication=1)
    kept.dies("d1")
    assert {path: sorted((await kept.corrupt_files(path))[0]) for path in LISTED} == LISTED


COOKIES: dict[str, tuple[list[str], str]] = {
    "": (["/f", "/g"], "2"),
    "0": (["/f", "/g"], "2"),
    "1": (["/g"], "2"),
    "2": ([], "2"),
    "9" * 19: ([], "9" * 19),
    "9" * 20: (["/f", "/g"], "2"),
    "-1": (["/f", "/g"], "2"),
    "one": (["/f", "/g"], "2"),
}


async def test_a_cookie_that_is_no_number_of_blocks_begins_anew() -> None:
    kept = Kept()
    await kept.file("/f", "d1", replication=1)
    await kept.file("/g", "d2", replication=1)
    kept.dies("d1")
    kept.dies("d2")
    assert {cookie: await kept.corrupt_files("/", cookie) for cookie in COOKIES} == COOKIES


async def test_corrupt_files_are_not_listed_before_blocks_are_judged() -> None:
    served = datanodes.with_datanodes(serve())
    with pytest.raises(RemoteFault) as refusal:
        await served.call("listCorruptFileBlocks", path="/")
    assert "replication queues have not been initialized" in refusal.value.message


async def test_no_datanode_is_called_slow_and_only_the_superuser_may_ask() -> None:
    """``dfsadmin -report`` asks for them at its end."""
    served = datanodes.with_datanodes(serve(), 2)
    answer = await served.call("getSlowDatanodeReport")
    assert answer == calls.GetSlowDatanodeReportResponseProto()
    with pytest.raises(RemoteFault, match="Superuser privilege is required"):
        await served.call("getSlowDatanodeReport", user="alice")
