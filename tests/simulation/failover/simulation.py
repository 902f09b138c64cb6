"""The control plane's simulated worlds, as the engine plays them."""

from typing import Final

from tests.simulation.engine.simulation import Simulation
from tests.simulation.failover import (
    planted_beliefs,
    planted_control,
    planted_elector,
    planted_guard,
    planted_witness,
)
from tests.simulation.failover.world import run

SIMULATION: Final = Simulation(
    "failover",
    run,
    "takeovers",
    (
        *planted_elector.bug,
        *planted_control.bug,
        *planted_guard.bug,
        *planted_witness.bug,
        *planted_beliefs.bug,
    ),
    beside=2,
    anywhere=5,
)
