"""Which blocks are judged, what is waited for, and which replicas are to go: one table a rule."""

from typing import Final

import pytest

from namenode_sim.blocks.model import CorruptMark, Reason
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.model import Room
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.datanodes.redundancy_check import RedundancyRules, is_complete
from namenode_sim.namespace import changes
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

AT_ONCE: Final = RedundancyRules(delete_corrupt_at_once=True)


# ---- which blocks are judged ----

JUDGED: Final = {
    "a complete block": (BLOCK, True, True),
    "the block with the lowest id": (1, True, True),
    "a block that is being written": (BLOCK, False, False),
    "a striped group": (-BLOCK, True, False),
}
"""A block's id, whether it is complete, and whether it is judged."""


@pytest.mark.parametrize(("number", "complete", "judged"), JUDGED.values(), ids=JUDGED)
def test_complete_blocks_that_are_not_striped_are_judged(
    number: int, complete: bool, judged: bool
) -> None:
    few = Few("a")
    few.edit(changes.BlockAdded(1, number, LENGTH, STAMP, 1, complete=complete))
    slot = few.state.map.find(number)
    assert slot is not None
    assert is_complete(few.state.map.block(slot)) is judged


def test_the_place_of_a_block_that_is_gone_is_not_judged() -> None:
    few = Few("a")
    slot = few.block("a", expected=1)
    few.edit(changes.BlocksGone((BLOCK,)))
    assert not is_complete(few.state.map.block(slot))


def test_of_a_block_that_is_written_again_nothing_is_copied_awaited_or_postponed() -> None:
    few = Few("abcd")
    slot = few.block("abc", expected=4)
    few.damaged(slot, "c")
    few.unconfirmed("a")
    few.round()
    assert few.targets() == ["d"]
    assert few.state.needed.priority(slot) is Priority.LOW
    assert (slot in few.state.rechecks.postponed, len(few.redundancy.pending)) == (True, 1)
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP + 1, complete=False))
    few.work()
    assert few.state.needed.priority(slot) is None
    assert (slot in few.state.rechecks.postponed, len(few.redundancy.pending)) == (False, 0)


SPREAD: Final = {
    "on one of two racks": ("xy", "ab", 2, Priority.BADLY_DISTRIBUTED),
    "on two racks": ("xy", "ac", 2, None),
    "on two racks, and one for each replica would be more": ("xyz", "abc", 3, None),
    "on three racks": ("xyz", "ace", 3, None),
    "a single one": ("xy", "a", 1, None),
    "on the only rack": ("x", "ab", 2, None),
}
"""The racks, each with two DataNodes, where the block is, expected, and its queue."""


@pytest.mark.row("B14")
@pytest.mark.parametrize(("racks", "on", "expected", "queue"), SPREAD.values(), ids=SPREAD)
def test_replicas_are_to_stand_on_two_racks_where_there_are_two(
    racks: str, on: str, expected: int, queue: Priority | None
) -> None:
    names = "abcdef"[: 2 * len(racks)]
    few = Few(names, {name: f"/{racks[turn // 2]}" for turn, name in enumerate(names)})
    slot = few.block(on, expected)
    few.work()
    assert few.state.needed.priority(slot) is queue


# ---- what is waited for ----


def test_a_copy_has_no_more_time_because_its_block_is_judged_again() -> None:
    few = Few("abc")
    few.block("a", expected=3)
    few.round(3.0)
    few.now = 200.0
    few.received("b")
    few.work()
    few.round(102.0)
    assert (few.now, few.redundancy.timeouts) == (302.0, 0)
    few.round(1.0)
    assert (few.now, few.redundancy.timeouts) == (303.0, 1)


