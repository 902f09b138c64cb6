"""A block recovery, step by step: which replicas take part, what is noted, and its outcome."""

from collections.abc import Mapping
from typing import Final

import pytest

from journal.model import TxId
from namenode_sim.blocks import incremental_reports, model
from namenode_sim.datanodes import recovery
from namenode_sim.datanodes.model import StorageState
from namenode_sim.datanodes.recovery import participants, reopen
from namenode_sim.namespace.changes import BlockAdded, BlockCut, BlockSettled, BlocksGone
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

RECOVERY_STAMP: Final = 2001
FINAL, WRITTEN = model.ReplicaState.FINALIZED, model.ReplicaState.RBW

Told = Mapping[str, tuple[model.ReplicaState, int]]
"""What DataNodes report of their replicas: the state, and by how much its stamp is newer."""


def being_written(few: Few, told: Told) -> model.Slot:
    few.edit(BlockAdded(1, BLOCK, LENGTH, STAMP, len(told), complete=False))
    for name, (state, newer) in told.items():
        tells(few, name, state, STAMP + newer)
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    return slot


def tells(few: Few, name: str, state: model.ReplicaState, stamp: int, length: int = LENGTH) -> None:
    told = model.Reported(state, stamp, length)
    incremental_reports.receive(few.state, few.storages[name].held, [(BLOCK, told)], few.now)


def who_takes_part(few: Few, slot: model.Slot) -> str:
    return "".join(sorted(node.id.uuid for node, _ in participants(few.cluster, slot)))


# ---- which replicas take part ----

TAKE_PART: Final[dict[str, tuple[Told, str, str]]] = {
    "none is final": ({"a": (WRITTEN, 0), "b": (WRITTEN, 0)}, "", "ab"),
    "one is final": ({"a": (WRITTEN, 0), "b": (FINAL, 0)}, "", "ab"),
    "one that is not final is newer": ({"a": (WRITTEN, 0), "b": (WRITTEN, 5)}, "", "ab"),
    "a recovery has left one": ({"a": (WRITTEN, 0), "b": (FINAL, 5)}, "", "b"),
    "a recovery has left one of the final ones": ({"a": (FINAL, 0), "b": (FINAL, 5)}, "", "b"),
    "it was at another one as well": ({"a": (WRITTEN, 5), "b": (FINAL, 5)}, "", "b"),
    "two recoveries have": ({"a": (FINAL, 5), "b": (FINAL, 6)}, "", "b"),
    "its DataNode is dead": ({"a": (WRITTEN, 0), "b": (FINAL, 5)}, "b", "ab"),
    "that of the newest is dead": ({"a": (FINAL, 5), "b": (FINAL, 6)}, "b", "a"),
}
"""What DataNodes reported, which of them are dead, and which ones take part."""


@pytest.mark.parametrize(("told", "dead", "take_part"), TAKE_PART.values(), ids=TAKE_PART)
def test_what_a_recovery_has_left_takes_part_alone(told: Told, dead: str, take_part: str) -> None:
    few = Few("ab")
    slot = being_written(few, told)
    for name in dead:
        few.nodes[name].alive = False
    assert who_takes_part(few, slot) == take_part


def test_of_a_block_that_is_cut_in_place_its_own_replicas_take_part() -> None:
    """Those that are only expected as well."""
    few = Few("ab")
    slot = few.block("a", 2)
    few.edit(
        BlockSettled(BLOCK, LENGTH, STAMP, complete=False), BlockCut(BLOCK, 40, STAMP + 1, BLOCK)
    )
    few.cluster.expect(slot, [few.storages[name] for name in "ab"])
    assert who_takes_part(few, slot) == "ab"


def test_of_a_block_that_is_cut_as_a_copy_the_good_replicas_of_its_source_take_part() -> None:
    few = Few("abc")
    source = few.block("abc", 3, number=BLOCK - 1)
    few.damaged(source, "c")
    slot = being_written(few, {})
    few.edit(BlockCut(BLOCK, 40, STAMP + 1, BLOCK - 1))
    assert (who_takes_part(few, slot), recovery.can_be_led(few.cluster, slot)) == ("ab", True)
    few.edit(BlocksGone((BLOCK - 1,)))
    assert (who_takes_part(few, slot), recovery.can_be_led(few.cluster, slot)) == ("ab", True)


def test_of_a_block_that_is_cut_as_a_copy_of_what_is_gone_none_takes_part() -> None:
    few = Few("ab")
    few.block("ab", 2, number=BLOCK - 1)
    slot = being_written(few, {})
    few.edit(BlocksGone((BLOCK - 1,)))
    few.edit(BlockCut(BLOCK, 40, STAMP + 1, BLOCK - 1))
    assert (who_takes_part(few, slot), recovery.can_be_led(few.cluster, slot)) == ("", False)


CAN_BE_LED: Final = {
    "both can lead": ("", "", True),
    "one is dead": ("a", "", True),
    "the storage of one has failed": ("", "a", True),
    "both are dead": ("ab", "", False),
    "the storages of both have failed": ("", "ab", False),
    "one is dead, and the storage of the other has failed": ("a", "b", False),
}
"""Which are dead, whose storage has failed, and whether any can lead."""


