"""The owner of blocks and DataNodes: roles, orders, reports, deaths and safe mode."""

import asyncio
from collections.abc import Callable

import pytest

from namenode_sim.blocks.errors import MalformedReport
from namenode_sim.blocks.model import Stage
from namenode_sim.blocks.safemode import Off, SafeMode
from namenode_sim.datanode_protocol.errors import BadMessage, Overtaken
from namenode_sim.datanode_protocol.intake import ReportContext
from namenode_sim.datanodes.commands import Delete, Recover, Transfer
from namenode_sim.datanodes.errors import LeaseNotHeld, NotRegistered, TooManyStoragesHere
from namenode_sim.datanodes.model import FIRST_REPORT_SECONDS, CopyOrder, RecoveryOrder
from namenode_sim.edits import ops
from namenode_sim.term.role import Role
from tests.log_lines import captured
from tests.namenode_sim.datanode_protocol.scripted import (
    FIRST,
    STAMP,
    DataNode,
    being_written,
    deleted,
    edits,
    listed_storage,
    received,
    receiving,
    whole,
    with_blocks,
)
from tests.namenode_sim.datanode_protocol.served import RULES, Clock, NameNode, given, in_memory


def orders_of(datanode: DataNode) -> list[object]:
    return list(datanode.heartbeat().commands)


def test_a_datanode_that_has_not_registered_is_not_dead_before_it_could() -> None:
    clock = Clock()
    cluster = in_memory(clock=clock).cluster
    assert cluster.registered_by == clock.now + RULES.liveness.dead_seconds


# ---- orders ----


@pytest.mark.row("B20")
async def test_b20_deletions_leave_once_their_edits_are_durable_and_so_many_at_once() -> None:
    made, datanode = await with_blocks(1500)
    made.held_back = 1500
    for number in range(1500):
        made.apply(ops.Delete(f"/f{number}", 30))
    assert orders_of(datanode) == []
    made.held_back = 0
    (first,), (second,) = orders_of(datanode), orders_of(datanode)
    assert isinstance(first, Delete)
    assert isinstance(second, Delete)
    assert (len(first.replicas), len(second.replicas)) == (1000, 500)
    assert first.replicas[0] == (FIRST, STAMP)
    assert orders_of(datanode) == []


async def some_of_each() -> tuple[NameNode, DataNode]:
    made, datanode = await with_blocks(2)
    other = await DataNode(made, "b", ["DS-b"]).joined()
    made.apply(ops.Delete("/f0", 30))
    (target,) = other.node.storages.values()
    cause = made.namespace.last_applied
    datanode.node.copy_orders.append(CopyOrder(FIRST + 1, (target.held.number,), cause))
    return made, datanode


async def test_copies_go_before_deletions_and_a_recovery_alone() -> None:
    made, datanode = await some_of_each()
    made.apply(ops.Append("/f1", "writer", "here", new_block=False))
    blocks = made.cluster.blocks
    slot = blocks.map.find(FIRST + 1)
    assert slot is not None
    blocks.set_stage(slot, Stage.UNDER_RECOVERY)
    blocks.note_recovery(slot, 1003, None, frozenset())
    cause = made.namespace.last_applied
    datanode.node.recovery_orders.append(RecoveryOrder(FIRST + 1, 1002, cause))
    datanode.node.recovery_orders.append(RecoveryOrder(FIRST + 1, 1003, cause))
    (recoveries,) = orders_of(datanode)
    assert isinstance(recoveries, Recover)
    (recovery,) = recoveries.blocks  # that of another recovery is void
    assert (recovery.stamp, recovery.recovery_stamp, recovery.length) == (STAMP + 1, 1003, 10)
    assert [node.id.uuid for node, _ in recovery.places] == ["a"]
    copies, deletions = orders_of(datanode)
    assert isinstance(copies, Transfer)
    assert [(one.block_id, one.stamp, one.length) for one in copies.blocks] == [
        (FIRST + 1, STAMP + 1, 10)
    ]
    assert [node.id.uuid for node, _ in copies.blocks[0].targets] == ["b"]
    assert deletions == Delete(((FIRST, STAMP),))


