"""A wiped node under a writer that admits no node: its vote comes back by the voters' word, safely.

Each play would lose an acknowledged edit, or make two writers of one epoch, if one condition of
docs/reference/quorum-journal.md#a-vote-without-the-writers-word were left out.
"""

import asyncio

from journal.model import LAYOUT_VERSION
from journal.proto import journal_pb2 as pb
from tests.simulation.engine.network import Action, Link
from tests.simulation.engine.runs import to_the_end
from tests.simulation.journal.hadoop_like import claims_in_one_round
from tests.simulation.journal.machine import CLAIM_SECONDS, JOURNAL, Machine
from tests.simulation.journal.scripted import calm
from tests.simulation.journal.staged import Actor, Scene, Stage
from tests.simulation.journal.swarm import Upkeep
from tests.simulation.journal.world import World

SYNC_SECONDS = 0.1
PATIENCE_SECONDS = 20.0


def perform(scene: Scene) -> None:
    """Play a scene with the syncers on, watched by the oracle to its end."""
    world = World(0, None, True, calm(3))
    stage = Stage(world)
    world.network.script = stage.judge
    world.network.silence = 0.0

    async def play() -> None:
        for machine in world.machines.values():
            machine.upkeep = Upkeep(sync_seconds=SYNC_SECONDS)
            machine.boot()
        await scene(stage)
        world.look()

    outcome = to_the_end(world, play())
    told = "\n".join(outcome.lines[-60:])
    assert outcome.violation is None, f"{told}\n{outcome.violation}"


def wipe(stage: Stage, node: str) -> Machine:
    """Replace the disk; an operator formats this one node, and it starts as a learner."""
    machine = stage.world.machines[node]
    machine.kill("its disk is replaced")
    platter = machine.platter
    watcher, platter.watcher = platter.watcher, lambda: None
    platter.wipe()
    machine.format(founding=False)
    platter.watcher = watcher
    stage.world.oracle.reborn(node)
    machine.boot()
    return machine


def learns(machine: Machine) -> bool:
    assert machine.owner is not None
    return machine.owner.state.learner


async def until_it_votes(machine: Machine) -> bool:
    """Give it a long time."""
    for _ in range(int(PATIENCE_SECONDS / SYNC_SECONDS)):
        if not learns(machine):
            return True
        await asyncio.sleep(SYNC_SECONDS)
    return False


def late_start(machine: Machine, epoch: int, first: int) -> None:
    info = pb.RequestInfo(journal_id=JOURNAL, epoch=epoch, serial=100)
    asked = pb.StartLogSegmentRequest(info=info, first_txid=first, layout_version=LAYOUT_VERSION)
    machine.unary("StartLogSegment", asked.SerializeToString(), lambda _reply: None)


async def beginning(stage: Stage) -> Actor:
    """Return a writer like Hadoop's that closed 1-2 on every node and wrote 3-4."""
    writer = stage.writer(hadoop_like=True)
    assert await writer.recover() == 0
    await writer.segment(1, 2)
    assert await writer.start(3)
    assert await writer.write(3, 4)
    await writer.settle()
    return writer


async def rolls(writer: Actor, last: int) -> None:
    assert await writer.finalize(last)
    assert await writer.start(last + 1)


def test_a_log_roll_gives_a_wiped_node_its_vote() -> None:
    """Allow any second node to stop: that is what the vote is for."""

    async def play(stage: Stage) -> None:
        writer = await beginning(stage)
        machine = wipe(stage, "jn3")
        await rolls(writer, 4)
        assert await writer.write(5, 6)
        await asyncio.sleep(2 * CLAIM_SECONDS)
        assert learns(machine), "5-6 are in no finalized segment yet"
        await rolls(writer, 6)
        assert await until_it_votes(machine)
        assert await writer.write(7, 7)
        await rolls(writer, 7)
        writer.lose("jn2")
        assert await writer.write(8, 9)
        new = stage.writer(without=["jn1"], hadoop_like=True)
        assert await new.recover() == 9

    perform(play)


def test_without_a_majority_of_voters_nobody_votes() -> None:
    """Two of three are wiped: what only they had acknowledged cannot be known any more."""

    async def play(stage: Stage) -> None:
        writer = await beginning(stage)
        await rolls(writer, 4)
        await writer.settle()
        machine = stage.world.machines["jn3"]
        stage.world.machines["jn2"].kill("stays down")
        wiped = wipe(stage, "jn3")
        late_start(machine, 1, 5)
        assert not await until_it_votes(wiped)

    perform(play)


def test_what_was_acknowledged_before_the_wipe_must_be_final() -> None:
    """jn3 and jn2 acknowledge 3-4, jn1 misses them, jn3 is wiped, and a twin of a start comes.

    jn1 and jn3 would recover up to 2.
    """

    async def play(stage: Stage) -> None:
        writer = stage.writer(hadoop_like=True)
        assert await writer.recover() == 0
        await writer.segment(1, 2)
        assert await writer.start(3)
        await writer.settle()
        writer.lose("jn1", method="Write")
        assert await writer.write(3, 4)
        await writer.settle()
        machine = wipe(stage, "jn3")
        late_start(machine, 1, 3)
        assert not await until_it_votes(machine)

    perform(play)


def test_a_late_start_of_a_superseded_writer_gives_no_vote() -> None:
    """jn3 has promised epoch 2 and forgets it with its disk; only jn2 remembers.

    With the vote of jn3, jn1 and jn3 would grant epoch 2 a second time.
    """

    async def play(stage: Stage) -> None:
        old = stage.writer(hadoop_like=True)
        assert await old.recover() == 0
        new = stage.writer(without=["jn1"])
        assert await new.recover() == 0
        machine = wipe(stage, "jn3")
        late_start(machine, 1, 1)
        assert not await until_it_votes(machine), "then epoch 2 could be won again"

    perform(play)


def test_a_claim_from_before_the_wipe_has_been_given_up() -> None:
    """jn3 promises epoch 2 and is wiped; jn2's promise is on its way for most of the claim's time.

    Java's claim takes the two for a majority.  If jn3 had its vote by then, the old writer would
    have written 7-8 with jn1 and jn3, and the new one would recover up to 6.
    """

    async def play(stage: Stage) -> None:
        old = await beginning(stage)
        held: list[Action] = []

        def script(
            link: Link, what: str, arrive: Action, lost: Action
        ) -> tuple[Action, Action] | None:
            if link == ("w2", "jn2") and what == "NewEpoch":
                return (lambda: held.append(arrive)), lost
            return stage.judge(link, what, arrive, lost)

        stage.world.network.script = script
        new = stage.writer(without=["jn1"], hadoop_like=True)
        claims_in_one_round(new.quorum)
        claiming = new.process.spawn(new.quorum.become_writer())
        while not held or stage.world.machines["jn3"].promised < 2:
            await asyncio.sleep(0.001)
        machine = wipe(stage, "jn3")
        await asyncio.sleep(0.05)
        assert await old.finalize(4)
        assert await old.start(5)
        assert await old.write(5, 6)
        await asyncio.sleep(0.3)
        assert await old.finalize(6)
        await asyncio.sleep(0.3)
        assert await old.start(7)
        old.lose("jn2", method="Write")
        writing = asyncio.ensure_future(old.write(7, 8))
        await asyncio.sleep(0.1)
        held[0]()
        new.lose("jn3")
        await asyncio.gather(claiming, return_exceptions=True)
        stage.world.look()
        assert not await writing
        assert await until_it_votes(machine) in (True, False)

    perform(play)
