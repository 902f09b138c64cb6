"""A controller that has broken an invariant of its own ends, and says which."""

import pytest

from tests.simulation.engine.mutants import planted
from tests.simulation.failover.simulation import SIMULATION
from tests.simulation.failover.world import run

WORLDS = range(1, 26)
OWN_LOCK = "a takeover begins with our session's own lock"
HARMLESS = "our name is written when the former active is fenced, or there is none"
UNDER_LOCK = "a promotion counts under the lock it was made"
BREAKS = {
    "NodeExists taken as won": OWN_LOCK,
    "any lock is ours": OWN_LOCK,
    "a reconnect is trusted": "an active was promoted in the attempt that has the lock",
    "an expiry is a reconnect": UNDER_LOCK,
    "a lock lost for a moment was never lost": UNDER_LOCK,
    "active before the fence is done": "while it has the lock",
    "a breadcrumb that looks alike is ours": HARMLESS,
    "the breadcrumb is only replaced": HARMLESS,
    "our name before the fence": HARMLESS,
    "promoted without a breadcrumb": "promoted when our own session has written its name",
}
"""Planted bugs that the product sees by itself, and the invariant that each breaks."""


@pytest.mark.parametrize("name", BREAKS)
def test_the_product_itself_sees_a_planted_bug(name: str) -> None:
    with planted(SIMULATION.mutant(name), alone=True):
        seen = (str(run(seed).violation) for seed in WORLDS)
        told = next(one for one in seen if "gave up" in one)
    assert BREAKS[name] in told
