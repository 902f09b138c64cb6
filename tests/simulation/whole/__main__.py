"""Show one world with everything: `python -m tests.simulation.whole --seed N`."""

from tests.simulation.engine.shown import command
from tests.simulation.whole.simulation import SIMULATION

main = command(SIMULATION)

if __name__ == "__main__":
    main()
