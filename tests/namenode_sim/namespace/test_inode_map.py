"""The map of inodes is a dictionary to whoever asks it, however ids come, go and come again."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namenode_sim.namespace.inode import INode, INodeDirectory
from namenode_sim.namespace.inode_map import InodeMap

RISING = st.sampled_from((1, 1, 1, 1, 2, 5, 1000, 2500))
ANY_ID = st.integers(-3, 60) | st.integers(16385, 16500) | st.integers(0, 2**63 - 1)
CHANGES = st.one_of(
    st.tuples(st.just("add"), RISING),
    st.tuples(st.just("extend"), st.lists(RISING, max_size=30)),
    st.tuples(st.just("discard"), st.integers(0, 400)),
    st.tuples(st.just("add again"), st.integers(0, 400)),
    st.tuples(st.just("discard many"), st.integers(1, 9)),
)
NOWHERE = object()


def made(number: int) -> INodeDirectory:
    return INodeDirectory(number, b"d", "u", "g", 0o755, 0)


def do(inodes: InodeMap, model: dict[int, INode], what: str, how: object) -> None:
    known = sorted(model)
    match what, how:
        case "add", int(step):
            number = max([*known, 16384]) + step
            inodes[number] = model[number] = made(number)
        case "extend", list(steps):
            number, more = max([*known, 16384]), []
            for step in steps:
                number += step
                more.append(made(number))
            inodes.extend(more)
            model.update((inode.id, inode) for inode in more)
        case (("discard" | "add again"), int(place)):
            number = known[place % len(known)] if known else 16385
            inodes.discard(number)
            model.pop(number, None)
            if what == "add again":
                inodes[number] = model[number] = made(number)
        case "discard many", int(share):
            for number in known[:: share + 1]:
                inodes.discard(number)
                del model[number]
        case _:
            raise AssertionError(what)


def assert_same(inodes: InodeMap, model: dict[int, INode]) -> None:
    assert list(inodes) == list(model)
    assert list(inodes.values()) == list(model.values())
    assert list(inodes.items()) == list(model.items())
    assert len(inodes) == len(model)
    assert inodes.several(list(model)) == list(model.values())
    around = [number + step for number in [*model, 0, 16385] for step in (-1, 0, 1)]
    for number in around:
        assert inodes.get(number, NOWHERE) is model.get(number, NOWHERE)
        assert (number in inodes) == (number in model)
        if number not in model:
            with pytest.raises(KeyError):
                inodes[number]
            with pytest.raises(KeyError):
                inodes.several([*model, number])


@given(st.lists(CHANGES, max_size=25), st.lists(ANY_ID, max_size=3))
def test_it_is_a_dictionary_while_ids_rise_and_after(
    changes: list[tuple[str, object]], any_ids: list[int]
) -> None:
    inodes, model = InodeMap(), dict[int, INode]()
    for what, how in changes:
        do(inodes, model, what, how)
    assert_same(inodes, model)
    for number in any_ids:
        inodes[number] = model[number] = made(number)
        assert_same(inodes, model)


def taken(inodes: list[INode]) -> float:
    """Return a map's bytes an inode: the least of three, as other threads allocate, too."""
    sizes: list[float] = []
    for _ in range(3):
        tracemalloc.start()
        made_of = InodeMap(inodes)
        size, _peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sizes.append(size / len(made_of))
    return min(sizes)


def test_an_inode_takes_a_place_of_eight_bytes_as_long_as_a_quarter_of_them_is_taken() -> None:
    inodes: list[INode] = [made(number) for number in range(16385, 36385)]
    assert taken(inodes) < 10
    assert taken(inodes[::2]) < 20
    assert taken(inodes[::-1]) > 25, "this test would not tell a row from a dictionary"


def test_it_stays_the_same_when_hardly_any_place_is_taken_any_more() -> None:
    inodes: list[INode] = [made(number) for number in range(16385, 20385)]
    found, model = InodeMap(inodes), {inode.id: inode for inode in inodes}
    for inode in inodes[::-1]:
        found.discard(inode.id)
        del model[inode.id]
        if len(model) in {1000, 800, 745, 744, 743, 10, 1, 0}:
            assert_same(found, model)
    found[5] = model[5] = made(5)
    assert_same(found, model)


def mapped(*numbers: int) -> InodeMap:
    return InodeMap([made(number) for number in numbers])


def is_row(inodes: InodeMap) -> bool:
    return inodes._by_id is None


ROWS: dict[str, tuple[list[int], bool]] = {
    "nothing": ([], True),
    "ids that rise": ([16385, 16386, 16388], True),
    "as many places as two inodes may take": ([100, 1131], True),
    "one place more": ([100, 1132], False),
    "three inodes may take four places more": ([100, 101, 1135], True),
    "one place more than three may take": ([100, 101, 1136], False),
    "an id that is lower than the first": ([16386, 16385], False),
    "an id that is lower than the last": ([16385, 16387, 16386], False),
    "the first id comes again": ([16385, 16386, 16385], True),
    "the last id comes again": ([16385, 16386, 16386], True),
}


@pytest.mark.parametrize(("numbers", "expected"), ROWS.values(), ids=ROWS.keys())
def test_what_is_a_row(numbers: list[int], expected: bool) -> None:
    assert is_row(mapped(*numbers)) == expected


def test_a_row_has_at_most_1024_places_more_than_four_for_each_inode() -> None:
    inodes = mapped(*range(5001, 7001))
    for number in range(5001, 5001 + 1756):
        inodes.discard(number)
    assert (len(inodes), is_row(inodes)) == (244, True)
    inodes.discard(7000)
    assert (len(inodes), is_row(inodes)) == (243, False)
    inodes[6999] = new = made(6999)
    assert inodes[6999] is new


def test_a_dictionary_stays_one_when_ids_come_that_followed_on_the_row() -> None:
    inodes, more = mapped(16385, 16386, 7), [made(16385), made(16386)]
    inodes.extend(more)
    assert not is_row(inodes)
    assert list(inodes) == [16385, 16386, 7]
    assert [inodes[16386], inodes[16385]] == more[::-1]


def test_ids_that_follow_on_are_all_there() -> None:
    inodes = mapped(16385)
    inodes.extend([made(number) for number in (16386, 16387)])
    assert (len(inodes), list(inodes)) == (3, [16385, 16386, 16387])


def calls_in(done: Callable[[], object]) -> int:
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        done()
    finally:
        sys.setprofile(before)
    return count


def test_many_inodes_of_a_row_are_found_and_added_at_once() -> None:
    inodes = mapped(*range(16385, 16485))
    more: list[INode] = [made(number) for number in range(16485, 16585)]
    assert calls_in(lambda: inodes.extend(more)) < 50
    assert calls_in(lambda: inodes.several(range(16385, 16585))) < 50
    assert calls_in(lambda: [inodes[number] for number in range(16385, 16585)]) > 200
