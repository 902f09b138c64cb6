"""What is planted with each bug of the control plane, so that the worlds show what comes of it."""

from typing import Final

from ha.elector import core as election_core
from ha.elector import runner
from ha.zkfc.candidacy import core as candidacy_core
from tests.simulation.engine.mutants import all_of, replacing

UNCHECKED: Final = all_of(
    replacing(election_core, "check", lambda _before, _event, step: step),
    replacing(candidacy_core, "check", lambda _before, _event, step: step),
    replacing(runner, "ensure_attempt", lambda _state, _attempt, _stage: None),
)
"""Its own invariants would end a controller before the world has shown what comes of the bug."""
