"""How many simulated lives of the journal one core plays in a minute."""

import time

from tests.campaigns.bench.report import Row
from tests.campaigns.bench.world import World
from tests.campaigns.soak.seeds import play
from tests.simulation.journal.world import run

SEEDS = range(1, 121)


def simulator(_world: World) -> list[Row]:
    """Play on this core, in this process; the first seeds, whatever they do."""
    began = time.process_time()
    found = play(run, SEEDS)
    rate = 60 * found.seeds / (time.process_time() - began)
    peer = f"{found.steps / found.seeds:,.0f} steps a seed"
    return [Row("simulated seeds", rate, "1/min/core", ">= 1,500", rate >= 1500, peer)]
