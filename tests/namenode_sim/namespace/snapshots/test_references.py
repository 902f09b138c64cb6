"""The places of what was moved while a snapshot held it, and which snapshots belong to each."""

import pytest

from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.snapshots import references
from namenode_sim.namespace.snapshots.diffs import CURRENT, NONE


def a_directory(*ids: int, name: bytes = b"d") -> namespace_inode.INodeDirectory:
    directory = namespace_inode.INodeDirectory(20000, name, "alice", "staff", 0o750, 10)
    if ids:
        directory.history = namespace_inode.DirectoryHistory(
            [namespace_inode.DirectoryDiff(number, 0) for number in ids]
        )
    return directory


def a_symlink() -> namespace_inode.INodeSymlink:
    return namespace_inode.INodeSymlink(20001, b"l", "alice", "staff", 0o777, 10, 10, b"/t")


def moved(
    inode: namespace_inode.INode, *ids: int, placed: bool = True
) -> namespace_inode.Reference:
    """Return an inode with old names up to these snapshots, and the place where it is now."""
    reference = inode.reference = namespace_inode.Reference(inode)
    reference.old_names = [
        namespace_inode.OldName(None, reference, b"old", number) for number in ids
    ]
    if placed:
        inode.parent = a_directory()
        reference.place = namespace_inode.NewPlace(inode.parent, reference, CURRENT)
    return reference


def place_of(reference: namespace_inode.Reference) -> namespace_inode.NewPlace:
    assert reference.place is not None
    return reference.place


def ids_of(reference: namespace_inode.Reference) -> list[int]:
    return [name.last_snapshot_id for name in reference.old_names]


def test_what_moves_for_the_first_time_gets_a_reference() -> None:
    parent, child = a_directory(), a_directory(name=b"x")
    old_name = references.add_old_name(parent, child, 3)
    assert child.reference is not None
    assert child.reference.inode is child
    assert child.reference.old_names == [old_name]
    assert (old_name.parent, old_name.name, old_name.last_snapshot_id) == (parent, b"x", 3)


def test_what_moves_on_keeps_its_reference_and_leaves_its_place() -> None:
    child = a_directory(name=b"x")
    reference = moved(child, 1)
    old_name = references.add_old_name(a_directory(), place_of(reference), 3)
    assert child.reference is reference
    assert (ids_of(reference), reference.place) == ([1, 3], None)
    assert (old_name.reference, old_name.name) == (reference, b"x")


def test_the_list_in_which_it_came_has_its_old_name_instead() -> None:
    """Let it come once only, so that no list of an older diff is looked at."""
    child, other = a_directory(name=b"x"), a_directory(name=b"x")
    parent = a_directory(1, 2, 3, 4)
    assert parent.history is not None
    lists = [diff.created for diff in parent.history.diffs]
    lists[0][b"x"] = lists[1][b"x"] = child
    lists[2][b"x"] = other
    old_name = references.add_old_name(parent, child, 4)
    assert [entries.get(b"x") for entries in lists] == [child, old_name, other, None]


def test_old_names_are_in_the_order_of_their_snapshots() -> None:
    reference = moved(a_directory(), 2, 6)
    for number in (4, 1, 8):
        references.add_to(reference, namespace_inode.OldName(None, reference, b"old", number))
    assert ids_of(reference) == [1, 2, 4, 6, 8]


@pytest.mark.parametrize("number", [2, 4, 6])
def test_one_snapshot_has_no_two_names_of_an_inode(number: int) -> None:
    reference = moved(a_directory(), 2, 4, 6)
    with pytest.raises(ApplyError, match=f"two names in snapshot {number}"):
        references.add_to(reference, namespace_inode.OldName(None, reference, b"old", number))
    assert ids_of(reference) == [2, 4, 6]


@pytest.mark.parametrize("inode", [a_directory(), a_symlink()], ids=["directory", "symlink"])
def test_what_was_never_moved_has_no_places(inode: namespace_inode.INode) -> None:
    assert references.remove_place(inode) == -1


