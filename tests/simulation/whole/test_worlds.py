"""A bounded walk through worlds with everything; `./run soak whole` walks much further."""

from random import Random

from tests.simulation.blocks.namenode import BLOCK_SIZE
from tests.simulation.engine import walks
from tests.simulation.engine.runs import to_the_end
from tests.simulation.whole.nemesis import DATANODE_KINDS, EVENT_KINDS, Swarm, plan
from tests.simulation.whole.simulation import SIMULATION
from tests.simulation.whole.world import World, run


def test_what_clients_are_told_has_an_order_and_service_returns(
    record_property: walks.Record,
) -> None:
    """Seeds until the time is up; on a failure the trace is the message."""
    answered = walks.walk(SIMULATION, 1, record_property, least=6, most=60, cpu_seconds=6.0)
    assert answered > 60, "hardly anybody is answered in these worlds"


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
