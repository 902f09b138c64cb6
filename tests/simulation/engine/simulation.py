"""One kind of simulated world: how it is played, made small and shown, and its planted bugs."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.simulation.engine.mutants import Mutant, planted
from tests.simulation.engine.runs import Outcome, Run

_MOST_RUNS = 400


def shrink(failing: Outcome, play: Callable[[int, frozenset[str]], Outcome]) -> Outcome:
    """Return the smallest failing run found: same seed, fewer faults, the same invariant broken."""
    assert failing.violation is not None, "only a failing run can be shrunk"
    best, runs = failing, 0
    size = max(1, len(best.fired) // 2)
    while size and runs < _MOST_RUNS:
        position, smaller = 0, False
        while position < len(best.fired) and runs < _MOST_RUNS:
            names = list(best.fired)
            del names[position : position + size]
            outcome, runs = play(failing.seed, frozenset(names)), runs + 1
            if _fails_alike(outcome, best):
                best, smaller = outcome, True
            else:
                position += size
        if not smaller or size > 1:
            size //= 2
    return best


def _fails_alike(outcome: Outcome, like: Outcome) -> bool:
    if outcome.violation is None or like.violation is None:
        return False
    fewer = len(outcome.fired) < len(like.fired)
    return fewer and outcome.violation.invariant == like.violation.invariant


@dataclass(frozen=True, slots=True)
class Found:
    """A seed that shows a planted bug, and what it breaks; seed 0 if none does."""

    name: str
    seed: int
    worlds: int
    why: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a package below tests/simulation simulates.

    Attributes:
        name: of the package.
        run: plays one seed.
        achieved: what its worlds count as service rendered.
        mutants: the bugs that are planted into it.
        anywhere: most seeds show a bug that a seed up to this one shows: no hunt begins near it.
    """

    name: str
    run: Run
    achieved: str
    mutants: tuple[Mutant, ...]
    beside: int
    """A hunt begins this number of seeds before the noted one."""
    anywhere: int

    def smallest(self, failing: Outcome) -> Outcome:
        return shrink(failing, lambda seed, only: self.run(seed, only=only))

    def replay_command(self, outcome: Outcome) -> str:
        only = ",".join(outcome.fired)
        return f"python -m tests.simulation.{self.name} --seed {outcome.seed} --only '{only}'"

    @property
    def noted(self) -> Path:
        """Which seed finds each bug today; ``--mutants --note-seeds`` of its soak writes it anew.

        Every change of the worlds or of the product's timing moves them.  A bug that is not found
        near its seed is looked for up to the end of its budget.
        """
        return Path(__file__).parents[1] / self.name / "mutant_seeds.json"

    def known_seeds(self) -> Mapping[str, int]:
        """Return the seeds that were noted last; a bug that none is known for is not in it."""
        seeds: dict[str, int] = json.loads(self.noted.read_text())
        return seeds

    def note(self, found: Iterable[Found]) -> None:
        """Write down which seeds found their bugs, next to those of the others."""
        seeds = {**self.known_seeds(), **{each.name: each.seed for each in found if each.seed}}
        names = {mutant.name for mutant in self.mutants if mutant.seeds}
        kept = {name: seed for name, seed in sorted(seeds.items()) if name in names}
        self.noted.write_text(json.dumps(kept, indent=2) + "\n")

    def mutant(self, name: str) -> Mutant:
        return next(mutant for mutant in self.mutants if mutant.name == name)

    def first_seed(self, mutant: Mutant) -> int:
        """Return where to begin; with NNHA_ALL_SEEDS always at the first seed."""
        known = self.known_seeds().get(mutant.name, 1)
        if os.environ.get("NNHA_ALL_SEEDS") or known <= self.anywhere:
            return 1
        return max(1, known - self.beside)

    def hunt(self, mutant: Mutant, *, first: int | None = None, most: int = 0) -> Found:
        """Play worlds with the bug in them until one shows it: up to its budget, or ``most``."""
        begin = self.first_seed(mutant) if first is None else first
        last = max(mutant.seeds, self.known_seeds().get(mutant.name, 1))
        if most:
            last = begin + most - 1
        for worlds, seed in enumerate(range(begin, last + 1), start=1):
            with planted(mutant):
                violation = self.run(seed).violation
            # A seed that fails on the product itself proves nothing about the bug.
            if violation is not None and self.run(seed).violation is None:
                return Found(mutant.name, seed, worlds, str(violation))
        return Found(mutant.name, 0, max(0, last - begin + 1), "")


def named(name: str) -> Simulation:
    """Import a simulation, for other processes, which cannot be given its bugs."""
    simulation: Simulation = import_module(f"tests.simulation.{name}.simulation").SIMULATION
    return simulation
