"""The index finds what was put in, page by page, one by one and many at once."""

import random

import numpy as np

from namenode_sim.blocks.index import DENSE_FROM, PAGE_IDS, BlockIndex
from namenode_sim.blocks.model import Slot

FIRST = 2**30 + 1


def ensure_same(index: BlockIndex, known: dict[int, int], asked: list[int]) -> None:
    """Compare with a dictionary, by every way of asking."""
    assert dict(index) == known
    assert [index.get(number) for number in asked] == [known.get(number) for number in asked]
    ids = np.array(sorted(asked), np.int64)
    assert index.slots_of(ids).tolist() == [known.get(number, -1) for number in sorted(asked)]


def test_blocks_come_and_go() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        index, known = BlockIndex(), dict[int, int]()
        pool = [FIRST + number for number in range(3 * PAGE_IDS)]
        pool += [chance.randrange(-(2**62), 2**30) for _ in range(50)]
        for goal in (0.02, 0.9, 0.01, 0.5):
            for number in pool:
                if chance.random() < goal:
                    if number not in known:
                        known[number] = len(known) + seed
                        index.add(number, Slot(known[number]))
                elif number in known:
                    del known[number]
                    index.remove(number)
            ensure_same(index, known, pool)
            ensure_same(index, known, chance.sample(pool, 9))


def test_many_at_once_are_as_one_by_one() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        ids = [FIRST + n for n in range(2 * PAGE_IDS) if chance.random() < 0.6]
        ids += [chance.randrange(-(2**62), 2**30) for _ in range(20)]
        chance.shuffle(ids)
        index = BlockIndex()
        index.add(FIRST - 7, Slot(0))
        index.extend(np.array(ids, np.int64), Slot(1))
        known = {FIRST - 7: 0} | {number: place + 1 for place, number in enumerate(ids)}
        ensure_same(index, known, [*ids, FIRST - 7, FIRST - 8])


def test_a_page_that_is_almost_empty_costs_little() -> None:
    index = BlockIndex()
    for number in range(PAGE_IDS):
        index.add(FIRST + number, Slot(number))
    for number in range(DENSE_FROM // 4, PAGE_IDS):
        index.remove(FIRST + number)
    ensure_same(index, {FIRST + n: n for n in range(DENSE_FROM // 4)}, [FIRST, FIRST + 900])
    for number in range(DENSE_FROM // 4):
        index.remove(FIRST + number)
    ensure_same(index, {}, [FIRST])


def test_nothing_is_known_of_nothing() -> None:
    assert BlockIndex().slots_of(np.array([], np.int64)).tolist() == []
