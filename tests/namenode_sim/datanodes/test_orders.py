"""Which orders leave with the answer to a heartbeat, how many, and in which order."""

from collections.abc import Callable, Sequence

import pytest

from journal.model import TxId
from namenode_sim.datanodes import commands, recovery
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import CopyOrder, RecoveryOrder
from namenode_sim.namespace import changes
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

RULES = LivenessRules(stale_seconds=30.0)
RECOVERY_STAMP = STAMP + 7
SOURCE = BLOCK - 1


def leave(
    few: Few, name: str = "a", *, durable: int = 9, limit: int = 1000
) -> tuple[commands.Command, ...]:
    """Return what leaves when the edits up to ``durable`` are durable."""
    return commands.orders(few.cluster, few.nodes[name], TxId(durable), RULES, few.now, limit)


# ---- copies ----


def has_to_copy(few: Few, *targets: str, number: int = BLOCK, cause: int = 1) -> None:
    to = tuple(few.storages[name].held.number for name in targets)
    few.nodes["a"].copy_orders.append(CopyOrder(number, to, TxId(cause)))


def copy_to(few: Few, *targets: str, number: int = BLOCK) -> commands.Copy:
    to = tuple((few.nodes[name], few.storages[name]) for name in targets)
    return commands.Copy(number, STAMP, LENGTH, to)


def test_copies_leave_once_their_edits_are_durable() -> None:
    few = Few("abc")
    few.block("a", 1)
    has_to_copy(few, "b", cause=5)
    has_to_copy(few, "c", cause=6)
    assert leave(few, durable=4) == ()
    assert leave(few, durable=5) == (commands.Transfer((copy_to(few, "b"),)),)
    assert leave(few, durable=5) == ()
    assert leave(few, durable=6) == (commands.Transfer((copy_to(few, "c"),)),)


def _dies(few: Few) -> None:
    few.nodes["b"].alive = False


def _is_removed(few: Few) -> None:
    few.cluster.remove_storage(few.nodes["b"], few.storages["b"])


TARGETS: dict[str, tuple[Callable[[Few], None], Sequence[str], Sequence[str]]] = {
    "all are there": (lambda _: None, "bc", "bc"),
    "one has died": (_dies, "bc", "c"),
    "one has lost its storage": (_is_removed, "bc", "c"),
    "all have died": (_dies, "b", ""),
    "all have lost their storages": (_is_removed, "b", ""),
}


@pytest.mark.parametrize(("change", "asked", "told"), TARGETS.values(), ids=TARGETS.keys())
def test_a_copy_goes_to_those_that_are_still_there(
    change: Callable[[Few], None], asked: Sequence[str], told: Sequence[str]
) -> None:
    few = Few("abc")
    few.block("a", 1)
    has_to_copy(few, *asked)
    change(few)
    assert leave(few) == ((commands.Transfer((copy_to(few, *told),)),) if told else ())


def test_nobody_copies_a_block_that_is_gone() -> None:
    few = Few("ab")
    few.block("a", 1)
    has_to_copy(few, "b", number=BLOCK + 1)
    has_to_copy(few, "b")
    assert leave(few) == (commands.Transfer((copy_to(few, "b"),)),)


@pytest.mark.parametrize(("under_way", "leaves"), [(0, 2), (1, 1), (2, 0), (3, 0)])
def test_a_datanode_makes_two_copies_at_once(under_way: int, leaves: int) -> None:
    few = Few("ab")
    for number in range(4):
        few.block("a", 1, BLOCK + number)
        has_to_copy(few, "b", number=BLOCK + number)
    few.nodes["a"].copies = under_way
    copies = [copy_to(few, "b", number=BLOCK + number) for number in range(4)]
    told = (commands.Transfer(tuple(copies[:leaves])),) if leaves else ()
    assert leave(few) == told
    assert len(few.nodes["a"].copy_orders) == 4 - leaves


# ---- deletions ----


def test_deletions_leave_once_their_edits_are_durable() -> None:
    few = Few("a")
    number = few.storages["a"].held.number
    few.state.invalidations.add(number, BLOCK, STAMP, TxId(5))
    few.state.invalidations.add(number, BLOCK + 1, STAMP + 1, TxId(6))
    assert leave(few, durable=4) == ()
    assert leave(few, durable=5) == (commands.Delete(((BLOCK, STAMP),)),)
    assert leave(few, durable=5) == ()
    assert leave(few, durable=6) == (commands.Delete(((BLOCK + 1, STAMP + 1),)),)


