"""A storage has one number and one name as long as it is there."""

import pytest

from namenode_sim.blocks.errors import TooManyStorages
from namenode_sim.blocks.model import Storage
from namenode_sim.blocks.storages import MAX_STORAGES, Storages


def some() -> tuple[Storages, list[Storage]]:
    """Two storages of one DataNode, and one of another whose name is the same."""
    storages = Storages()
    return storages, [storages.add(*name) for name in (("n1", "a"), ("n1", "b"), ("n2", "a"))]


def test_storages_are_found_by_their_number_and_by_their_name() -> None:
    storages, made = some()
    assert [(one.number, one.node, one.uuid) for one in made] == [
        (0, "n1", "a"),
        (1, "n1", "b"),
        (2, "n2", "a"),
    ]
    assert (list(storages), len(storages)) == (made, 3)
    assert [storages.at(one.number) for one in made] == made
    assert [storages.find(one.node, one.uuid) for one in made] == made
    assert storages.find("n2", "b") is None
    assert (storages.of("n1"), storages.of("n2")) == (made[:2], made[2:])


def test_a_storage_that_is_there_is_not_made_again() -> None:
    storages, made = some()
    assert [storages.add(one.node, one.uuid) for one in made] == made
    assert (len(storages), list(storages)) == (3, made)


def test_beside_a_storage_are_the_others_of_its_datanode() -> None:
    storages, (one, second, other) = some()
    third = storages.add("n1", "c")
    assert [storages.others(storage) for storage in (one, second, third, other)] == [
        [second, third],
        [one, third],
        [one, second],
        [],
    ]


def test_the_storages_of_a_datanode_have_one_number_for_it() -> None:
    storages, made = some()
    numbers = list(storages.node_of)
    assert len(numbers) == 3
    assert numbers[0] == numbers[1] != numbers[2]
    storages.remove(made[0])
    storages.add("n3", "a")
    storages.add("n2", "b")
    first, second, third, fourth = storages.node_of
    assert third == fourth == numbers[2]
    assert second == numbers[1]
    assert first not in numbers


def test_the_number_of_a_storage_that_is_gone_is_given_again() -> None:
    storages, (one, second, other) = some()
    storages.remove(second)
    assert (list(storages), len(storages)) == ([one, other], 2)
    assert (storages.find("n1", "b"), storages.others(one)) == (None, [])
    again = storages.add("n3", "b")
    assert (again.number, again.node, again.uuid) == (second.number, "n3", "b")
    assert (list(storages), storages.at(again.number)) == ([one, again, other], again)
    assert storages.add("n3", "c").number == 3


def test_a_datanode_without_storages_is_forgotten() -> None:
    storages, (one, second, other) = some()
    storages.remove(one)
    assert (storages.of("n1"), storages.of("n2")) == ([second], [other])
    storages.remove(other)
    assert (storages.of("n1"), storages.of("n2")) == ([second], [])


def test_the_last_number_is_that_before_the_one_of_an_empty_cell() -> None:
    storages = Storages()
    for number in range(MAX_STORAGES):
        storages.add("n", f"s{number}")
    last = storages.find("n", f"s{MAX_STORAGES - 1}")
    assert last is not None
    assert last.number == 0xFFFE
    assert storages.add("n", last.uuid) is last
    with pytest.raises(TooManyStorages) as refused:
        storages.add("n2", "another")
    assert (refused.value.node, refused.value.uuid, refused.value.limit) == (
        "n2",
        "another",
        0xFFFF,
    )
    assert (len(storages), storages.find("n2", "another")) == (MAX_STORAGES, None)
    assert storages.of("n2") == []
    storages.remove(last)
    assert storages.add("n2", "another").number == 0xFFFE
