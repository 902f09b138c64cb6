"""The worlds of blocks and failovers, as the engine plays them."""

from typing import Final

from tests.simulation.blocks import planted_datanode, planted_hosts, planted_moves, planted_namenode
from tests.simulation.blocks.world import run
from tests.simulation.engine.simulation import Simulation

SIMULATION: Final = Simulation(
    "blocks",
    run,
    "files_closed",
    (*planted_namenode.bug, *planted_datanode.bug, *planted_hosts.bug, *planted_moves.bug),
    beside=0,
    anywhere=5,
)
