"""The journal's simulated worlds, as the engine plays them."""

from typing import Final

from tests.simulation.engine.simulation import Simulation
from tests.simulation.journal.mutants import MUTANTS
from tests.simulation.journal.world import run

SIMULATION: Final = Simulation("journal", run, "edits_acknowledged", MUTANTS, beside=8, anywhere=20)
