"""The worlds of blocks and failovers, as the engine plays them."""

from typing import Final

from tests.simulation.blocks.mutants import MUTANTS
from tests.simulation.blocks.world import run
from tests.simulation.engine.simulation import Simulation

SIMULATION: Final = Simulation("blocks", run, "files_closed", MUTANTS, beside=2, anywhere=5)
