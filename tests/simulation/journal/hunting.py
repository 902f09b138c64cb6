"""Look for a planted bug in drawn worlds, beginning near a seed that is known to show it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.journal.mutants import Mutant, planted
from tests.simulation.journal.world import run

SEEDS: Final = Path(__file__).with_name("mutant_seeds.json")
"""Which seed finds each bug today; `./run soak journal --mutants --note-seeds` writes it anew.

Every change of the worlds or of the product's timing moves them.  A bug that is not found near its
seed is looked for up to the end of its budget.
"""
BESIDE: Final = 8
_ANYWHERE: Final = 20
"""A bug that so early a seed shows is one that most seeds show: no need to begin near it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A seed that shows the bug, and what it breaks; seed 0 if none does."""

    name: str
    seed: int
    worlds: int
    why: str


def known_seeds() -> Mapping[str, int]:
    """The seeds that were noted last."""
    seeds: dict[str, int] = json.loads(SEEDS.read_text())
    return seeds


def first_seed(mutant: Mutant) -> int:
    """Where to begin; with NNHA_ALL_SEEDS always at the first seed."""
    known = known_seeds().get(mutant.name, 1)
    if os.environ.get("NNHA_ALL_SEEDS") or known <= _ANYWHERE:
        return 1
    return max(1, known - BESIDE)


def hunt(mutant: Mutant, *, first: int | None = None) -> Found:
    """Play worlds with the bug in them, from ``first`` up to the budget, until one shows it."""
    begin = first_seed(mutant) if first is None else first
    for worlds, seed in enumerate(range(begin, mutant.seeds + 1), start=1):
        with planted(mutant):
            violation = run(seed).violation
        # A seed that fails on the product itself proves nothing about the bug.
        if violation is not None and run(seed).violation is None:
            return Found(mutant.name, seed, worlds, str(violation))
    return Found(mutant.name, 0, max(0, mutant.seeds - begin + 1), "")
