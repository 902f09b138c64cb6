"""Where blocks are: which of them, at which replicas, in which order."""

import time

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, ILLEGAL_ARGUMENT
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto, LocatedBlockProto
from namenode_sim.blocks.model import CorruptMark, ReplicaState
from namenode_sim.blocks.model import Reason as Damage
from namenode_sim.client_protocol.words.block_locations import block_at
from namenode_sim.client_protocol.words.datanode_info import info_of
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanodes.model import Room
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, serve


def names(block: LocatedBlockProto) -> list[str]:
    return [place.id.datanodeUuid for place in block.locs]


RANGES: dict[str, tuple[int, int, list[int]]] = {
    "all": (0, 100, [0, 10, 20]),
    "as much as there may be": (0, (1 << 63) - 1, [0, 10, 20]),
    "the first": (0, 10, [0]),
    "inside one": (12, 3, [10]),
    "over an end": (9, 2, [0, 10]),
    "from an end": (10, 1, [10]),
    "the last byte": (24, 1, [20]),
    "behind the end": (25, 1, []),
    "nothing": (10, 0, [10]),
}


@pytest.mark.parametrize(("offset", "length", "found"), RANGES.values(), ids=RANGES.keys())
async def test_the_blocks_of_a_range(offset: int, length: int, found: list[int]) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await datanodes_in_memory.written(served, "/f", 10, 10, 5)
    answer = await datanodes_in_memory.locations(served, "/f", offset, length)
    assert [block.offset for block in answer.blocks] == found
    assert (answer.fileLength, answer.lastBlock.offset) == (25, 20)
    assert answer.isLastBlockComplete


async def test_an_empty_file_has_no_blocks() -> None:
    served = serve()
    await served.touch("/f")
    answer = await datanodes_in_memory.locations(served, "/f")
    assert answer.fileLength == 0
    assert not answer.blocks
    assert not answer.HasField("lastBlock")
    assert not answer.isLastBlockComplete


async def test_the_length_leaves_out_a_block_that_is_being_written() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/f")
    one = datanodes_in_memory.sized((await datanodes_in_memory.add_block(served, "/f")).b, 10)
    datanodes_in_memory.report(served, one, "d1")
    two = await datanodes_in_memory.add_block(served, "/f", one)
    datanodes_in_memory.report(served, two.b, "d2", length=3, state=ReplicaState.RBW)
    answer = await datanodes_in_memory.locations(served, "/f")
    assert (answer.fileLength, answer.underConstruction) == (10, True)
    assert not answer.isLastBlockComplete
    assert [block.offset for block in answer.blocks] == [0, 10]
    assert sorted(names(answer.lastBlock)) == ["d1", "d2", "d3"]
    assert not answer.lastBlock.corrupt
    assert not await served.complete("/f", last=datanodes_in_memory.sized(two.b, 7))
    answer = await datanodes_in_memory.locations(served, "/f")
    # committed, not yet reported
    assert (answer.fileLength, answer.lastBlock.b.numBytes) == (10, 7)


async def test_a_snapshot_s_file_ends_where_it_ended() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/s")
    await datanodes_in_memory.written(served, "/s/f", 10)
    await served.take_snapshot("/s", "one")
    await served.call("delete", src="/s/f", recursive=False)
    answer = await datanodes_in_memory.locations(served, "/s/.snapshot/one/f")
    assert (answer.fileLength, answer.underConstruction) == (10, False)
    assert len(answer.blocks[0].locs) == 3


@pytest.mark.parametrize(
    ("offset", "length", "starts"),
    [(0, 1 << 40, [0, 10]), (0, 5, [0]), (5, 1 << 40, [0, 10]), (12, 1 << 40, [10])],
)
async def test_a_file_in_a_snapshot_has_no_block_of_which_nothing_was_known(
    offset: int, length: int, starts: list[int]
) -> None:
    """Take three blocks, of which the last one had just been begun."""
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/s/f")
    previous: ExtendedBlockProto | None = None
    for _ in range(2):
        previous = datanodes_in_memory.sized(
            (await datanodes_in_memory.add_block(served, "/s/f", previous)).b, 10
        )
        datanodes_in_memory.report(served, previous, "d1", "d2", "d3")
    await datanodes_in_memory.add_block(served, "/s/f", previous)
    await served.take_snapshot("/s", "one")
    answer = await datanodes_in_memory.locations(served, "/s/.snapshot/one/f", offset, length)
    assert [block.offset for block in answer.blocks] == starts