@pytest.mark.parametrize(("dead", "failed", "can_be"), CAN_BE_LED.values(), ids=CAN_BE_LED)
def test_a_living_datanode_with_a_storage_that_works_can_lead(
    dead: str, failed: str, can_be: bool
) -> None:
    few = Few("ab")
    slot = being_written(few, {"a": (WRITTEN, 0), "b": (WRITTEN, 0)})
    for name in dead:
        few.nodes[name].alive = False
    for name in failed:
        few.storages[name].state = StorageState.FAILED
    assert recovery.can_be_led(few.cluster, slot) is can_be
    leader = recovery.begin(few.cluster, BLOCK, RECOVERY_STAMP, TxId(5), few.now)
    assert (leader is not None) is can_be


# ---- the beginning ----


def test_a_recovery_is_noted_and_the_next_one_is_led_by_another_datanode() -> None:
    few = Few("ab")
    slot = being_written(few, {"a": (WRITTEN, 0), "b": (WRITTEN, 0)})
    few.nodes["b"].last_heard = 1.0
    for turn, name in enumerate("ba", start=1):
        stamp, now = RECOVERY_STAMP + turn, 50.0 * turn
        assert recovery.begin(few.cluster, BLOCK, stamp, TxId(5), now) is few.nodes[name]
        known = few.state.map.construction(slot)
        tried = frozenset(few.storages[each].held.number for each in "ba"[:turn])
        assert few.state.map.block(slot).stage is model.Stage.UNDER_RECOVERY
        assert (known.recovery_stamp, known.recovery_began) == (stamp, now)
        assert (known.tried, known.cut) == (tried, None)


def test_a_recovery_that_nobody_can_lead_has_not_begun() -> None:
    few = Few("a")
    slot = being_written(few, {"a": (WRITTEN, 0)})
    few.nodes["a"].alive = False
    assert recovery.begin(few.cluster, BLOCK, RECOVERY_STAMP, TxId(5), 50.0) is None
    known = few.state.map.construction(slot)
    assert few.state.map.block(slot).stage is model.Stage.UNDER_RECOVERY
    assert (known.recovery_stamp, known.recovery_began) == (RECOVERY_STAMP, None)
    assert not few.nodes["a"].recovery_orders


# ---- the end ----


def test_good_replicas_are_what_a_recovery_may_make_obsolete() -> None:
    few = Few("abc")
    slot = few.block("abc", 3)
    few.damaged(slot, "c")
    held = tuple(few.storages[name].held.number for name in "ab")
    assert recovery.before(few.state, slot) == recovery.Before(STAMP, held)


def test_a_recovered_block_is_where_its_leader_says_and_what_others_have_is_corrupt() -> None:
    few = Few("abc")
    slot = being_written(few, dict.fromkeys("abc", (FINAL, 0)))
    was = recovery.before(few.state, slot)
    few.edit(BlockSettled(BLOCK, LENGTH, RECOVERY_STAMP, complete=True))
    recovery.take_recovered(few.cluster, BLOCK, [few.storages[name] for name in "ab"], was)
    numbers = {name: few.storages[name].held.number for name in "abc"}
    assert few.state.map.block(slot).stage is model.Stage.COMPLETE
    assert [few.state.map.is_good(slot, numbers[name]) for name in "abc"] == [True, True, False]
    assert few.state.map.corrupt_marks(slot) == {
        numbers["c"]: model.CorruptMark(model.Reason.GENSTAMP_MISMATCH, STAMP)
    }  # fmt: skip


def test_a_replica_that_was_recovered_on_another_storage_of_its_datanode_is_not_corrupt() -> None:
    few = Few("a")
    other, empty = (few.cluster.add_storage(few.nodes["a"], uuid) for uuid in ("DS-2", "DS-3"))
    slot = being_written(few, {"a": (FINAL, 0)})
    was = recovery.before(few.state, slot)
    few.edit(BlockSettled(BLOCK, LENGTH, RECOVERY_STAMP, complete=True))
    recovery.take_recovered(few.cluster, BLOCK, [other], was)
    assert few.state.map.storages_of(slot) == [other.held.number]
    assert not few.state.map.holds(slot, empty.held.number)
    assert not few.state.map.corrupt_marks(slot)


def test_a_recovered_block_that_is_written_on_keeps_what_datanodes_have_told() -> None:
    few = Few("ab")
    slot = being_written(few, dict.fromkeys("ab", (WRITTEN, 0)))
    recovery.begin(few.cluster, BLOCK, RECOVERY_STAMP, TxId(5), 50.0)
    few.edit(BlockSettled(BLOCK, LENGTH, RECOVERY_STAMP, complete=False))
    tells(few, "a", WRITTEN, RECOVERY_STAMP, LENGTH + 7)
    reopen(few.cluster, BLOCK, [few.storages[name] for name in "ab"])
    known = few.state.map.construction(slot)
    assert few.state.map.block(slot).stage is model.Stage.UNDER_CONSTRUCTION
    assert (known.recovery_stamp, known.recovery_began, known.tried) == (None, None, frozenset())
    found = {name: known.at(few.storages[name].held.number) for name in "ab"}
    assert [(one.state, one.stamp, one.length) for one in found.values() if one is not None] == [
        (WRITTEN, RECOVERY_STAMP, LENGTH + 7),
        (FINAL, RECOVERY_STAMP, LENGTH),
    ]
