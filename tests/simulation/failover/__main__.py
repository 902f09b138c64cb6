"""Show one simulated life of failover: `python -m tests.simulation.failover --seed N`."""

from tests.simulation.engine.shown import command
from tests.simulation.failover.simulation import SIMULATION

main = command(SIMULATION)

if __name__ == "__main__":
    main()