WITHHELD: dict[str, Callable[[NameNode], None]] = {
    "in safe mode": lambda made: made.cluster.set_safe_mode(SafeMode(Off(), by_hand=True)),
    "without the read lease": lambda made: setattr(made, "leased", False),
    "before the edit is durable": lambda made: setattr(made, "held_back", 1),
    "while the log is being opened": lambda made: setattr(made, "active", False),
}


@pytest.mark.row("B7")
@pytest.mark.parametrize("why", WITHHELD)
async def test_b7_no_order_leaves(why: str) -> None:
    made, datanode = await some_of_each()
    WITHHELD[why](made)
    assert orders_of(datanode) == []
    assert datanode.heartbeat().standing.active is (why in list(WITHHELD)[::2])


@pytest.mark.row("B7")
async def test_b7_a_standby_orders_nothing_and_marks_nothing() -> None:
    made = in_memory()
    made.apply(*edits(0), *edits(1))
    datanode = await DataNode(made).joined(whole(0, length=9), whole(1, 1002), whole(7, 1000))
    made.apply(ops.Delete("/f1", 30))
    answer = datanode.heartbeat()
    assert (answer.commands, answer.standing.active) == ((), False)
    assert answer.standing.durable == made.namespace.last_applied
    blocks = made.cluster.blocks
    assert (blocks.map.corrupt_count(), len(blocks.invalidations)) == (0, 0)
    assert len(blocks.postponed_reports) == 2
    # As the active it says what is wrong.
    made.become_active()
    assert blocks.map.corrupt_count() == 1
    assert [block_id for _, block_id, _, _ in blocks.invalidations] == [FIRST + 7]


@pytest.mark.row("B2")
async def test_demoted_it_forgets_its_orders() -> None:
    made, datanode = await some_of_each()
    made.become(Role.CLOSING, Role.STANDBY)
    made.become_active()
    assert orders_of(datanode) == []


async def test_a_command_is_logged_by_some_of_its_blocks() -> None:
    """A DataNode has millions of replicas, which no line may list."""
    made, datanode = await some_of_each()
    made.apply(*(ops.Delete(path, 30) for path in ("/f1",)))
    made.apply(*edits(2))
    await datanode.tell(received(2, STAMP + 2))
    cause = made.namespace.last_applied
    target = made.cluster.nodes["b"].storages["DS-b"].held.number
    datanode.node.copy_orders.append(CopyOrder(FIRST + 2, (target,), cause))
    with captured("datanodes.command") as lines:
        orders_of(datanode)
    assert [(line["kind"], line["count"], line["blocks"]) for line in lines] == [
        ("copies", 1, [FIRST + 2]),
        ("delete", 2, [FIRST, FIRST + 1]),
    ]


# ---- reports ----


@pytest.mark.row("B18")
async def test_b18_a_report_without_its_lease_is_an_error_and_changes_nothing() -> None:
    made, datanode = await with_blocks()
    lease = datanode.heartbeat(wants_lease=True).lease
    with pytest.raises(LeaseNotHeld):
        await datanode.report(lease=lease + 1)
    assert made.holders(FIRST) == ["DS-a"]
    assert await datanode.report(lease=lease)
    assert made.holders(FIRST) == []


@pytest.mark.row("B18")
async def test_b18_impossible_reports_are_refused_and_the_datanode_must_register() -> None:
    made, datanode = await with_blocks()
    listed = listed_storage("DS-a", [whole()])
    listed.message.numberOfBlocks = 2
    with pytest.raises(MalformedReport, match="announces 2 rows"):
        await made.keeper.intake.report(datanode.id, [listed], ReportContext())
    assert datanode.node.must_register
    assert datanode.heartbeat().must_register
    assert not await datanode.report()
    assert made.holders(FIRST) == ["DS-a"]


