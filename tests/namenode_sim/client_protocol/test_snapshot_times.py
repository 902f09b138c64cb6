"""When a snapshot was taken: every reader of edits and images has the same time."""

import io
import random
from itertools import count

import pytest

from hadoop.proto import client_namenode_pb2 as calls
from journal.model import NamespaceInfo
from namenode_sim.image.reader import read_namespace
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.image.image_world import saved
from tests.namenode_sim.namespace.dump import differences

TIMED, UNTIMED = -67, -65
BEGIN = 1_700_000_000


def clocked(layout: int) -> Served:
    """Return a NameNode that writes edits of a layout, and whose clock goes on at each look."""
    served, ticks = serve(layout=layout), count(BEGIN)
    served.face.wall_clock = lambda: float(next(ticks))
    return served


async def times(served: Served, path: str) -> dict[str, int]:
    """Return what ``ls PATH/.snapshot`` shows."""
    fields = {"src": f"{path}/.snapshot", "startAfter": b"", "needLocation": False}
    answer = await served.call("getListing", **fields)  # type: ignore[arg-type]
    assert isinstance(answer, calls.GetListingResponseProto)
    return {one.path.decode(): one.modification_time for one in answer.dirList.partialListing}


async def listed(served: Served) -> dict[str, int]:
    """Return what ``lsSnapshot`` shows."""
    answer = await served.call("getSnapshotListing", snapshotRoot="/d")
    assert isinstance(answer, calls.GetSnapshotListingResponseProto)
    found = answer.snapshotList.snapshotListing
    return {one.dirStatus.path.decode(): one.dirStatus.modification_time for one in found}


async def test_a_snapshot_shows_when_it_was_taken_and_its_directory_too() -> None:
    served = clocked(TIMED)
    await served.mkdirs("/d")
    await served.take_snapshot("/d", "s1")
    taken = (await times(served, "/d"))["s1"]
    assert BEGIN * 1000 <= taken < (BEGIN + 60) * 1000
    assert await listed(served) == {"s1": taken}
    directory = await served.status("/d")
    assert directory is not None
    assert directory.modification_time == taken
    await served.mkdirs("/d/later")
    assert await listed(served) == {"s1": taken}
    names = {"snapshotOldName": "s1", "snapshotNewName": "s2"}
    await served.call("renameSnapshot", snapshotRoot="/d", **names)  # type: ignore[arg-type]
    renamed = (await listed(served))["s2"]
    assert renamed > taken


async def test_a_log_without_a_place_for_times_has_none_in_memory_either() -> None:
    """Otherwise a standby, which reads the log, would show others than the active."""
    served = clocked(UNTIMED)
    await served.mkdirs("/d")
    await served.take_snapshot("/d", "s1")
    assert await listed(served) == {"s1": 0}
    assert differences(served.namespace, served.log.replayed()) == []


@pytest.mark.parametrize(
    ("storage", "edits"), [(-63, -65), (-64, -65), (-65, -65), (-66, -66), (-67, -67)]
)
def test_edits_are_of_the_storages_layout_or_of_the_oldest_that_is_written(
    storage: int, edits: int
) -> None:
    assert NamespaceInfo(storage, 1, "CID-1", 0).edits_layout == edits


@pytest.mark.parametrize("layout", [UNTIMED, -66, TIMED])
@pytest.mark.parametrize("seed", range(8))
async def test_replay_image_and_failover_have_the_same_times(seed: int, layout: int) -> None:
    served, draw, names = clocked(layout), random.Random(seed), count()
    await served.mkdirs("/d/e")
    await served.call("allowSnapshot", snapshotRoot="/d")
    held: list[str] = []
    for _ in range(40):
        match draw.randrange(5):
            case 0:
                held.append(f"s{next(names)}")
                await served.call("createSnapshot", snapshotRoot="/d", snapshotName=held[-1])
            case 1 if held:
                gone = held.pop(draw.randrange(len(held)))
                await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName=gone)
            case 2 if held:
                old, new = draw.randrange(len(held)), f"s{next(names)}"
                fields = {"snapshotOldName": held[old], "snapshotNewName": new}
                await served.call("renameSnapshot", snapshotRoot="/d", **fields)  # type: ignore[arg-type]
                held[old] = new
            case 3:
                await served.touch(f"/d/e/f{next(names)}")
            case _:
                await served.mkdirs(f"/d/m{next(names)}")
    replayed = served.log.replayed()
    assert differences(served.namespace, replayed) == []
    loaded = read_namespace(io.BytesIO(saved(served.namespace, layout)))
    assert differences(served.namespace, loaded) == []
    shown = await listed(served)
    assert shown.keys() == set(held)
    assert all((time > BEGIN) is (layout != UNTIMED) for time in shown.values())
    for namespace in (replayed, loaded):
        assert await listed(serve(namespace=namespace, layout=layout)) == shown
