"""What the owner of blocks and DataNodes does in time: deaths, failures and safe mode."""

import asyncio

import pytest

from namenode_sim.blocks.safemode import Pending, SafeMode, SafeModeRules
from namenode_sim.edits import ops
from namenode_sim.term.role import Role
from tests.namenode_sim.datanode_protocol import scripted
from tests.namenode_sim.datanode_protocol.scripted import STAMP, DataNode, edits, whole, with_blocks
from tests.namenode_sim.datanode_protocol.served import Clock, NameNode, in_memory

SETTLE_SECONDS = 30.0

# ---- deaths and failures ----


async def running(made: NameNode) -> list["asyncio.Task[None]"]:
    return [asyncio.create_task(work) for work in made.keeper.duties().values()]


async def settled(made: NameNode, *, holds: int) -> None:
    """Let the keeper's own work go on until ``holds`` replicas are left."""
    tasks = await running(made)
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            while sum(len(one.slots) for one in made.cluster.blocks.map.storages) != holds:
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    made.holders(scripted.FIRST)


@pytest.mark.row("B20")
async def test_b20_a_dead_datanodes_replicas_go_and_it_must_register() -> None:
    clock = Clock()
    made, datanode = await with_blocks(3000, clock=clock)
    made.keeper.look()
    for _ in range(126):
        clock.now += 5
        made.keeper.look()
    assert not datanode.node.alive
    await settled(made, holds=0)
    assert datanode.heartbeat().must_register
    replicas = [whole(number, STAMP + number) for number in range(3000)]
    await datanode.joined(*replicas)
    assert made.holders(scripted.FIRST + 2999) == ["DS-a"]


async def test_one_that_comes_back_before_it_is_emptied_keeps_what_it_reports() -> None:
    made, datanode = await with_blocks(5000)
    datanode.node.alive = False
    made.keeper.gone.add_all(datanode.node)
    replicas = [whole(number, STAMP + number) for number in range(5000)]
    await datanode.joined(*replicas)
    await settled(made, holds=5000)
    assert sum(len(one.slots) for one in made.cluster.blocks.map.storages) == 5000


async def test_a_lifeline_keeps_alive_and_carries_no_orders() -> None:
    clock = Clock()
    made, datanode = await with_blocks(clock=clock)
    clock.now += 600
    made.keeper.lifeline(datanode.heart())
    assert datanode.node.last_heard == clock.now
    made.keeper.lifeline(DataNode(made, "x").heart())
    assert list(made.cluster.nodes) == ["a"]


FAILURES = {"it says so": (True, 0, True), "it is missing": (False, 1, True),
            "it is late": (False, 0, False)}  # fmt: skip


@pytest.mark.row("B22")
@pytest.mark.parametrize("how", FAILURES)
async def test_failed_storages(how: str) -> None:
    said, failed_volumes, goes = FAILURES[how]
    made, datanode = await with_blocks(10)
    if said:
        datanode.failed = {"DS-a"}
    else:
        datanode.storages = ["DS-b"]
    datanode.failed_volumes = failed_volumes
    datanode.heartbeat()
    await settled(made, holds=0 if goes else 10)
    if said:
        datanode.failed = set()
        assert datanode.heartbeat().lease


async def test_a_formatted_datanode_takes_the_place_of_the_one_that_was_there() -> None:
    made, datanode = await with_blocks(10)
    await DataNode(made, "b", ["DS-b"], port=datanode.id.transfer_port).joined()
    await settled(made, holds=0)
    assert list(made.cluster.nodes) == ["b"]
    assert [one.uuid for one in made.cluster.blocks.map.storages] == ["DS-b"]


# ---- safe mode ----


def starting(extension: float = 30.0) -> tuple[NameNode, Clock, list[bool]]:
    """Build a standby that has not read the journal yet; the list contains whether it has."""
    clock, read = Clock(), [False]
    rules = SafeModeRules(extension_seconds=extension)
    made = in_memory(clock=clock, safe_mode=rules, has_caught_up=lambda: read[0])
    made.keeper.safe_mode.await_edits()
    return made, clock, read


