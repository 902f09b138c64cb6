"""The index finds what was put in, page by page, one by one and many at once."""

import random
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest

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


TRACED_FRAMES = 8
"""Enough to see that this file called for an allocation."""


def bytes_after(work: Callable[[BlockIndex], None]) -> int:
    """Return how many bytes an index holds on to after some work.

    What threads of earlier tests allocate in the meantime is no part of it.
    """
    tracemalloc.start(TRACED_FRAMES)
    try:
        index = BlockIndex()
        work(index)
        snapshot = tracemalloc.take_snapshot()
        ours = snapshot.filter_traces([tracemalloc.Filter(True, __file__, all_frames=True)])
        return sum(trace.size for trace in ours.traces)
    finally:
        tracemalloc.stop()


def come_and_go(kept: Sequence[int], gone: Sequence[int]) -> Callable[[BlockIndex], None]:
    """Add the blocks that stay, and then those that are removed again."""

    def work(index: BlockIndex) -> None:
        for number in (*kept, *gone):
            index.add(number, Slot(number % PAGE_IDS))
        for number in gone:
            index.remove(number)

    return work


def many_of_which_few_stay(index: BlockIndex) -> None:
    index.extend(np.arange(PAGE_IDS, 2 * PAGE_IDS), Slot(0))
    for number in range(PAGE_IDS + 8, 2 * PAGE_IDS):
        index.remove(number)


def few_at_once(index: BlockIndex) -> None:
    index.extend(np.arange(PAGE_IDS, PAGE_IDS + 8), Slot(0))


PAGE, WHOLE = 4 * PAGE_IDS, range(PAGE_IDS)

COSTS = {
    "a full page": (come_and_go(WHOLE, ()), PAGE, 2 * PAGE),
    "a few blocks": (come_and_go(WHOLE[:8], ()), 1, PAGE // 2),
    "a few that are left of a full page": (come_and_go(WHOLE[:8], WHOLE[8:]), 1, PAGE // 2),
    "a few at once": (few_at_once, 1, PAGE // 2),
    "a few that are left of many at once": (many_of_which_few_stay, 1, PAGE // 2),
    "half a page that was full": (come_and_go(WHOLE[::2], WHOLE[1::2]), PAGE, 2 * PAGE),
    "pages that are empty again": (
        come_and_go((), range(0, 100 * PAGE_IDS, PAGE_IDS)),
        1,
        2 * PAGE,
    ),
}
"""What is done, and between which limits the bytes lie that are held afterwards."""


@pytest.mark.parametrize(("work", "least", "most"), COSTS.values(), ids=COSTS.keys())
def test_a_page_costs_four_bytes_an_id_only_while_it_has_many_blocks(
    work: Callable[[BlockIndex], None], least: int, most: int
) -> None:
    bytes_after(work)  # what is made only once does not count
    assert least <= bytes_after(work) <= most


AT_ONCE = {
    "none": ([], []),
    "a few": ([5], [1, 2]),
    "a page": ([], [*range(PAGE_IDS)]),
    "pages behind each other": ([], [*range(3 * PAGE_IDS)]),
    "pages in any order": ([], [*range(2 * PAGE_IDS, 3 * PAGE_IDS), *range(100, 0, -1)]),
    "most of a page of which some are known": ([1, 3], [0, 2, *range(4, PAGE_IDS)]),
    "the rest of a page of which most are known": ([*range(4, PAGE_IDS)], [3, 1, 2, 0]),
    "a few on many pages": ([], [*range(-20 * PAGE_IDS, 20 * PAGE_IDS, 333)]),
}
"""The ids that are known, and those that come together."""


@pytest.mark.parametrize(("known", "ids"), AT_ONCE.values(), ids=AT_ONCE.keys())
def test_blocks_that_come_together_stand_beside_those_that_were_known(
    known: list[int], ids: list[int]
) -> None:
    index = BlockIndex()
    for number in known:
        index.add(number, Slot(9000 + number))
    index.extend(np.array(ids, np.int64), Slot(7))
    slots = {number: 9000 + number for number in known}
    slots |= {number: 7 + place for place, number in enumerate(ids)}
    ensure_same(index, slots, [-1, *slots, 10**9])


@pytest.mark.parametrize("known", [8, 80], ids=["few", "many"])
def test_ids_on_pages_with_few_blocks_with_many_and_with_none_are_looked_up_together(
    known: int,
) -> None:
    index = BlockIndex()
    for number in range(known):
        index.add(2 * PAGE_IDS + 2 * number, Slot(number))
    asked = np.arange(4 * PAGE_IDS)
    found = index.slots_of(asked)
    assert found[found >= 0].tolist() == list(range(known))
    assert asked[found >= 0].tolist() == [2 * PAGE_IDS + 2 * n for n in range(known)]
    assert found.dtype == np.int64


def test_nothing_is_known_of_nothing() -> None:
    assert BlockIndex().slots_of(np.array([], np.int64)).tolist() == []
