"""The planted bugs of blocks and DataNodes: each must be seen by some world."""

from typing import Final

from tests.simulation.engine.mutants import Mutant

MUTANTS: Final[tuple[Mutant, ...]] = ()