@pytest.mark.row("B8")
@pytest.mark.parametrize("first", ["edits", "reports"])
async def test_b8_edits_and_reports_come_in_either_order(first: str) -> None:
    made, clock, read = starting()
    if first == "edits":
        made.apply(*edits(0), *edits(1))
    datanode = await DataNode(made).joined(whole(0), whole(1, STAMP + 1))
    made.apply(*([] if first == "edits" else [*edits(0), *edits(1)]))
    counts = made.cluster.counts()
    assert (counts.total, counts.safe) == (2, 2)
    made.keeper.safe_mode.look()
    assert made.cluster.safe_mode.is_on()
    read[0] = True
    made.keeper.safe_mode.look()
    assert not made.cluster.safe_mode.is_on()  # there was nothing to wait for
    assert not made.cluster.blocks.is_starting()
    made.apply(ops.Delete("/f0", 30))
    counts = made.cluster.counts()
    assert (counts.total, counts.safe) == (1, 1)
    assert datanode.node.alive
    assert clock.now == 1000.0


@pytest.mark.row("B8")
async def test_b8_a_new_active_waits_for_its_blocks() -> None:
    made, clock, _ = starting()
    made.apply(*edits(0), *edits(1), *edits(2), ops.Delete("/f2", 30))
    made.become(Role.RECOVERING, Role.CATCHING_UP)
    made.keeper.safe_mode.look()
    assert made.cluster.safe_mode == SafeMode(Pending())
    made.become(Role.OPENING, Role.ACTIVE)
    assert "needs additional 1 blocks" in made.keeper.safe_mode.tip()
    datanode = DataNode(made)
    datanode.register()
    lease = datanode.heartbeat(wants_lease=True).lease
    # A block that no edit shows is not deleted: edits may be missing.
    await datanode.report(whole(0), whole(1, STAMP + 1), whole(2, STAMP + 2), lease=lease)
    made.keeper.safe_mode.look()
    assert "In safe mode extension" in made.keeper.safe_mode.tip()
    clock.now += 29
    made.keeper.safe_mode.look()
    assert made.cluster.safe_mode.is_on()
    assert not datanode.heartbeat().lease  # it has reported
    clock.now += 1
    made.keeper.safe_mode.look()
    assert made.keeper.safe_mode.tip() == ""
    assert len(made.cluster.blocks.invalidations) == 0
    (storage,) = datanode.node.storages.values()
    assert storage.held.confirmed


@pytest.mark.row("B8")
async def test_b8_nothing_moves_in_the_midst_of_a_takeover() -> None:
    made, clock, read = starting(extension=0.0)
    made.apply(*edits(0), *edits(1))
    read[0] = True
    made.keeper.safe_mode.look()
    made.become(Role.RECOVERING)
    await DataNode(made).joined(whole(0), whole(1, STAMP + 1))
    made.keeper.safe_mode.look()
    assert made.cluster.safe_mode == SafeMode(Pending())
    made.become(Role.CATCHING_UP, Role.OPENING, Role.ACTIVE)
    assert not made.cluster.safe_mode.is_on()
    assert clock.now == 1000.0


async def test_a_fresh_cluster_has_no_safe_mode() -> None:
    made, _, read = starting()
    assert made.cluster.safe_mode.is_on()
    read[0] = True
    made.keeper.safe_mode.look()
    assert not made.cluster.safe_mode.is_on()


@pytest.mark.row("B12")
async def test_a_storage_that_has_reported_is_skipped_in_the_safe_mode_of_the_start() -> None:
    made, _, _ = starting()
    made.apply(*edits(0), *edits(1))
    datanode = await DataNode(made).joined(whole(0))
    await datanode.report()
    assert made.holders(scripted.FIRST) == ["DS-a"]
