"""A bounded walk through worlds with everything; `./run soak whole` walks much further."""

from random import Random

from click.testing import CliRunner

from tests.simulation.blocks.namenode import BLOCK_SIZE
from tests.simulation.engine import walks
from tests.simulation.engine.runs import to_the_end
from tests.simulation.whole.__main__ import main as show
from tests.simulation.whole.nemesis import DATANODE_KINDS, EVENT_KINDS, Swarm, plan
from tests.simulation.whole.simulation import SIMULATION
from tests.simulation.whole.world import World, run

PORTION_SECONDS = 10.0
LEAST_SEEDS = 6
MOST_SEEDS = 60


def test_what_clients_are_told_has_an_order_and_service_returns(
    record_property: walks.Record,
) -> None:
    """Seeds until the time is up; on a failure the trace is the message."""
    answered = walks.walk(
        SIMULATION,
        1,
        record_property,
        least=LEAST_SEEDS,
        most=MOST_SEEDS,
        cpu_seconds=PORTION_SECONDS,
    )
    assert answered > 60, "hardly anybody is answered in these worlds"


def test_the_same_seed_leaves_the_same_trace() -> None:
    seeds = (500, 501, 508, 510)
    assert {Swarm.drawn(seed).datanodes for seed in seeds} == {True, False}
    walks.same_seed_same_trace(run, seeds)


def test_a_trace_does_not_depend_on_being_kept() -> None:
    walks.told_or_not_is_the_same(run, range(510, 512))


def test_every_kind_of_fault_is_planned_somewhere() -> None:
    planned = {
        event.kind for seed in range(300) for event in plan(Swarm.drawn(seed), Random(seed), 0.0)
    }
    assert planned == {*EVENT_KINDS, *DATANODE_KINDS}


def test_without_faults_nobody_is_kept_waiting() -> None:
    outcome = run(7, only=frozenset())
    assert outcome.violation is None
    assert not outcome.fired
    assert outcome.acknowledged > 60


def test_files_are_written_appended_to_and_deleted_where_there_are_datanodes() -> None:
    world = World(1, frozenset(), keep_trace=True)
    outcome = to_the_end(world, world.play())
    assert outcome.violation is None
    told = [data for writer in world.datanodes.writers for data in writer.files.values()]
    assert None in told
    assert sum(len(data) > BLOCK_SIZE for data in told if data is not None) > 3
    assert any("appends" in line for line in outcome.lines)


def test_a_seed_can_be_shown() -> None:
    shown = CliRunner().invoke(show, ["--seed", "5"])
    assert shown.exit_code == 0, shown.output
    assert "all faults end" in shown.output
    assert shown.output.splitlines()[-1].startswith("seed 5: no invariant broke")