def test_an_old_name_goes_alone() -> None:
    child = a_directory()
    reference = moved(child, 2, 4)
    assert references.remove_place(reference.old_names[0]) == 2
    assert (ids_of(reference), reference.place is None) == ([4], False)
    assert child.parent is not None


def test_what_leaves_its_place_is_in_no_directory() -> None:
    child = a_directory()
    reference = moved(child, 2, 4)
    assert references.remove_place(place_of(reference)) == 2
    assert (ids_of(reference), reference.place, child.parent) == ([2, 4], None, None)


def test_a_former_place_says_nothing_of_where_it_is_now() -> None:
    child = a_directory()
    reference = moved(child, 2)
    former = namespace_inode.NewPlace(None, reference, 1)
    assert references.remove_place(former) == 2
    assert place_of(reference).parent is child.parent is not None


PRIOR: dict[str, tuple[namespace_inode.INode, tuple[int, ...], int | None, int]] = {
    "of the first name": (a_directory(1, 3, 5), (2, 4), 0, NONE),
    "of the second name": (a_directory(1, 3, 5), (2, 4), 1, 1),
    "of the third name": (a_directory(1, 3, 5), (2, 4, 6), 2, 3),
    "of the place": (a_directory(1, 3, 5), (2, 4), None, 3),
    "of the place alone": (a_directory(1, 3, 5), (), None, NONE),
    "without diffs": (a_directory(), (2, 4), None, NONE),
    "of a symlink": (a_symlink(), (2, 4), None, NONE),
}


@pytest.mark.parametrize(("inode", "ids", "index", "prior"), PRIOR.values(), ids=PRIOR.keys())
def test_the_newest_snapshot_of_the_place_before(
    inode: namespace_inode.INode, ids: tuple[int, ...], index: int | None, prior: int
) -> None:
    """``index`` is that of an old name; None is the place where it is now."""
    reference = moved(inode, *ids)
    entry = place_of(reference) if index is None else reference.old_names[index]
    assert references.prior_place_snapshot(entry) == prior


OWN: dict[str, tuple[namespace_inode.INode, int]] = {
    "its last": (a_directory(1, 3, 5), 3),
    "without diffs": (a_directory(), NONE),
    "of a symlink": (a_symlink(), NONE),
}


@pytest.mark.parametrize(("inode", "own"), OWN.values(), ids=OWN.keys())
def test_the_newest_snapshot_of_an_old_name(inode: namespace_inode.INode, own: int) -> None:
    assert references.own_snapshot(moved(inode, 2, 4).old_names[1]) == own


SINCE: dict[str, tuple[namespace_inode.INode, int, int]] = {
    "none": (a_directory(1, 3), 3, CURRENT),
    "one": (a_directory(1, 3, 5), 3, 5),
    "without diffs": (a_directory(), 3, CURRENT),
    "of a symlink": (a_symlink(), 3, CURRENT),
}


@pytest.mark.parametrize(("inode", "prior", "since"), SINCE.values(), ids=SINCE.keys())
def test_the_newest_snapshot_since_the_move(
    inode: namespace_inode.INode, prior: int, since: int
) -> None:
    assert references.snapshot_since(place_of(moved(inode, 2)), prior) == since


LAST: dict[str, tuple[tuple[int, ...], bool, bool]] = {
    "an old name": ((2,), False, True),
    "its place": ((), True, True),
    "both": ((2,), True, False),
    "two old names": ((2, 4), False, False),
    "none": ((), False, False),
}


@pytest.mark.parametrize(("ids", "placed", "last"), LAST.values(), ids=LAST.keys())
def test_whether_only_one_place_is_left(ids: tuple[int, ...], placed: bool, last: bool) -> None:
    inode = a_directory()
    assert not references.is_last_place(inode)
    moved(inode, *ids, placed=placed)
    assert references.is_last_place(inode) == last
