"""Which replicas of a block go when there are too many.

See docs/reference/blocks.md#excess.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from namenode_sim.blocks.model import StorageNumber

RACKS: Final = 2
"""On so many racks the replicas of a block are to stand."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A good replica on a confirmed storage.

    ``late``: its DataNode has missed some heartbeats; ``remaining`` bytes are free on its storage.
    """

    number: StorageNumber
    node: str
    rack: str
    last_heard: float
    late: bool
    remaining: int


def choose_excess(
    candidates: Sequence[Candidate], surplus: int, hint: str | None
) -> list[StorageNumber]:
    """Choose so many replicas to be deleted, so that those that stay keep to two racks if they can.

    ``hint`` is a DataNode that was asked to give its replica up, by a balancer.
    """
    left = list(candidates)
    chosen: list[StorageNumber] = []
    for _ in range(surplus):
        spread = Counter(one.rack for one in left)
        goes = _hinted(left, spread, hint) or min(_eligible(left, spread), key=_order)
        left.remove(goes)
        chosen.append(goes.number)
    return chosen


def _hinted(left: list[Candidate], spread: Counter[str], hint: str | None) -> Candidate | None:
    """The replica that was given up, if two racks stay where there are two."""
    spared = len(spread) > RACKS
    return next(
        (one for one in left if one.node == hint and (spared or spread[one.rack] > 1)), None
    )


def _eligible(left: list[Candidate], spread: Counter[str]) -> list[Candidate]:
    """Of two racks none may lose its last replica."""
    if len(spread) != RACKS:
        return left
    return [one for one in left if spread[one.rack] > 1] or left


def _order(one: Candidate) -> tuple[bool, float, int, StorageNumber]:
    """Late DataNodes first, the longest silent of them; then the fullest storages."""
    if one.late:
        return False, one.last_heard, 0, one.number
    return True, 0.0, one.remaining, one.number