@pytest.mark.parametrize(
    ("limit", "leaving"), [(1, [1, 1, 1, 1]), (2, [2, 2]), (3, [3, 1]), (4, [4]), (5, [4]), (0, [])]
)
def test_so_many_deletions_leave_at_once_those_of_all_storages_together(
    limit: int, leaving: list[int]
) -> None:
    few = Few("a")
    few.cluster.add_storage(few.nodes["a"], "DS-other")
    replicas = [(BLOCK + turn, STAMP) for turn in range(4)]
    for turn, (block_id, stamp) in enumerate(replicas):
        storage = list(few.nodes["a"].storages.values())[turn // 2]
        few.state.invalidations.add(storage.held.number, block_id, stamp, TxId(1))
    for count in leaving:
        assert leave(few, limit=limit) == (commands.Delete(tuple(replicas[:count])),)
        del replicas[:count]
    assert leave(few, limit=limit) == ()


# ---- recoveries ----


def written(few: Few, on: Sequence[str], number: int = BLOCK) -> None:
    few.edit(changes.BlockAdded(1, number, LENGTH, STAMP, len(on), complete=False))
    slot = few.state.map.find(number)
    assert slot is not None
    few.cluster.expect(slot, [few.storages[name] for name in on])


def recovered(few: Few, number: int = BLOCK, *, stamp: int = RECOVERY_STAMP, cause: int = 5) -> str:
    """Begin a recovery; return which DataNode leads it."""
    leader = recovery.begin(few.cluster, number, stamp, TxId(cause), few.now)
    assert leader is not None
    return leader.id.uuid


def recovery_on(few: Few, on: Sequence[str], number: int = BLOCK) -> commands.Recovery:
    places = tuple((few.nodes[name], few.storages[name]) for name in on)
    return commands.Recovery(
        number, STAMP, LENGTH, RECOVERY_STAMP, places, becomes=number, cut=None
    )


def test_a_recovery_leaves_once_its_edit_is_durable() -> None:
    few = Few("ab")
    written(few, "ab")
    leader = recovered(few, cause=5)
    assert leave(few, leader, durable=4) == ()
    assert leave(few, leader, durable=5) == (commands.Recover((recovery_on(few, "ab"),)),)
    assert leave(few, leader, durable=5) == ()


def test_a_hundred_recoveries_leave_at_once() -> None:
    few = Few("a")
    for number in range(101):
        written(few, "a", BLOCK + number)
        recovered(few, BLOCK + number)
    told = [recovery_on(few, "a", BLOCK + number) for number in range(101)]
    assert leave(few) == (commands.Recover(tuple(told[:100])),)
    assert leave(few) == (commands.Recover(tuple(told[100:])),)


def _is_completed(few: Few) -> None:
    few.received("a")
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP, complete=True))
    assert not list(few.state.map.unfinished())


VOID: dict[str, Callable[[Few], object]] = {
    "the block is gone": lambda few: few.edit(changes.BlocksGone((BLOCK,))),
    "the block is complete": _is_completed,
    "another recovery was begun": lambda few: recovered(few, stamp=RECOVERY_STAMP + 1, cause=99),
}


@pytest.mark.parametrize("change", VOID.values(), ids=VOID.keys())
def test_a_recovery_that_is_over_is_not_told(change: Callable[[Few], object]) -> None:
    few = Few("a")
    written(few, "a")
    recovered(few)
    change(few)
    few.state.invalidations.clear()
    assert leave(few) == ()
    assert all(order.cause > TxId(9) for order in few.nodes["a"].recovery_orders)


TAKE_PART: dict[str, tuple[str, str, str]] = {
    # silent for the period of the stale, or dead; which ones take part
    "all are fresh": ("", "", "abc"),
    "one is stale": ("c", "", "ab"),
    "two are stale": ("bc", "", "abc"),
    "all are stale": ("abc", "", "abc"),
    "one is dead": ("", "c", "ab"),
    "one is dead, one stale": ("b", "c", "ab"),
    "two are dead": ("", "bc", "a"),
    "two are dead, and one stale": ("a", "bc", "a"),
}


@pytest.mark.parametrize(("stale", "dead", "take_part"), TAKE_PART.values(), ids=TAKE_PART.keys())
def test_the_stale_take_part_only_where_less_than_two_others_could(
    stale: str, dead: str, take_part: str
) -> None:
    few = Few("abc")
    written(few, "abc")
    leader = recovered(few)
    few.now = 1000.0
    for name, node in few.nodes.items():
        node.last_heard = few.now - (30.0 if name in stale else 29.9)
        node.alive = name not in dead
    assert leave(few, leader) == (commands.Recover((recovery_on(few, take_part),)),)


