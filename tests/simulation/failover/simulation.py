"""The control plane's simulated worlds, as the engine plays them."""

from typing import Final

from tests.simulation.engine.simulation import Simulation
from tests.simulation.failover.mutants import MUTANTS
from tests.simulation.failover.world import run

SIMULATION: Final = Simulation("failover", run, "takeovers", MUTANTS, beside=2, anywhere=5)
