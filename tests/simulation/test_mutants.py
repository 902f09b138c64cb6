"""Each planted bug of a simulation is shown by a drawn world, or killed by a named test."""

from functools import cache

import pytest

from tests.in_turn import in_turn
from tests.simulation.engine.killing import Killing, kill
from tests.simulation.engine.mutants import Mutant, planted
from tests.simulation.engine.simulation import Simulation, named
from tests.simulation.engine.walks import Record, found, killed, made_smaller

LEAST_FOUND = {"blocks": 40, "failover": 34, "journal": 45, "whole": 11}
SIMULATIONS = [named(name) for name in LEAST_FOUND]


def _bugs(*, killer: bool) -> list[object]:
    return [
        pytest.param(simulation, *bug.values, id=f"{simulation.name}: {bug.id}", marks=bug.marks)
        for simulation in SIMULATIONS
        for bug in in_turn([one for one in simulation.mutants if bool(one.killer) is killer])
    ]


@pytest.mark.parametrize("simulation", SIMULATIONS, ids=lambda one: one.name)
def test_enough_planted_bugs_are_found(simulation: Simulation) -> None:
    mutants, known = simulation.mutants, simulation.known_seeds()
    names = {mutant.name for mutant in mutants}
    assert len(names) == len(mutants)
    assert names == known.keys() | {mutant.name for mutant in mutants if mutant.killer}
    assert len(known) >= LEAST_FOUND[simulation.name]
    assert not [mutant.name for mutant in mutants if not (mutant.seeds or mutant.killer)]
    for mutant in mutants:
        with planted(mutant):
            pass  # what it takes the place of is still called so
    # Bugs of the journal that worlds show as well need no reason why they have a killer.
    few = simulation.name == "journal"
    assert all(mutant.why for mutant in mutants if mutant.killer and not (few and mutant.seeds))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("simulation", "mutant"), _bugs(killer=False))
def test_a_drawn_world_finds_a_planted_bug(
    simulation: Simulation, mutant: Mutant, record_property: Record
) -> None:
    found(simulation, mutant, record_property)


@cache
def _killings(session: pytest.Session, name: str) -> dict[str, Killing]:
    """Run the killers of all bugs of a simulation that are asked for, in one process."""
    asked = {item.name.partition(f"[{name}: ")[2].rstrip("]") for item in session.items}
    return kill(name, [m.name for m in named(name).mutants if m.killer and m.name in asked])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("simulation", "mutant"), _bugs(killer=True))
def test_the_named_test_kills_the_bug(
    simulation: Simulation,
    mutant: Mutant,
    request: pytest.FixtureRequest,
    record_property: Record,
) -> None:
    killed(mutant, _killings(request.session, simulation.name), record_property)


@pytest.mark.parametrize(
    ("simulation", "name"),
    [("failover", "the breadcrumb is only replaced"), ("journal", "no sync before the answer")],
)
def test_a_failing_seed_is_made_smaller(simulation: str, name: str) -> None:
    made_smaller(named(simulation), named(simulation).mutant(name))
