"""The worlds with everything in them, as the engine plays them."""

from typing import Final

from tests.simulation.engine.simulation import Simulation
from tests.simulation.whole.mutants import bug
from tests.simulation.whole.world import run

SIMULATION: Final = Simulation("whole", run, "calls answered", tuple(bug), beside=2, anywhere=5)
