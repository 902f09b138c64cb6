"""The journal's simulated worlds, as the engine plays them."""

from typing import Final

from tests.simulation.engine.simulation import Simulation
from tests.simulation.journal import (
    planted_lanes,
    planted_limits,
    planted_protocol,
    planted_reads,
    planted_rules,
    planted_storage,
    planted_voters,
)
from tests.simulation.journal.world import run

SIMULATION: Final = Simulation(
    "journal",
    run,
    "edits_acknowledged",
    (
        *planted_protocol.bug,
        *planted_rules.bug,
        *planted_limits.bug,
        *planted_storage.bug,
        *planted_voters.bug,
        *planted_lanes.bug,
        *planted_reads.bug,
    ),
    beside=8,
    anywhere=20,
)
