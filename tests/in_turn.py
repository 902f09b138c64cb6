"""Planted bugs that prove a checker: every run plays a part of them."""

from collections.abc import Sequence
from typing import Protocol

import pytest
from _pytest.mark.structures import ParameterSet


class Named(Protocol):
    """Something with a name for its test."""

    @property
    def name(self) -> str:
        """What the test is called."""


def in_turn(bugs: Sequence[Named]) -> list[ParameterSet]:
    """Mark two of three as long, for ``./run test long``; every run plays the others.

    They prove the checkers, not the product, and all together take minutes.
    """
    return [
        pytest.param(bug, id=bug.name, marks=[pytest.mark.long] if number % 3 else [])
        for number, bug in enumerate(bugs)
    ]
