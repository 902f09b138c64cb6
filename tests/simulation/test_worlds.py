"""What the worlds of every simulation keep, whatever they simulate."""

from importlib import import_module

import pytest
from click.testing import CliRunner

from tests.simulation.engine import walks
from tests.simulation.engine.simulation import Simulation, named
from tests.simulation.whole.nemesis import Swarm

PLAYED_TWICE = {
    "blocks": range(500, 503),
    "failover": range(500, 503),
    "journal": range(500, 503),
    "whole": (500, 501, 508, 510),
}
of_each = pytest.mark.parametrize(
    "simulation", [named(name) for name in PLAYED_TWICE], ids=lambda one: one.name
)


@of_each
def test_the_same_seed_leaves_the_same_trace(simulation: Simulation) -> None:
    walks.same_seed_same_trace(simulation.run, PLAYED_TWICE[simulation.name])


def test_whole_worlds_with_and_without_datanodes_are_played_twice() -> None:
    drawn = [Swarm.drawn(seed).datanodes for seed in PLAYED_TWICE["whole"]]
    assert set(drawn) == {True, False}


@of_each
def test_a_trace_does_not_depend_on_being_kept(simulation: Simulation) -> None:
    last = 512 if simulation.name == "whole" else 513
    walks.told_or_not_is_the_same(simulation.run, range(510, last))


@of_each
def test_a_seed_can_be_shown(simulation: Simulation) -> None:
    show = import_module(f"tests.simulation.{simulation.name}.__main__").main
    shown = CliRunner().invoke(show, ["--seed", "5"])
    assert shown.exit_code == 0, shown.output
    marker = "all faults end" if simulation.name == "whole" else "liveness: all faults end"
    assert marker in shown.output
    assert shown.output.splitlines()[-1].startswith("seed 5: no invariant broke")
