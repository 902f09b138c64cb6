"""addBlock: what its writer says of the places of a block, and the room that this takes."""

import time
from dataclasses import replace

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto.hdfs_types_pb2 import AddBlockFlagProto
from namenode_sim.datanodes.model import Room
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

BLOCK_SIZE = 1 << 27
BESIDE, REMOTE = "10.0.0.2", "10.9.9.9"
NO_LOCAL_WRITE, IGNORE_CLIENT_LOCALITY = (
    AddBlockFlagProto.NO_LOCAL_WRITE,
    AddBlockFlagProto.IGNORE_CLIENT_LOCALITY,
)


def on_two_racks() -> Served:
    """Put d1 and d2 (which is at 10.0.0.2) on one rack, d3 to d9 on another."""
    served = serve()
    for number in range(1, 10):
        datanodes_in_memory.joined(served.cluster, f"d{number}", rack="/a" if number < 3 else "/b")
    return served


async def first_places(served: Served, host: str, **more: object) -> set[str]:
    """Return where the only replicas go of the first blocks of many files of one writer."""
    found = set()
    for number in range(12):
        await served.create(f"/f{number}", host=host, replication=1)
        (place,) = (await datanodes_in_memory.add_block(served, f"/f{number}", None, **more)).locs
        found.add(place.id.datanodeUuid)
    return found


@pytest.mark.parametrize("host", [BESIDE, "d2"])
@pytest.mark.parametrize(
    ("flags", "places"),
    [([], {"d2"}), ([NO_LOCAL_WRITE], {"d1"})],
    ids=["beside the writer", "on its rack"],
)
async def test_a_writer_that_is_beside_a_datanode(
    host: str, flags: list[int], places: set[str]
) -> None:
    assert await first_places(on_two_racks(), host, flags=flags) == places


@pytest.mark.parametrize(
    ("host", "flags"),
    [(REMOTE, []), (BESIDE, [IGNORE_CLIENT_LOCALITY])],
    ids=["beside none", "wants it ignored"],
)
async def test_a_writer_whose_place_says_nothing(host: str, flags: list[int]) -> None:
    assert len(await first_places(on_two_racks(), host, flags=flags)) > 4


async def test_of_several_datanodes_beside_a_writer_each_gets_some() -> None:
    served = on_two_racks()
    datanodes_in_memory.joined(served.cluster, "other", rack="/b", ip=BESIDE)
    assert await first_places(served, BESIDE) == {"d2", "other"}


async def test_a_dead_datanode_is_beside_nobody() -> None:
    served = on_two_racks()
    datanodes_in_memory.joined(served.cluster, "dead", rack="/b", ip=BESIDE).alive = False
    assert await first_places(served, BESIDE) == {"d2"}


@pytest.mark.parametrize(
    ("favored", "places"),
    [
        (["10.0.0.5:9866"], {"d5"}),
        (["d7:9866"], {"d7"}),
        (["unknown:9866", "d4:9866", "10.0.0.3:9866"], {"d4"}),
        (["10.0.0.5:1"], {"d5"}),
        (["d7"], {"d7"}),
        (["10.0.0.8:1"], {"d8", "other"}),
        (["10.0.0.8:1234"], {"other"}),
        (["10.0.0.9:1"], {"d9"}),
    ],
    ids=[
        "by its address", "by its name", "the first that is known", "at another port",
        "without a port", "one of two at another port", "of two the one at the port",
        "of two the one that lives",
    ],
)  # fmt: skip
async def test_favored_datanodes(favored: list[str], places: set[str]) -> None:
    served = on_two_racks()
    other = datanodes_in_memory.joined(served.cluster, "other", rack="/b", ip="10.0.0.8")
    other.id = replace(other.id, transfer_port=1234)
    datanodes_in_memory.joined(served.cluster, "dead", rack="/b", ip="10.0.0.9").alive = False
    assert await first_places(served, BESIDE, favoredNodes=favored) == places


@pytest.mark.parametrize(("remaining", "fits"), [(BLOCK_SIZE, True), (BLOCK_SIZE - 1, False)])
async def test_a_storage_has_room_for_a_whole_block(remaining: int, *, fits: bool) -> None:
    served = datanodes_in_memory.with_datanodes(serve(), 1)
    (storage,) = served.cluster.nodes["d1"].storages.values()
    storage.room = Room(remaining=remaining)
    await served.create("/f", blockSize=BLOCK_SIZE)
    if fits:
        await datanodes_in_memory.add_block(served, "/f")
        return
    with pytest.raises(RemoteFault, match="DataNodes not taken: 1 no room"):
        await datanodes_in_memory.add_block(served, "/f")


def scheduled(served: Served) -> list[int]:
    now = time.monotonic()
    return [storage.scheduled.count(now) for storage in served.cluster.blocks.map.storages]


async def test_a_new_block_is_on_its_way_to_its_places_until_they_report_it() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/f")
    block = await datanodes_in_memory.add_block(served, "/f")
    assert scheduled(served) == [1, 1, 1]
    await datanodes_in_memory.add_block(served, "/f")  # its answer was lost
    assert scheduled(served) == [1, 1, 1]
    datanodes_in_memory.report(served, datanodes_in_memory.sized(block.b, 5), "d1", "d3")
    assert scheduled(served) == [0, 1, 0]
    await datanodes_in_memory.add_block(served, "/f", datanodes_in_memory.sized(block.b, 5))
    assert scheduled(served) == [1, 2, 1]


async def test_a_repeated_call_gets_the_places_of_the_first() -> None:
    served = on_two_racks()
    await served.create("/f")
    first = await datanodes_in_memory.add_block(served, "/f")
    for _ in range(5):
        again = await datanodes_in_memory.add_block(served, "/f")
        assert list(again.storageIDs) == list(first.storageIDs)