async def test_a_snapshot_s_file_is_not_written_with_the_one_that_goes_on() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/s")
    await datanodes_in_memory.written(served, "/s/f", 10)
    await served.take_snapshot("/s", "one")

    async def ends(src: str) -> tuple[bool, int, int, bool]:
        answer = await datanodes_in_memory.locations(served, src)
        (block,) = answer.blocks
        assert block.b == answer.lastBlock.b
        length = answer.fileLength
        return answer.underConstruction, length, block.b.numBytes, answer.isLastBlockComplete

    append: Fields = {"src": "/s/f", "clientName": "writer"}
    opened = await served.call("append", **append)
    assert isinstance(opened, calls.AppendResponseProto)
    assert await ends("/s/f") == (True, 0, 10, False)
    assert await ends("/s/.snapshot/one/f") == (False, 10, 10, True)
    datanodes_in_memory.report(
        served, datanodes_in_memory.sized(opened.block.b, 15), "d1", "d2", "d3"
    )
    assert await served.complete("/s/f", last=datanodes_in_memory.sized(opened.block.b, 15))
    assert await ends("/s/f") == (False, 15, 15, True)
    assert await ends("/s/.snapshot/one/f") == (False, 10, 10, True)


async def test_a_block_that_nobody_has_is_not_corrupt() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await datanodes_in_memory.written(served, "/f", 10)
    for storage in served.cluster.blocks.map.storages:
        served.cluster.blocks.empty_storage(storage)
    (found,) = (await datanodes_in_memory.locations(served, "/f")).blocks
    assert (len(found.locs), found.corrupt) == (0, False)


async def test_corrupt_replicas_are_named_only_where_there_are_no_others() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    (block,) = await datanodes_in_memory.written(served, "/f", 10)
    state = served.cluster.blocks
    slot = state.map.find(block.blockId)
    assert slot is not None
    for count, name in enumerate(["d1", "d2", "d3"], start=1):
        (storage,) = served.cluster.nodes[name].storages.values()
        state.mark_corrupt(slot, storage.held, CorruptMark(Damage.CORRUPTION_REPORTED, None))
        (found,) = (await datanodes_in_memory.locations(served, "/f")).blocks
        assert len(found.locs) == (3 - count or 3)
        assert found.corrupt is (count == 3)
        assert (name in names(found)) is (count == 3)


async def test_the_nearest_come_first_and_who_may_be_gone_comes_last() -> None:
    served = serve()
    for name, rack, ip in (
        ("d1", "/a", "10.0.0.1"),
        ("d2", "/a", "10.0.0.2"),
        ("d3", "/b", "10.0.0.3"),
    ):
        datanodes_in_memory.joined(served.cluster, name, rack=rack, ip=ip)
    await datanodes_in_memory.written(served, "/f", 10)

    async def order(host: str) -> list[str]:
        (block,) = (await datanodes_in_memory.locations(served, "/f", host=host)).blocks
        return names(block)

    assert await order("10.0.0.1") == ["d1", "d2", "d3"]
    assert await order("10.0.0.2") == ["d2", "d1", "d3"]
    assert (await order("10.0.0.3"))[0] == "d3"
    assert len({tuple(await order("10.9.9.9")) for _ in range(100)}) == 6
    served.cluster.nodes["d1"].broken = True
    assert await order("10.0.0.1") == ["d2", "d3", "d1"]
    served.cluster.nodes["d2"].last_heard = time.monotonic() - 100
    assert (await order("10.0.0.1"))[0] == "d3"


