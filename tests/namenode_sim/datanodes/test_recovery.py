"""Which DataNode leads a block's recovery."""

from itertools import product

import pytest

from namenode_sim.blocks.model import StorageNumber
from namenode_sim.datanodes.recovery import Candidate, choose_primary


def storage(number: int, heard: float, *, alive: bool = True) -> Candidate:
    return Candidate(StorageNumber(number), alive, heard)


def numbers(*of: int) -> frozenset[StorageNumber]:
    return frozenset(map(StorageNumber, of))


A, B, C = storage(1, 10.0), storage(2, 30.0), storage(3, 20.0)
DEAD = storage(4, 99.0, alive=False)

CASES: dict[str, tuple[list[Candidate], frozenset[StorageNumber], int | None, list[int]]] = {
    "the one heard of last": ([A, B, C], numbers(), 2, [2]),
    "the next one, of those not yet asked": ([A, B, C], numbers(2), 3, [2, 3]),
    "the last one": ([A, B, C], numbers(2, 3), 1, [1, 2, 3]),
    "all were asked": ([A, B, C], numbers(1, 2, 3), 2, [2]),
    "the dead are not asked": ([A, DEAD], numbers(), 1, [1]),
    "all living ones were asked": ([A, DEAD], numbers(1), 1, [1]),
    "nobody lives": ([DEAD], numbers(4), None, []),
    "nobody has it": ([], numbers(), None, []),
    "who was asked before is gone": ([A], numbers(7), 1, [1, 7]),
}


@pytest.mark.parametrize(("among", "tried", "chosen", "then"), CASES.values(), ids=CASES.keys())
def test_a_choice(
    among: list[Candidate], tried: frozenset[StorageNumber], chosen: int | None, then: list[int]
) -> None:
    assert choose_primary(among, tried) == (chosen, numbers(*then))


def test_all_who_live_are_asked_before_one_is_asked_again() -> None:
    for alive in product((False, True), repeat=4):
        among = [storage(n, float(n % 3), alive=on) for n, on in enumerate(alive)]
        tried: frozenset[StorageNumber] = frozenset()
        asked: list[StorageNumber] = []
        for _ in range(sum(alive)):
            chosen, tried = choose_primary(among, tried)
            assert chosen is not None
            asked.append(chosen)
        assert sorted(asked) == [one.storage for one in among if one.alive]