def test_a_storage_that_is_gone_when_its_written_block_is_judged_is_not_waited_for() -> None:
    few = Few("abc")
    few.edit(changes.BlockAdded(1, BLOCK, 0, STAMP, 3, complete=False))
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    few.cluster.expect(slot, [few.storages[name] for name in "abc"])
    few.received("a")
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP, complete=True))
    few.cluster.remove_storage(few.nodes["c"], few.storages["c"])
    few.work()
    assert few.redundancy.pending.places(BLOCK) == ((few.nodes["b"], few.storages["b"]),)


def test_a_copy_to_a_storage_that_is_gone_is_not_waited_for() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.round()
    assert len(few.redundancy.pending) == 1
    few.cluster.remove_storage(few.nodes["b"], few.storages["b"])
    few.edit(changes.ReplicationSet((BLOCK,), 2))
    few.work()
    assert few.nodes["b"].alive
    assert len(few.redundancy.pending) == 0


# ---- excess ----


def test_a_replica_on_a_dead_datanode_is_not_certain() -> None:
    """A dead DataNode's replicas are forgotten piece by piece."""
    few = Few("abcd")
    slot = few.block("abcd", expected=3)
    few.nodes["d"].alive = False
    few.work()
    assert (few.losing(), slot in few.state.rechecks.postponed) == ("", True)


LATE: Final = {
    "it was heard now": (0.0, "c"),
    "it missed some heartbeats": (11.0, "c"),
    "it missed nearly four": (12.0, "c"),
    "it missed four": (12.1, "a"),
    "it is silent for long": (300.0, "a"),
}
"""How long a DataNode is silent, and who loses its replica: it, or the one with the least room."""


@pytest.mark.parametrize(("silent_seconds", "loses"), LATE.values(), ids=LATE)
def test_a_datanode_that_missed_four_heartbeats_loses_its_replica_first(
    silent_seconds: float, loses: str
) -> None:
    few = Few("abc")
    few.block("abc", expected=2)
    few.storages["c"].room = Room(capacity=10**9, remaining=10**8)
    few.now = 1000.0
    for name, node in few.nodes.items():
        node.last_heard = few.now - (silent_seconds if name == "a" else 0.0)
    few.work()
    assert few.losing() == loses


# ---- corrupt replicas ----

DOUBTS: Final = {
    "all are certain": "",
    "the live one is not": "a",
    "the corrupt one is not": "b",
    "the one that is to go is not": "c",
}
"""Which DataNode is dead, whose replicas are forgotten piece by piece."""


@pytest.mark.parametrize("dead", DOUBTS.values(), ids=DOUBTS)
@pytest.mark.parametrize("at_once", [False, True], ids=["by default", "at once"])
def test_a_corrupt_replica_waits_for_certainty_unless_it_is_to_go_at_once(
    dead: str, at_once: bool
) -> None:
    few = Few("abc")
    slot = few.block("abc", expected=1)
    few.damaged(slot, "b")
    few.state.order_deletion(slot, few.storages["c"].held.number, few.now)
    for name in dead:
        few.nodes[name].alive = False
    if at_once:
        few.redundancy = Redundancy(few.cluster, AT_ONCE)
    few.work()
    waits = dead != "" and not at_once
    assert (few.losing(), slot in few.state.rechecks.postponed) == ("c" if waits else "bc", waits)


def test_a_block_without_a_corrupt_replica_to_delete_waits_for_nobody() -> None:
    few = Few("abcd")
    whole, settled = few.block("ab", expected=2), few.block("abcd", 3, number=BLOCK + 1)
    few.damaged(settled, "d")
    few.work()
    assert few.losing() == "d"
    few.unconfirmed("a")
    few.edit(changes.ReplicationSet((BLOCK,), 2), changes.ReplicationSet((BLOCK + 1,), 3))
    few.work()
    assert (whole in few.state.rechecks.postponed, settled in few.state.rechecks.postponed) == (
        False,
        False,
    )


DAMAGED, BY_STAMP = Reason.CORRUPTION_REPORTED, Reason.GENSTAMP_MISMATCH

