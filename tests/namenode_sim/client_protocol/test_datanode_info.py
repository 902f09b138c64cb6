"""What clients read about one DataNode."""

import pytest

from hadoop.proto.hdfs_types_pb2 import DatanodeIDProto, DatanodeInfoProto
from namenode_sim.client_protocol.words.datanode_info import info_of
from namenode_sim.datanodes.model import DatanodeId, Node
from tests.namenode_sim.client_protocol.datanodes_in_memory import joined, with_datanodes, written
from tests.namenode_sim.client_protocol.namenode_in_memory import serve

WHO = DatanodeId("u1", "10.0.0.1", "host1", 9866, 9864, 9867, 9865)


def node_heard_at(seconds: float) -> Node:
    return Node(WHO, "3.5.0", seconds, "/rack", transceivers=5)


def test_a_datanode_is_told_as_it_registered_and_as_it_is() -> None:
    assert info_of(node_heard_at(100.25), 103.0, 50_000) == DatanodeInfoProto(
        id=DatanodeIDProto(
            ipAddr="10.0.0.1",
            hostName="host1",
            datanodeUuid="u1",
            xferPort=9866,
            infoPort=9864,
            ipcPort=9867,
            infoSecurePort=9865,
        ),
        capacity=0,
        dfsUsed=0,
        remaining=0,
        blockPoolUsed=0,
        nonDfsUsed=0,
        cacheCapacity=0,
        cacheUsed=0,
        lastUpdate=47_250,
        lastUpdateMonotonic=100_250,
        xceiverCount=5,
        location="/rack",
        adminState=DatanodeInfoProto.NORMAL,
        numBlocks=0,
        softwareVersion="3.5.0",
    )


# When it was last heard of and asked, in monotonic s and Unix ms, and both times as sent.
HEARD: dict[str, tuple[float, float, int, tuple[int, int]]] = {
    "just now": (100.0, 100.0, 50_000, (50_000, 100_000)),
    "half a second ago": (100.0, 100.5, 50_000, (49_500, 100_000)),
    "before the clock began": (-1.5, 100.0, 200_000, (98_500, 0)),
    "before the year 1970": (100.0, 160.0, 59_999, (0, 100_000)),
}


@pytest.mark.parametrize(("heard", "now", "now_ms", "told"), HEARD.values(), ids=HEARD.keys())
def test_when_a_datanode_was_last_heard_of(
    heard: float, now: float, now_ms: int, told: tuple[int, int]
) -> None:
    info = info_of(node_heard_at(heard), now, now_ms)
    assert (info.lastUpdate, info.lastUpdateMonotonic) == told


async def test_blocks_are_counted_where_they_are() -> None:
    served = with_datanodes(serve())
    await written(served, "/f", 10, 10)
    joined(served.cluster, "d4")
    counts = [info_of(node, 0.0, 0).numBlocks for node in served.cluster.nodes.values()]
    assert counts == [2, 2, 2, 0]


def test_when_the_last_full_report_was_taken_in() -> None:
    node = node_heard_at(100.0)
    assert not info_of(node, 103.0, 50_000).HasField("lastBlockReportTime")
    node.last_report = 101.5
    info = info_of(node, 103.0, 50_000)
    assert (info.lastBlockReportTime, info.lastBlockReportMonotonic) == (48_500, 101_500)
