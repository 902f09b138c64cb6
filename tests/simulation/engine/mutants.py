"""Planted bugs: each takes the place of one rule, and something must see it.

They prove the checkers: a bug that survives its worlds and its tests shows a blind spot.  Nothing
of the product is edited; the rule is replaced for the length of a run.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

Planting = Callable[[ExitStack], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug, and how it is found: by drawn worlds, by a test of its own, or by either.

    It may survive at most ``seeds`` drawn worlds; 0 means that no drawn world is known to show
    it.  ``killer`` is a test, or one case of it, that passes without the bug and fails with it;
    where there is one, `./run test` leaves the drawn worlds to the soak's ``--mutants``.  ``why``
    says what stands before such a bug in the worlds.
    """

    name: str
    plant: Planting
    seeds: int = 100
    killer: str = ""
    why: str = ""
    beside: Planting | None = None
    """It is replaced as well, so that the worlds can show the bug."""


@contextmanager
def planted(mutant: Mutant, *, alone: bool = False) -> Iterator[None]:
    """Plant this bug in the product, or with ``alone`` nothing but the bug."""
    with ExitStack() as stack:
        mutant.plant(stack)
        if mutant.beside is not None and not alone:
            mutant.beside(stack)
        yield


def replacing(target: object, attribute: str, new: object) -> Planting:
    def plant(stack: ExitStack) -> None:
        stack.enter_context(patch.object(target, attribute, new))

    return plant


def all_of(*plantings: Planting) -> Planting:
    """Combine several replacements that make one bug."""

    def plant(stack: ExitStack) -> None:
        for planting in plantings:
            planting(stack)

    return plant
