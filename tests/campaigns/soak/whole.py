"""`./run soak whole`: one simulated cluster with everything in it after another, failures kept."""

from typing import Final

from tests.campaigns.soak.simulated import soaked
from tests.simulation.whole.simulation import SIMULATION

whole: Final = soaked(
    SIMULATION,
    500,
    """Simulate clients, NameNodes, controllers, JournalNodes and DataNodes under drawn faults.

Exit code 0 only if all answers that clients got have an order, every file can be read as it was
written, each epoch has one active, and clients are answered once all faults are over.  With
--mutants the product has one bug after another, and each must be found.
""",
)
