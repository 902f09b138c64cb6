"""Show one simulated life of blocks and failovers: `python -m tests.simulation.blocks --seed N`."""

from tests.simulation.blocks.simulation import SIMULATION
from tests.simulation.engine.shown import command

main = command(SIMULATION)

if __name__ == "__main__":
    main()
