"""Rows and storages name each other, whichever replicas come and go."""

from itertools import permutations

import numpy as np
import pytest

from namenode_sim.blocks.model import Reported, Slot, Storage
from namenode_sim.blocks.state import BlockState
from tests.namenode_sim.blocks import test_reports as given
from tests.namenode_sim.blocks.test_map_blocks import slot_of
from tests.namenode_sim.blocks.test_reports import FINALIZED, B, a_map, written

BLOCKS = (B, B + 1, B + 2)


def on_all(count: int) -> tuple[BlockState, list[Storage], list[Slot]]:
    """Add three blocks with a replica on each of ``count`` storages, listed in any order."""
    state, one, other = a_map(*(change for number in BLOCKS for change in written(number)))
    storages = [one, other, *(state.add_storage(f"n{n}", "a") for n in range(3, count + 1))]
    for turn, storage in enumerate(storages[:count]):
        ids = (*BLOCKS[turn % 3 :], *BLOCKS[: turn % 3])
        given.told(state, storage, *((number, Reported(FINALIZED, 1001, 700)) for number in ids))
    return state, storages[:count], [slot_of(state, number) for number in BLOCKS]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    ("count", "gone"), [(count, gone) for count in range(1, 7) for gone in range(count)]
)
def test_a_replica_goes_from_any_place_and_comes_back(count: int, gone: int, place: int) -> None:
    state, storages, slots = on_all(count)
    slot, storage = slots[place], storages[gone]
    numbers = {one.number for one in storages}
    state.drop(slot, storage)
    state.map.check()
    assert set(state.map.storages_of(slot)) == numbers - {storage.number}
    assert (state.map.live(slot), state.map.holds(slot, storage.number)) == (count - 1, False)
    assert [set(state.map.storages_of(one)) for one in slots if one != slot] == [numbers] * 2
    state.take(slot, storage)
    state.map.check()
    assert (set(state.map.storages_of(slot)), state.map.live(slot)) == (numbers, count)
    assert all(state.map.holds(slot, number) for number in numbers)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_replicas_go_in_any_order(order: tuple[int, ...]) -> None:
    state, storages, slots = on_all(4)
    for turn, place in enumerate(order):
        state.drop(slots[1], storages[place])
        state.map.check()
        left = {storages[number].number for number in order[turn + 1 :]}
        assert set(state.map.storages_of(slots[1])) == left
    assert [len(state.map.storages_of(slot)) for slot in slots] == [4, 0, 4]


@pytest.mark.parametrize("count", range(1, 6))
def test_many_replicas_at_once_go_to_the_first_free_cells(count: int) -> None:
    """The first storage has one block more before, so that the rows are filled unevenly."""
    state, one, other = a_map(*(change for number in BLOCKS for change in written(number)))
    storages = [one, other, *(state.add_storage(f"n{n}", "a") for n in range(3, count + 1))]
    given.told(state, state.add_storage("n9", "a"), (B + 1, Reported(FINALIZED, 1001, 700)))
    for storage in storages[:count]:
        given.reported(state, storage, *((number, 700, 1001, FINALIZED) for number in BLOCKS))
    names = [f"n{number}" for number in range(1, count + 1)]
    assert [given.good(state, number) for number in BLOCKS] == [names, ["n9", *names], names]


def test_many_replicas_are_in_the_list_of_their_storage_in_their_order() -> None:
    state, one, _ = a_map(*(change for number in BLOCKS for change in written(number)))
    first, second, third = (slot_of(state, number) for number in BLOCKS)
    assert state.take_all(np.array([third]), one).all()
    assert state.take_all(np.array([second, first]), one).all()
    state.map.check()
    assert list(one.slots) == [third, second, first]
