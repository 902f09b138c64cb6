"""The summary of blocks and DataNodes for operators."""

import dataclasses
from collections.abc import Mapping

import pytest
from prometheus_client import REGISTRY

from ha.cluster.files_view import FilesView, VolumeView, files_view
from namenode_sim.datanode_protocol.metrics import MOST_DATANODES, measure
from namenode_sim.datanodes.draining import DrainRules
from namenode_sim.datanodes.files_summary import files_summary
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState, Room, StorageState
from namenode_sim.datanodes.reachable import count_lacking
from namenode_sim.namespace.changes import BlockAdded
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

ROOM = Room(capacity=1000, used=10, remaining=900)


def summary(few: Few, safe_mode: str | None = None) -> Mapping[str, object]:
    rules = LivenessRules()
    lacking = count_lacking(few.cluster, few.redundancy.pending, rules, few.now)
    return files_summary(few.cluster, rules, DrainRules(), safe_mode, few.now, lacking)


def told(few: Few, *, safe_mode: str | None = None) -> FilesView:
    found = files_view(summary(few, safe_mode))
    assert found is not None
    return found


def test_the_command_reads_what_the_namenode_tells() -> None:
    few = Few(["a", "b", "c"])
    for storage in few.storages.values():
        storage.room = ROOM
    assert dataclasses.replace(told(few, safe_mode="it waits"), datanodes=()) == FilesView(
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


@pytest.mark.parametrize("state", AdminState)
def test_only_datanodes_in_service_have_room(state: AdminState) -> None:
    few = Few(["a", "b", "c"])
    for storage in few.storages.values():
        storage.room = ROOM
    few.nodes["a"].admin = state
    found = told(few)
    expected = 3 if state is AdminState.NORMAL else 2
    assert found.live_datanodes == 3
    assert (found.capacity_bytes, found.used_bytes, found.remaining_bytes) == (
        1000 * expected, 10 * expected, 900 * expected,
    )  # fmt: skip


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
    found = dict(summary(few))
    del found["undrained_datanodes"]
    assert files_view(found) is not None
    del found["missing"]
    assert files_view(found) is None


REPLICAS = {
    "all are heard": ("abc", "", "", (0, 0)),
    "one of three is silent": ("abc", "a", "", (0, 1)),
    "two of three are silent": ("abc", "ab", "", (0, 1)),
    "all three are silent": ("abc", "abc", "", (1, 0)),
    "one of three is damaged, and the others are silent": ("abc", "ab", "c", (1, 0)),
    "the silent one has no replica": ("abc", "d", "", (0, 0)),
    "one of three was written, and the others are silent": ("a", "bc", "", (0, 1)),
    "one of three was written, and is silent": ("a", "a", "", (1, 0)),
    "none has a replica": ("", "a", "", (1, 0)),
    "a fourth replica makes up for a silent one": ("abcd", "a", "", (0, 0)),
    "four of four are silent": ("abcd", "abcd", "", (1, 0)),
}


@pytest.mark.parametrize(("on", "silent", "damaged", "lacking"), REPLICAS.values(), ids=REPLICAS)
@pytest.mark.parametrize("way", ["stale", "broken", "dead"])
def test_replicas_of_silent_datanodes_do_not_count(
    on: str, silent: str, damaged: str, lacking: tuple[int, int], way: str
) -> None:
    few = Few("abcd")
    slot = few.block(on, 4 if len(on) > 3 and silent == "abcd" else 3)
    few.damaged(slot, *damaged)
    few.work()
    for name in silent:
        few.nodes[name].broken = way == "broken"
        few.nodes[name].alive = way != "dead"
        few.nodes[name].last_heard -= 30.0 if way == "stale" else 0.0
    found = told(few)
    assert (found.missing, found.under_replicated) == lacking


COMING = {
    "its copies come to DataNodes that are heard": ("", (0, 0)),
    "its copies come, and another DataNode is silent": ("d", (0, 0)),
    "a copy is to come to a silent DataNode": ("b", (0, 1)),
    "copies come, and the only replica is on a silent DataNode": ("a", (1, 0)),
}


@pytest.mark.parametrize(("silent", "lacking"), COMING.values(), ids=COMING)
def test_a_copy_that_is_to_come_to_a_silent_datanode_does_not_count(
    silent: str, lacking: tuple[int, int]
) -> None:
    few = Few("abcd")
    few.block("a", 3)
    pending = few.redundancy.pending
    pending.add(BLOCK, [(few.nodes[name], few.storages[name]) for name in "bc"], few.now)
    few.work()
    for name in silent:
        few.nodes[name].broken = True
    found = told(few)
    assert (found.missing, found.under_replicated) == lacking


def lacking(few: Few, silent: str) -> tuple[int, int]:
    """Return how many blocks are missing and lack replicas when this DataNode is silent."""
    few.nodes[silent].broken = True
    found = told(few)
    return found.missing, found.under_replicated


def coming(few: Few, to: str, block: int = BLOCK) -> None:
    few.redundancy.pending.add(block, [(few.nodes[to], few.storages[to])], few.now)


def test_a_silent_datanode_without_volumes_and_a_copy_of_a_deleted_block_change_nothing() -> None:
    few = Few("ab")
    few.block("b", 1)
    few.nodes["a"].storages.clear()
    coming(few, "b", BLOCK + 9)
    assert lacking(few, "a") == (0, 0)


def test_enough_replicas_are_heard_before_the_excess_is_chosen() -> None:
    few = Few("abcd")
    few.block("abcd", 3)
    assert not few.losing()
    assert lacking(few, "a") == (0, 0)


def test_a_replica_that_is_to_be_deleted_does_not_count() -> None:
    few = Few("abcd")
    few.block("abcd", 3)
    few.work()
    stays = next(name for name in "abcd" if name not in few.losing())
    assert lacking(few, stays) == (0, 1)


def test_a_block_that_is_being_written_is_not_judged() -> None:
    few = Few("abcd")
    few.edit(BlockAdded(1, BLOCK, LENGTH, STAMP, 3, complete=False))
    coming(few, "b")
    assert lacking(few, "d") == (0, 0)


@pytest.mark.parametrize(("on", "counted"), [("", (1, 0)), ("ab", (0, 1))])
def test_what_the_queues_have_is_counted_once(on: str, counted: tuple[int, int]) -> None:
    few = Few("abcd")
    few.block(on, 3)
    few.work()
    coming(few, "d")
    assert lacking(few, "d") == counted


def test_a_standby_judges_no_replicas() -> None:
    few = Few("abc")
    few.block("abc", 3)
    few.state.demote()
    few.nodes["a"].broken = True
    assert (told(few).missing, told(few).under_replicated) == (0, 0)


def test_each_datanode_is_listed_and_the_worst_first() -> None:
    few = Few("abcd")
    few.block("bc", 3)
    few.storages["b"].room = ROOM
    few.storages["b"].state = StorageState.FAILED
    few.nodes["b"].failed_volumes = 2
    few.nodes["b"].last_heard = few.now - 31.0
    few.nodes["d"].alive = False
    found = told(few)
    assert found.failed_volumes == 2
    assert [(one.uuid, one.state, one.blocks) for one in found.datanodes] == [
        ("d", "dead", 0), ("b", "stale", 1), ("a", "live", 0), ("c", "live", 1),
    ]  # fmt: skip
    silent = found.datanodes[1]
    assert (silent.last_contact_seconds, silent.failed_volumes) == (31.0, 2)
    assert silent.volumes == (VolumeView("DS-b", "DISK", True, 1000, 10, 900, 1),)


def series(metric: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by its labels' values."""
    (family,) = (one for one in REGISTRY.collect() if one.name == metric)
    return {tuple(one.labels.values()): one.value for one in family.samples}


def test_each_datanode_has_series_of_its_own_until_it_is_gone() -> None:
    few = Few(["a", "b", "c"])
    for name, storage in few.storages.items():
        storage.room = Room(capacity=1000 + ord(name[0]), used=10, remaining=900)
    few.nodes["a"].alive = False
    few.nodes["b"].last_heard = few.now - 31.0
    few.nodes["c"].last_heard = few.now + 0.5
    who = {name: (node.id.transfer_address, node.id.host) for name, node in few.nodes.items()}
    measure(few.cluster, LivenessRules(), few.now)
    states = series("nnha_each_datanode_state")
    assert {key for key, value in states.items() if value} == {
        (*who["a"], "dead"), (*who["b"], "stale"), (*who["c"], "live"),
    }  # fmt: skip
    assert len(states) == 9
    contact = series("nnha_each_datanode_last_contact_seconds")
    assert (contact[who["b"]], contact[who["c"]]) == (31.0, 0.0)
    room = series("nnha_each_datanode_bytes")
    assert [room[(*who["b"], what)] for what in ("capacity", "used", "remaining")] == [
        1000 + ord("b"), 10, 900,
    ]  # fmt: skip
    assert series("nnha_each_datanode_blocks") == dict.fromkeys(who.values(), 0)
    del few.cluster.nodes[few.nodes["b"].id.uuid]
    measure(few.cluster, LivenessRules(), few.now)
    for metric in ("state", "last_contact_seconds", "bytes", "blocks"):
        assert {key[0] for key in series(f"nnha_each_datanode_{metric}")} == {
            who["a"][0], who["c"][0],
        }  # fmt: skip


def test_of_too_many_datanodes_the_worst_have_series() -> None:
    few = Few([f"n{number:03}" for number in range(MOST_DATANODES + 2)])
    few.nodes[f"n{MOST_DATANODES + 1:03}"].alive = False
    measure(few.cluster, LivenessRules(), few.now)
    shown = {host for _, host in series("nnha_each_datanode_blocks")}
    assert len(shown) == MOST_DATANODES
    assert few.nodes[f"n{MOST_DATANODES + 1:03}"].id.host in shown