def test_a_cut_block_is_told_with_its_new_length() -> None:
    few = Few("a")
    few.block("a", 1)
    reopened = changes.BlockSettled(BLOCK, LENGTH, STAMP, complete=False)
    few.edit(reopened, changes.BlockCut(BLOCK, 40, STAMP + 1, BLOCK))
    recovered(few)
    (command,) = leave(few)
    assert isinstance(command, commands.Recover)
    (told,) = command.blocks
    assert (told.block_id, told.becomes, told.stamp, told.length) == (BLOCK, BLOCK, STAMP, LENGTH)
    assert told.recovery_stamp == RECOVERY_STAMP
    assert told.cut is not None
    assert (told.cut.length, told.cut.stamp, told.cut.source_id) == (40, RECOVERY_STAMP, BLOCK)


def copied_cut(few: Few) -> None:
    """Cut a block, which a snapshot keeps, to a first half under another id."""
    few.block("a", 1, SOURCE)
    few.edit(changes.BlockAdded(1, BLOCK, 40, STAMP + 1, 1, complete=False))
    few.edit(changes.BlockCut(BLOCK, 40, STAMP + 1, SOURCE))
    recovered(few)


def test_a_copied_cut_is_told_with_its_source() -> None:
    few = Few("a")
    copied_cut(few)
    (command,) = leave(few)
    assert isinstance(command, commands.Recover)
    (told,) = command.blocks
    assert (told.block_id, told.stamp, told.length) == (SOURCE, STAMP, LENGTH)
    assert (told.becomes, told.recovery_stamp) == (BLOCK, RECOVERY_STAMP)
    assert told.places == ((few.nodes["a"], few.storages["a"]),)


def test_a_copied_cut_without_its_source_is_not_told() -> None:
    few = Few("a")
    few.edit(changes.BlockAdded(1, BLOCK, 40, STAMP + 1, 1, complete=False))
    few.edit(changes.BlockCut(BLOCK, 40, STAMP + 1, SOURCE))
    assert recovery.begin(few.cluster, BLOCK, RECOVERY_STAMP, TxId(5), few.now) is None
    assert leave(few) == ()


def test_a_source_whose_snapshot_goes_is_told_as_long_as_there_is_its_copy() -> None:
    few = Few("a")
    copied_cut(few)
    few.edit(changes.BlocksGone((SOURCE,)))
    (command,) = leave(few)
    assert isinstance(command, commands.Recover)
    assert [one.block_id for one in command.blocks] == [SOURCE]
    assert few.state.map.find(SOURCE) is not None
    few.edit(changes.BlocksGone((BLOCK,)))
    assert few.state.map.find(SOURCE) is None


# ---- together ----


def test_a_recovery_goes_alone_and_copies_before_deletions() -> None:
    few = Few("ab")
    few.block("a", 1)
    written(few, "a", BLOCK + 1)
    has_to_copy(few, "b")
    few.state.invalidations.add(few.storages["a"].held.number, BLOCK + 2, STAMP, TxId(1))
    recovered(few, BLOCK + 1)
    assert leave(few) == (commands.Recover((recovery_on(few, "a", BLOCK + 1),)),)
    assert leave(few) == (
        commands.Transfer((copy_to(few, "b"),)),
        commands.Delete(((BLOCK + 2, STAMP),)),
    )
    assert leave(few) == ()


def test_a_recovery_that_is_over_keeps_nothing_back() -> None:
    few = Few("ab")
    few.block("a", 1)
    has_to_copy(few, "b")
    few.nodes["a"].recovery_orders.append(RecoveryOrder(BLOCK, RECOVERY_STAMP, TxId(1)))
    assert leave(few) == (commands.Transfer((copy_to(few, "b"),)),)


# ---- storages that are gone ----


def test_replicas_of_a_storage_that_is_gone_are_dropped_in_parts() -> None:
    few = Few("a")
    for number in range(5):
        few.block("a", 1, BLOCK + number)
    storage = few.storages["a"].held
    parts = [(few.state.lose_some(storage, 2), len(storage.slots)) for _ in range(4)]
    assert parts == [(2, 3), (2, 1), (1, 0), (0, 0)]


# ---- the bandwidth of moves ----


def test_a_bandwidth_leaves_once_and_with_the_other_orders() -> None:
    few = Few("abc")
    few.block("a", 1)
    has_to_copy(few, "b")
    few.nodes["a"].bandwidth_order = 5000
    copies = commands.Transfer((copy_to(few, "b"),))
    assert leave(few) == (copies, commands.Bandwidth(5000))
    assert leave(few) == ()
    assert leave(few, "b") == ()


def test_a_bandwidth_ends_with_the_term() -> None:
    few = Few("a")
    few.nodes["a"].bandwidth_order = 5000
    few.nodes["a"].forget_orders()
    assert leave(few) == ()
