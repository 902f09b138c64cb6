"""How a bug is planted: a function of the product is replaced for the length of a run."""

from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

Planting = Callable[[ExitStack], None]


def replacing(target: object, attribute: str, new: object) -> Planting:
    """Put something else in the place of a function of the product."""

    def plant(stack: ExitStack) -> None:
        stack.enter_context(patch.object(target, attribute, new))

    return plant


def all_of(*plantings: Planting) -> Planting:
    """Several replacements that make one bug."""

    def plant(stack: ExitStack) -> None:
        for planting in plantings:
            planting(stack)

    return plant