@pytest.mark.row("B19")
async def test_b19_news_are_known_at_once_and_no_full_report_undoes_them() -> None:
    clock = Clock()
    made, datanode = await with_blocks(2, clock=clock)
    clock.now += 10
    lease = datanode.heartbeat(wants_lease=True).lease
    clock.now += 1
    await datanode.tell(deleted(0), storage="DS-a")
    made.apply(*edits(2))
    await datanode.tell(receiving(2, STAMP + 2), received(2, STAMP + 2), storage="DS-new")
    assert made.holders(FIRST) == []
    assert made.holders(FIRST + 2) == ["DS-new"]
    # This report was made before the news, and comes after them.
    await datanode.report(whole(0), whole(1, STAMP + 1), lease=lease)
    assert made.holders(FIRST) == []
    assert made.holders(FIRST + 1) == ["DS-a"]
    assert made.holders(FIRST + 2) == ["DS-new"]


@pytest.mark.row("B19")
async def test_b19_of_two_storages_of_a_datanode_the_later_report_counts() -> None:
    made, datanode = await with_blocks()
    await datanode.tell(received(), storage="DS-other")
    assert made.holders(FIRST) == ["DS-other"]


async def test_the_time_of_a_full_report_is_kept_and_that_of_news_is_not() -> None:
    clock = Clock()
    made, datanode = await with_blocks(clock=clock)
    (node,) = made.cluster.nodes.values()
    before = node.last_report
    clock.now += 10
    await datanode.tell(received(), storage="DS-other")
    assert node.last_report == before
    await datanode.report(whole(0), lease=datanode.heartbeat(wants_lease=True).lease)
    assert node.last_report == clock.now


@pytest.mark.row("B20")
async def test_b20_who_is_not_registered_is_told_to() -> None:
    made = in_memory()
    made.become_active()
    stranger = DataNode(made)
    assert stranger.heartbeat().must_register
    assert not await stranger.report()
    with pytest.raises(NotRegistered):
        await stranger.tell(received())
    stranger.register()
    assert not stranger.heartbeat().must_register
    assert DataNode(made, port=1).heartbeat().must_register


async def test_a_role_that_changes_under_a_report_ends_it() -> None:
    made = in_memory()
    made.apply(*edits())
    datanode = DataNode(made)
    datanode.register()
    lease = datanode.heartbeat(wants_lease=True).lease
    reporting = asyncio.create_task(datanode.report(whole(), lease=lease))
    await asyncio.sleep(0)
    made.become_active()
    with pytest.raises(Overtaken):
        await reporting
    (storage,) = datanode.node.storages.values()
    assert (storage.held.reports, storage.held.confirmed) == (0, False)


async def test_one_that_registers_anew_ends_its_own_report() -> None:
    _, datanode = await with_blocks()
    reporting = asyncio.create_task(datanode.report(whole()))
    await asyncio.sleep(0)
    datanode.register()
    with pytest.raises(Overtaken):
        await reporting


async def test_too_many_storages() -> None:
    made, datanode = await with_blocks()
    for number in range(63):
        await datanode.tell(storage=f"DS-{number}")
    with pytest.raises(BadMessage, match="one more than 64"):
        await datanode.tell(storage="DS-one-more")
    assert datanode.node.must_register
    datanode.register()
    datanode.storages.append("DS-one-more")
    with pytest.raises(TooManyStoragesHere):
        datanode.heartbeat()
    assert len(made.cluster.blocks.map.storages) == 64


# ---- the role ----


async def test_storages_are_confirmed_by_a_report_that_was_made_in_obedience() -> None:
    made = in_memory()
    made.apply(*edits())
    datanode = await DataNode(made).joined(whole())
    before = datanode.heartbeat(wants_lease=True).lease
    made.become_active()
    assert not datanode.is_confirmed()
    with pytest.raises(LeaseNotHeld):
        await datanode.report(whole(), lease=before)
    await datanode.report(whole())
    assert not datanode.is_confirmed()  # when it was made is unknown
    answer = datanode.heartbeat()
    assert answer.standing.active
    assert answer.lease  # it was not asked for
    assert not datanode.heartbeat().lease
    await datanode.report(whole(), lease=answer.lease)
    assert datanode.is_confirmed()
    assert not datanode.heartbeat().lease


