"""`./run soak failover`: one simulated life of the control plane after another, failures kept."""

import click

from tests.campaigns.soak.reach import tell_reach
from tests.campaigns.soak.seeds import soak
from tests.campaigns.soak.simulated import simulated
from tests.simulation.failover.places import FIRST
from tests.simulation.failover.simulation import SIMULATION


@simulated(SIMULATION, 1000)
@click.option("--reach", is_flag=True, help="Tell which branches of the cores the seeds run.")
@click.option("--aimed", is_flag=True, help="Worlds whose faults wait for places.")
def failover(chosen: range, *, jobs: int, reach: bool, aimed: bool, as_object: bool) -> int:
    """Simulate failovers under drawn faults; exit code 0 only if no invariant broke.

    The first failure is made as small as possible and printed with its replay command.  With
    --mutants the control plane has one bug after another; each for which a seed was noted must be
    found again, unless a test is named for it.  Others are hunted with --from-first only.
    """
    if aimed and chosen.start < FIRST:
        chosen = range(chosen.start + FIRST, chosen.stop + FIRST)
    play = tell_reach if reach else soak
    return play(SIMULATION, chosen, jobs, as_object=as_object)
