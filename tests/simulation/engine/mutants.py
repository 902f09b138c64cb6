"""Planted bugs: each takes the place of one rule, and something must see it.

They prove the checkers: a bug that survives its worlds and its tests shows a blind spot.  Nothing
of the product is edited; the rule is replaced for the length of a run.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from unittest.mock import patch

Planting = Callable[[ExitStack], None]
F = TypeVar("F", bound=Callable[..., Any])


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


class Planted:
    """The planted bugs of one file, each registered where it is written.

    What the file gives holds for each bug that gives nothing else.
    """

    def __init__(self, seeds: int = 100, *, beside: Planting | None = None) -> None:
        self.seeds, self.beside = seeds, beside
        self.mutants: list[Mutant] = []

    def __iter__(self) -> Iterator[Mutant]:
        return iter(self.mutants)

    def add(
        self,
        name: str,
        plant: Planting,
        seeds: int | None = None,
        *,
        killer: str = "",
        why: str = "",
        beside: Planting | None = None,
    ) -> None:
        most = self.seeds if seeds is None else seeds
        self.mutants.append(Mutant(name, plant, most, killer, why, beside or self.beside))

    def __call__(
        self, name: str, seeds: int | None = None, *, beside: Planting | None = None
    ) -> Callable[[Callable[[], Planting]], Callable[[], Planting]]:
        """Register the bug that a function returns; it is called anew for each planting."""

        def register(make: Callable[[], Planting]) -> Callable[[], Planting]:
            self.add(name, lambda stack: make()(stack), seeds, beside=beside)
            return make

        return register

    def replacing(
        self,
        name: str,
        target: object,
        attribute: str,
        seeds: int | None = None,
        *,
        beside: Planting | None = None,
    ) -> Callable[[F], F]:
        """Register a bug that is a function in the place of another.

        If its first parameter is called ``really``, it is given the function that it replaces.
        """

        def register(new: F) -> F:
            around = next(iter(inspect.signature(new).parameters), "") == "really"

            def plant(stack: ExitStack) -> None:
                put = _around(new, getattr(target, attribute)) if around else new
                stack.enter_context(patch.object(target, attribute, put))

            self.add(name, plant, seeds, beside=beside)
            return new

        return register

    def killed_by(self, killer: str, *, why: str = "") -> Callable[[F], F]:
        """Name the test that kills the bug below, and what stands before it in the worlds."""

        def register(planted_one: F) -> F:
            self.mutants[-1] = replace(self.mutants[-1], killer=killer, why=why)
            return planted_one

        return register


def _around(new: Callable[..., Any], really: Callable[..., Any]) -> Callable[..., Any]:
    def instead(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return new(really, *arguments, **named)

    return instead
