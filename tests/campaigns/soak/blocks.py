"""`./run soak blocks`: one simulated life of a cluster with DataNodes after another."""

from typing import Final

from tests.campaigns.soak.simulated import soaked
from tests.simulation.blocks.simulation import SIMULATION

blocks: Final = soaked(
    SIMULATION,
    1000,
    """Simulate blocks through failovers under drawn faults; exit code 0 only if no invariant broke.

The first failure is made as small as possible and printed with its replay command.  With
--mutants the product has one bug after another; each for which a seed was noted must be found
again, unless a test is named for it.  Others are hunted with --from-first only.
""",
)
