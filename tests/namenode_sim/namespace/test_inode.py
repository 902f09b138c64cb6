"""What directories and moved inodes say of themselves."""

import pytest

from namenode_sim.namespace.inode import INodeDirectory, NewPlace, OldName, Reference


def directory(number: int) -> INodeDirectory:
    return INodeDirectory(number, b"d", "u", "g", 0o755, 0)


def test_the_order_of_children_is_found_once() -> None:
    parent = directory(1)
    parent.children = {name: directory(2) for name in (b"b", b"a", b"\xc3\xa9")}
    names = parent.ordered_names()
    assert names == [b"\xc3\xa9", b"a", b"b"]
    assert parent.ordered_names() is names


@pytest.mark.parametrize("is_placed", [False, True], ids=["in snapshots only", "linked"])
@pytest.mark.parametrize("old_names", [0, 1, 2])
def test_all_places_of_a_moved_inode_are_counted(old_names: int, is_placed: bool) -> None:
    reference = Reference(directory(3))
    reference.old_names = [OldName(None, reference, b"d", number) for number in range(old_names)]
    reference.place = NewPlace(None, reference, 5) if is_placed else None
    assert reference.count() == old_names + int(is_placed)