async def test_a_datanodes_sizes_are_those_of_its_storages() -> None:
    served = serve()
    node = datanodes_in_memory.joined(served.cluster, "d1", storages=2)
    rooms = (Room(1000, 200, 30, 4, 5), Room(6000, 700, 80, 9, 1))
    for storage, room in zip(node.storages.values(), rooms, strict=True):
        storage.room = room
    found = info_of(node, 0.0, 0)
    sizes = (found.capacity, found.dfsUsed, found.remaining, found.blockPoolUsed)
    assert (*sizes, found.nonDfsUsed) == tuple(map(sum, zip(*rooms, strict=True)))


async def test_a_datanode_is_described() -> None:
    served = datanodes_in_memory.with_datanodes(serve(), 1)
    served.cluster.nodes["d1"].last_heard = 90.0
    served.face.clock, served.face.wall_clock = lambda: 100.0, lambda: 60.0
    await served.create("/f", replication=1)
    found = await datanodes_in_memory.add_block(served, "/f")
    (place,) = found.locs
    assert (place.id.ipAddr, place.id.xferPort, place.id.ipcPort) == ("10.0.0.1", 9866, 9867)
    assert (place.location, place.capacity) == ("/default-rack", 1 << 40)
    assert place.lastUpdate == 50_000
    assert found.b.poolId == datanodes_in_memory.POOL
    assert list(found.isCached) == [False]


async def test_how_long_a_datanode_may_be_silent_is_a_setting() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await datanodes_in_memory.written(served, "/f", 10)
    served.cluster.stale_seconds = 1000.0
    served.cluster.nodes["d1"].last_heard = time.monotonic() - 100
    first = {
        names((await datanodes_in_memory.locations(served, "/f")).blocks[0])[0] for _ in range(50)
    }
    assert first == {"d1", "d2", "d3"}
    served.cluster.stale_seconds = 30.0
    for _ in range(20):
        assert names((await datanodes_in_memory.locations(served, "/f")).blocks[0])[-1] == "d1"


READINGS: dict[str, tuple[int, str, bool]] = {
    "long after the last time": (3_600_000, "/s/f", True),
    "in the hour after it": (3_600_000, "/s/new", False),
    "as exact as can be": (1, "/s/f", True),
    "no access times": (0, "/s/f", False),
    "in a snapshot": (3_600_000, "/s/.snapshot/one/f", False),
}


@pytest.mark.parametrize(("precision_ms", "src", "moves"), READINGS.values(), ids=READINGS.keys())
async def test_when_reading_moves_the_access_time(precision_ms: int, src: str, moves: bool) -> None:
    served = serve()
    await served.touch("/s/f")
    await served.call("setTimes", src="/s/f", mtime=5, atime=5)
    await served.take_snapshot("/s", "one")
    await served.touch("/s/new")
    served.face.settings = Settings(access_time_precision_ms=precision_ms)
    edits = len(served.log.frames)
    await datanodes_in_memory.locations(served, src)
    assert len(served.log.frames) == edits + moves


NOT_LOCATED: dict[str, tuple[Fields, str, str]] = {
    "nobody reads without the right to": (
        {"user": "bob"},
        ACCESS_CONTROL,
        'user=bob, access=READ, inode="/f"',
    ),
    "a negative offset": (
        {"offset": 1 << 63},
        ILLEGAL_ARGUMENT,
        "Negative offset is not supported. File: /f",
    ),
    "a negative length": (
        {"length": (1 << 64) - 1},
        ILLEGAL_ARGUMENT,
        "Negative length is not supported. File: /f",
    ),
}


@pytest.mark.parametrize(
    ("fields", "java_class", "words"), NOT_LOCATED.values(), ids=NOT_LOCATED.keys()
)
async def test_what_is_not_located(fields: Fields, java_class: str, words: str) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await datanodes_in_memory.written(served, "/f", 10)
    await served.call("setPermission", src="/f", permission={"perm": 0o600})
    asked: Fields = {"src": "/f", "offset": 0, "length": 10, **fields}
    with pytest.raises(RemoteFault, match=words) as refusal:
        await served.call("getBlockLocations", **asked)
    assert refusal.value.java_class == java_class


def test_a_striped_group_s_id_travels_as_unsigned() -> None:
    group = block_at(serve().scene(), Block(-(1 << 63), 10, 1001), -1, ())
    assert (group.b.blockId, group.offset) == (1 << 63, (1 << 64) - 1)
