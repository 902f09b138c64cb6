"""The summary of blocks and DataNodes for operators."""

import dataclasses

from ha.cluster.files_view import FilesView, files_view
from namenode_sim.datanodes.draining import DrainRules
from namenode_sim.datanodes.files_summary import files_summary
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import Room
from tests.namenode_sim.datanodes.few_nodes import Few

ROOM = Room(capacity=1000, used=10, remaining=900)


def told(few: Few, *, safe_mode: str | None = None) -> FilesView:
    found = files_view(
        files_summary(few.cluster, LivenessRules(), DrainRules(), safe_mode, few.now)
    )
    assert found is not None
    return found


def test_the_command_reads_what_the_namenode_tells() -> None:
    few = Few(["a", "b", "c"])
    for storage in few.storages.values():
        storage.room = ROOM
    assert told(few, safe_mode="it waits") == FilesView(
        safe_mode="it waits",
        live_datanodes=3,
        stale_datanodes=0,
        dead_datanodes=0,
        capacity_bytes=3000,
        used_bytes=30,
        remaining_bytes=2700,
        blocks=0,
        under_replicated=0,
        missing=0,
        corrupt=0,
        undrained_datanodes=3,
    )


def test_silent_and_dead_datanodes_are_counted_and_the_room_of_the_dead_is_not() -> None:
    few = Few(["a", "b", "c"])
    for storage in few.storages.values():
        storage.room = ROOM
    few.nodes["a"].alive = False
    few.nodes["b"].last_heard = few.now - 31.0
    found = told(few)
    counts = found.live_datanodes, found.stale_datanodes, found.dead_datanodes
    assert counts == (2, 1, 1)
    assert found.capacity_bytes == 2000


def test_missing_blocks_are_not_counted_as_under_replicated() -> None:
    few = Few(["a", "b", "c"])
    few.block("", 3)
    few.work()
    assert (told(few).blocks, told(few).missing, told(few).under_replicated) == (1, 1, 0)
    few.received("a")
    few.work()
    assert (told(few).missing, told(few).under_replicated) == (0, 1)
    assert dataclasses.astuple(told(few))[0] is None


def test_live_datanodes_of_hadoops_are_counted_until_they_are_drained() -> None:
    few = Few(["a", "b", "c"])
    few.nodes["a"].drain.done = True
    few.nodes["b"].alive = False
    assert told(few).undrained_datanodes == 1
    few.state.demote()
    assert told(few).undrained_datanodes == 0


def test_a_namenode_of_before_tells_nothing_of_that() -> None:
    few = Few(["a"])
    found = dict(files_summary(few.cluster, LivenessRules(), DrainRules(), None, few.now))
    del found["undrained_datanodes"]
    assert files_view(found) is not None
    del found["missing"]
    assert files_view(found) is None
