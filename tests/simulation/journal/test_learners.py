"""Learners in small plays: a wiped node gets its vote back from the newest writer only."""

from journal.core.effects import FormatStorage
from journal.storage.disk import Disk
from tests.simulation.engine.runs import to_the_end
from tests.simulation.journal.machine import NAMESPACE
from tests.simulation.journal.platter import SimulatedFiles
from tests.simulation.journal.scripted import calm
from tests.simulation.journal.staged import Actor, Scene, Stage
from tests.simulation.journal.world import World


def perform(scene: Scene) -> None:
    """Play a scene and no more: the healed world's checks count every node as a voter."""
    world = World(0, None, True, calm(3))
    stage = Stage(world)
    world.network.script = stage.judge
    world.network.silence = 0.0

    async def play() -> None:
        for machine in world.machines.values():
            machine.boot()
        await scene(stage)

    outcome = to_the_end(world, play())
    told = "\n".join(outcome.lines[-40:])
    assert outcome.violation is None, f"{told}\n{outcome.violation}"


def wipe(stage: Stage, node: str) -> None:
    """Replace the disk, and let an operator format this one node; it starts as a learner.

    The oracle hears of it: the older disk's promises do not count any more, and it has no vote.
    """
    machine, oracle = stage.world.machines[node], stage.world.oracle
    machine.kill("its disk is replaced")
    watcher, machine.platter.watcher = machine.platter.watcher, lambda: None
    files = SimulatedFiles(machine.platter, lambda: True, machine._rng)
    disk = Disk(machine.root, files, fresh_id=machine.fresh_id)
    disk.load()
    disk.run((FormatStorage(NAMESPACE, machine.fresh_id(), founding=False),))
    oracle._majorities = (tuple(name for name in oracle.names if name != node),)
    oracle._views[node] = oracle._readers[node].view(machine.platter.durable)
    machine.platter.watcher = watcher
    machine.boot()


async def beginning(stage: Stage) -> Actor:
    """Begin segment 1 everywhere as writer 1, and write nothing."""
    writer = stage.writer()
    assert await writer.recover() == 0
    assert await writer.start(1)
    await writer.settle()
    return writer


def test_a_superseded_writer_admits_nobody() -> None:
    """jn3 has promised epoch 2 and forgets it with its disk; only jn2 remembers.

    Writer 1 still reaches jn1, feeds jn3, and would count it: 1-2 would be acknowledged twice.
    """

    async def play(stage: Stage) -> None:
        old = await beginning(stage)
        new = stage.writer(without=["jn1"])
        assert await new.recover() == 0
        assert await new.start(1)
        assert await new.write(1, 2)
        await new.settle()
        wipe(stage, "jn3")
        stage.world.network.silence = 1.0
        old.lose("jn2", method="Write")
        assert not await old.write(1, 2)
        assert "has promised 2" in "\n".join(stage.world.trace.lines)

    perform(play)


def test_the_newest_writer_admits_a_wiped_node() -> None:
    """Show the other side of it: without a newer writer the write goes through."""

    async def play(stage: Stage) -> None:
        writer = await beginning(stage)
        assert await writer.write(1, 2)
        await writer.settle()
        wipe(stage, "jn3")
        stage.world.network.silence = 1.0
        writer.lose("jn2", method="Write")
        assert await writer.write(3, 4)

    perform(play)
