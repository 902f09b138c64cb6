"""The tables 2.10.1 to 2.10.7 of the design text of HDFS-3077, for every responding quorum.

Real writers bring real nodes into each state: they lose their links at the right moment.  Then a
new writer recovers with exactly the nodes of Q, and the table says what must come of it.
"""

from dataclasses import dataclass

import pytest

from tests.simulation.journal.recovery_model import majorities
from tests.simulation.journal.staged import Actor, Scene, Stage, perform

NODES = ("jn1", "jn2", "jn3")
QUORUMS = majorities(NODES)


async def beginning(stage: Stage) -> Actor:
    """Return writer 1, with 1-100 finalized everywhere."""
    writer = stage.writer()
    assert await writer.recover() == 0
    await writer.segment(1, 100)
    return writer


async def in_progress(stage: Stage, *, ends: dict[str, int]) -> Actor:
    """Write segment 101 with these ends; a node is cut off when it has what it shall have."""
    writer = await beginning(stage)
    assert await writer.start(101)
    first = 101
    for last in sorted(set(ends.values())):
        await writer.write(first, last)
        await writer.settle()
        writer.lose(*(node for node in NODES if ends[node] == last))
        first = last + 1
    return writer


async def t1(stage: Stage) -> None:
    await (await in_progress(stage, ends={"jn1": 150, "jn2": 153, "jn3": 153})).die()
    assert stage.ends(101) == ("150", "153", "153")


async def t2(stage: Stage) -> None:
    await (await in_progress(stage, ends={"jn1": 150, "jn2": 153, "jn3": 125})).die()
    assert stage.ends(101) == ("150", "153", "125")


async def t3(stage: Stage) -> None:
    writer = await beginning(stage)
    assert await writer.start(101)
    assert await writer.write(101, 145)
    await writer.settle()
    writer.lose("jn3")
    assert await writer.write(146, 150)
    assert await writer.finalize(150)
    await writer.die()
    assert stage.ends(101) == ("150f", "150f", "145")


async def t4(stage: Stage) -> None:
    writer = await beginning(stage)
    assert await writer.start(101)
    assert await writer.write(101, 125)
    await writer.settle()
    writer.lose("jn3")
    assert await writer.write(126, 150)
    await writer.settle()
    writer.lose("jn2")
    assert not await writer.finalize(150)
    await writer.die()
    assert stage.ends(101) == ("150f", "150", "125")


async def t5(stage: Stage) -> None:
    writer = await beginning(stage)
    await writer.segment(101, 150)
    writer.lose("jn2", "jn3")
    assert not await writer.start(151)
    await writer.die()
    assert stage.ends(101) == ("150f", "150f", "150f")
    files = {path.name for path in stage.world.machines["jn1"].platter.durable}
    assert "edits_inprogress_0000000000000000151" in files


async def t6a(stage: Stage) -> None:
    writer = await beginning(stage)
    await writer.segment(101, 150)
    assert await writer.start(151)
    await writer.settle()
    writer.lose("jn2", "jn3")
    assert not await writer.write(151, 153)
    await writer.die()
    assert stage.ends(151) == ("153", "-", "-")


async def stage_b(stage: Stage, last: int) -> None:
    """Recover nothing at jn2 and jn3; writer epoch 2 starts 151 there, and dies."""
    await t6a(stage)
    writer = stage.writer(without=["jn1"])
    assert await writer.recover() == 150
    assert await writer.start(151)
    assert await writer.write(151, last)
    await writer.die()
    assert stage.ends(151) == ("153", str(last), str(last))


async def t6b(stage: Stage) -> None:
    await stage_b(stage, 151)


async def t6c(stage: Stage) -> None:
    await stage_b(stage, 153)


async def t7(stage: Stage) -> None:
    await t2(stage)
    writer = stage.writer(without=["jn2"])
    writer.lose("jn1", method="FinalizeLogSegment")
    assert await writer.recover() is None
    await writer.die()
    assert stage.ends(101) == ("150", "153", "150f")
    assert stage.world.oracle._views["jn1"].accepted[101].epoch == 2


@dataclass(frozen=True, slots=True)
class Table:
    """A state, and what each quorum must make of it; ``writer`` is whose edits 151 on are."""

    name: str
    state: Scene
    first: int
    results: tuple[int, int, int]
    """For {1,2}, {1,3} and {2,3}.

    When all three answer, ours decides with the first two answers: one of these, then, and by the
    table's own words both are legal.
    """
    next_writer_epoch: int = 1


TABLES = (
    Table("2.10.1", t1, 101, (153, 153, 153)),
    Table("2.10.2", t2, 101, (153, 150, 153)),
    Table("2.10.3", t3, 101, (150, 150, 150)),
    Table("2.10.4", t4, 101, (150, 150, 150)),
    Table("2.10.5", t5, 101, (150, 150, 150)),
    Table("2.10.6_stage_A", t6a, 151, (153, 153, 150)),
    Table("2.10.6_stage_B", t6b, 151, (151, 151, 151), 2),
    Table("2.10.6_prime", t6c, 151, (153, 153, 153), 2),
    Table("2.10.7", t7, 101, (150, 150, 150)),
)
CASES = [
    pytest.param(table, quorum, allowed, id=f"{table.name}-{'+'.join(quorum)}")
    for table in TABLES
    for quorum, allowed in zip(
        QUORUMS, (*({end} for end in table.results), set(table.results)), strict=True
    )
]


@pytest.mark.row(
    "8.8 2.10.1",
    "8.8 2.10.2",
    "8.8 2.10.3",
    "8.8 2.10.4",
    "8.8 2.10.5",
    "8.8 2.10.6",
    "8.8 2.10.6'",
    "8.8 2.10.7",
    because="its cases are named by the table and the quorum",
)
@pytest.mark.parametrize(("table", "quorum", "allowed"), CASES)
def test_2_10(table: Table, quorum: tuple[str, ...], allowed: set[int]) -> None:
    """Show of 2.10.6_prime: Hadoop keeps jn1's stale bytes, because the lengths are equal."""

    async def recovery(stage: Stage) -> None:
        absent = [node for node in NODES if node not in quorum]
        writer = stage.writer(without=absent)
        last = await writer.recover()
        assert last in allowed
        await writer.settle()
        for node in quorum:
            if last < table.first:
                assert table.first not in stage.finalized(node)
                continue
            run = stage.finalized(node)[table.first]
            assert run.last == last
            assert run.tags[0][0] == table.next_writer_epoch, "whose edits survived"
            assert run == stage.finalized(quorum[0])[table.first], "equal bytes everywhere"
        assert await writer.start(last + 1)
        assert await writer.write(last + 1, last + 2)
        assert await writer.finalize(last + 2)
        await writer.die()

    perform(table.state, recovery)