SUPERFLUOUS: Final = {
    "as many live ones as expected": (1, 2, "ab", CorruptMark(DAMAGED, STAMP), True),
    "as many as expected, which was more once": (3, 2, "ab", CorruptMark(DAMAGED, STAMP), True),
    "fewer than expected": (1, 3, "ab", CorruptMark(DAMAGED, STAMP), False),
    "an older one, beside the fewest live ones":
        (1, 3, "a", CorruptMark(BY_STAMP, STAMP - 1), True),
    "an older one, beside just enough live ones":
        (2, 3, "ab", CorruptMark(BY_STAMP, STAMP - 1), True),
    "an older one, beside too few live ones":
        (2, 3, "a", CorruptMark(BY_STAMP, STAMP - 1), False),
    "a newer one": (1, 3, "a", CorruptMark(BY_STAMP, STAMP + 1), False),
    "one whose stamp is the block's by now": (1, 3, "a", CorruptMark(BY_STAMP, STAMP), False),
    "one whose stamp was not told": (1, 3, "a", CorruptMark(BY_STAMP, None), False),
    "a damaged one, of a block that was appended to":
        (1, 3, "a", CorruptMark(DAMAGED, STAMP - 1), False),
}  # fmt: skip
"""The fewest replicas of a complete block, expected ones, live ones, the corrupt one, whether it
goes.  DataNodes for more replicas are there."""


@pytest.mark.parametrize(
    ("minimum", "expected", "on", "mark", "goes"), SUPERFLUOUS.values(), ids=SUPERFLUOUS
)
def test_a_corrupt_replica_goes_if_the_others_suffice_or_it_fell_out_of_a_pipeline(
    minimum: int, expected: int, on: str, mark: CorruptMark, goes: bool
) -> None:
    few = Few("abcdef", minimum=minimum)
    slot = few.block(on, expected)
    few.state.mark_corrupt(slot, few.storages["f"].held, mark)
    few.work()
    assert few.losing() == ("f" if goes else "")


def test_damaged_replicas_stay_that_are_not_more_than_expected_with_the_good_ones() -> None:
    few = Few("abcd")
    slot = few.block("abc", expected=3)
    few.damaged(slot, "b", "c")
    few.work()
    assert few.losing() == ""


ROOM: Final = {
    "the only one stays": ("c", 1, "c", "", "", ""),
    "two good ones are enough": ("abc", 4, "abc", "", "", "c"),
    "one good one is not": ("ac", 3, "ac", "", "", ""),
    "another DataNode could have a copy": ("abcd", 3, "abc", "", "", ""),
    "a dead DataNode could not": ("abcd", 3, "abc", "d", "", "c"),
    "another DataNode will have room": ("abcd", 3, "abcd", "", "d", "d"),
}
"""DataNodes, expected, where the block is, who is dead, who is already to delete its replica,
and who is to delete one then.  The replica of c is damaged."""


@pytest.mark.parametrize(
    ("nodes", "expected", "on", "dead", "doomed", "losing"), ROOM.values(), ids=ROOM
)
def test_a_corrupt_replica_makes_room_where_every_datanode_has_one(
    nodes: str, expected: int, on: str, dead: str, doomed: str, losing: str
) -> None:
    few = Few(nodes)
    slot = few.block(on, expected)
    few.damaged(slot, "c")
    for name in doomed:
        few.state.order_deletion(slot, few.storages[name].held.number, few.now)
    for name in dead:
        few.dies(name)
    few.work()
    assert few.losing() == losing


def test_no_room_is_made_beside_good_replicas_that_are_not_certain() -> None:
    """Not even where corrupt replicas are deleted at once."""
    few = Few("abc")
    slot = few.block("abc", expected=3)
    few.damaged(slot, "c")
    few.unconfirmed("a")
    few.redundancy = Redundancy(few.cluster, AT_ONCE)
    few.work()
    assert few.losing() == ""
