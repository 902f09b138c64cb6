"""Look for a planted bug of the control plane in drawn worlds, first where one is known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.failover.mutants import MUTANTS, Mutant, planted
from tests.simulation.failover.world import run

SEEDS: Final = Path(__file__).with_name("mutant_seeds.json")
"""Which seed finds each bug today; `./run soak failover --mutants --note-seeds` writes it anew."""
_ANYWHERE: Final = 5
_BESIDE: Final = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A seed that shows the bug, and what it breaks; seed 0 if none does."""

    name: str
    seed: int
    worlds: int
    why: str


def known_seeds() -> Mapping[str, int]:
    """The seeds that were noted last; a bug that none is known for is not in it."""
    seeds: dict[str, int] = json.loads(SEEDS.read_text())
    return seeds


def hunt(mutant: Mutant, *, first: int | None = None) -> Found:
    """Play worlds with the bug in them, up to its budget, until one shows it."""
    known = known_seeds().get(mutant.name, 1)
    begin = (1 if known <= _ANYWHERE else known - _BESIDE) if first is None else first
    last = max(mutant.seeds, known)
    for worlds, seed in enumerate(range(begin, last + 1), start=1):
        with planted(mutant):
            violation = run(seed).violation
        # A seed that fails on the product itself proves nothing about the bug.
        if violation is not None and run(seed).violation is None:
            return Found(mutant.name, seed, worlds, str(violation))
    return Found(mutant.name, 0, last - begin + 1, "")


def hunt_by_name(name: str, *, first: int | None = None) -> Found:
    """For other processes, which cannot be given a planting."""
    return hunt(next(mutant for mutant in MUTANTS if mutant.name == name), first=first)