async def test_a_standby_asks_a_datanode_that_registered_and_did_not_report() -> None:
    """The bad schedule: the answer to its registration is lost, and it reports after hours."""
    clock = Clock()
    made = in_memory(clock=clock)
    made.apply(*edits())
    datanode = DataNode(made)
    datanode.register()
    assert not datanode.heartbeat().lease
    clock.now += FIRST_REPORT_SECONDS - 1
    assert not datanode.heartbeat().lease
    clock.now += 1
    lease = datanode.heartbeat().lease
    assert lease
    assert not datanode.heartbeat().lease  # it has one
    await datanode.report(whole(), lease=lease)
    clock.now += 10 * FIRST_REPORT_SECONDS
    assert not datanode.heartbeat().lease
    datanode.register()
    clock.now += FIRST_REPORT_SECONDS
    assert datanode.heartbeat().lease


async def test_a_lease_of_an_answer_without_a_claim_confirms_nothing() -> None:
    made, datanode = await with_blocks()
    datanode.register()
    datanode.heartbeat()
    made.leased = False
    lease = datanode.heartbeat(wants_lease=True).lease
    made.leased = True
    await datanode.report(whole(), lease=lease)
    assert not datanode.is_confirmed()


@pytest.mark.row("B3")
async def test_b3_reports_while_a_file_is_written_leave_no_corrupt_replica() -> None:
    made = in_memory()
    begun, end = edits()[:-1], edits()[-1]
    datanode = await DataNode(made).joined()
    await datanode.tell(receiving())
    await datanode.report(being_written())
    assert len(made.cluster.blocks.postponed_reports) == 1
    made.apply(*begun)
    await datanode.tell(received())
    made.apply(end, ops.Append("/f0", "writer", "here", new_block=False))
    made.apply(ops.SetGenstampV2(1002))
    await datanode.tell(receiving(0, 1002))
    await datanode.report(being_written(0, 1002, 12))
    assert len(made.cluster.blocks.postponed_reports) == 1
    made.become_active()
    assert len(made.cluster.blocks.postponed_reports) == 0
    assert made.cluster.blocks.map.corrupt_count() == 0
    assert isinstance(edits(0, 12)[-1], ops.Close)
    made.apply(*given(FIRST, 1002, 12, "/f0")[-1:])
    await datanode.tell(received(0, 1002, 12))
    assert made.holders(FIRST) == ["DS-a"]
    assert made.cluster.blocks.map.corrupt_count() == 0


@pytest.mark.row("B4")
async def test_b4_a_late_report_of_a_replica_being_written_is_not_corrupt() -> None:
    made = in_memory()
    made.apply(*edits())
    datanode = await DataNode(made).joined()
    made.become_active()
    await datanode.tell(receiving())
    assert made.cluster.blocks.map.corrupt_count() == 0
    assert made.holders(FIRST) == []
    await datanode.tell(received())
    assert made.holders(FIRST) == ["DS-a"]


@pytest.mark.row("B16")
async def test_b16_the_newest_report_waits_and_is_judged_as_the_active() -> None:
    made = in_memory()
    made.apply(*edits())
    datanode = await DataNode(made).joined(whole())
    made.apply(ops.Append("/f0", "writer", "here", new_block=False), ops.SetGenstampV2(1002))
    await datanode.tell(receiving(0, 1002))
    await datanode.tell(received(0, 1002, 12))
    await datanode.tell(deleted(0, 1002))
    assert [told for _, _, told in made.cluster.blocks.postponed_reports] == [deleted(0, 1002)[1]]
    made.become_active()
    assert made.holders(FIRST) == []
    assert made.cluster.blocks.map.corrupt_count() == 0
