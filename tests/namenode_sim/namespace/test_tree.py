"""The tree by itself: what lies at a path, how many inodes are below it, and who writes which."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.namespace import inode
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.tree import Tree, components, new_root
from tests.namenode_sim.namespace import given_edits
from tests.namenode_sim.namespace.given_edits import add, file

GIVEN: list[Op] = [
    given_edits.mkdir("/d"),
    given_edits.mkdir("/d/e"),
    *file("/d/f"),
    ops.Symlink(0, "/l", "/d", 5, 5, given_edits.WHO),
]


def known(node: inode.INode | None) -> bytes | None:
    return None if node is None else node.name


def new_directory(number: int, name: bytes) -> inode.INodeDirectory:
    return inode.INodeDirectory(number, name, "u", "g", 0o755, 0)


NAMES: dict[str, list[bytes]] = {
    "/": [],
    "": [],
    "/a": [b"a"],
    "//a///b/": [b"a", b"b"],
    "/é": [b"\xc3\xa9"],
    "/a\ud800b": [b"a?b"],
}


@pytest.mark.parametrize(("path", "names"), NAMES.items(), ids=map(ascii, NAMES))
def test_the_names_along_a_path(path: str, names: list[bytes]) -> None:
    assert components(path) == names


def test_an_empty_file_system_is_a_root() -> None:
    root = new_root("hdfs", "supergroup")
    assert (root.id, root.name, root.user, root.group) == (inode.ROOT_ID, b"", "hdfs", "supergroup")
    assert (root.mode, root.mtime, root.quotas) == (0o755, 0, inode.ROOT_QUOTAS)
    tree = Tree(root)
    assert list(tree.inodes) == [inode.ROOT_ID]
    assert (tree.leases, tree.has_snapshots) == ({}, False)


# The path, what is found there, its parent, and the last name on it.
FOUND: dict[str, tuple[bytes | None, bytes | None, bytes]] = {
    "/": (b"", b"", b""),
    "/d": (b"d", b"", b"d"),
    "/d/e": (b"e", b"d", b"e"),
    "/d/f": (b"f", b"d", b"f"),
    "/l": (b"l", b"", b"l"),
    "/none": (None, b"", b"none"),
    "/d/e/none": (None, b"e", b"none"),
    "/none/x": (None, None, b"x"),
    "/none/x/y": (None, None, b"y"),
    "/d/f/x": (None, None, b"x"),
    "/d/f/x/y": (None, None, b"y"),
    "/l/e": (None, None, b"e"),
    "/l/e/x": (None, None, b"x"),
}


@pytest.mark.parametrize(("path", "expected"), FOUND.items(), ids=FOUND)
def test_what_lies_at_a_path(path: str, expected: tuple[bytes | None, bytes | None, bytes]) -> None:
    tree = given_edits.after(GIVEN).tree
    parent, name = tree.parent_of(path)
    assert (known(tree.find(path)), known(parent), name) == expected


ALONG: dict[str, list[bytes | None]] = {
    "/": [b""],
    "/d/e": [b"", b"d", b"e"],
    "/d/f": [b"", b"d", b"f"],
    "/d/f/x/y": [b"", b"d", b"f", None],
    "/l/e/x": [b"", b"l", None],
    "/none/x": [b"", None],
}


@pytest.mark.parametrize(("path", "expected"), ALONG.items(), ids=ALONG)
def test_the_inodes_along_a_path(path: str, expected: list[bytes | None]) -> None:
    assert list(map(known, given_edits.after(GIVEN).tree.along(components(path)))) == expected


@pytest.mark.parametrize("path", ["/none", "/d/f/x"])
def test_an_inode_that_is_not_there(path: str) -> None:
    with pytest.raises(ApplyError, match=f"{path} does not exist"):
        given_edits.after(GIVEN).tree.node(path)


@pytest.mark.parametrize("path", ["/d", "/l", "/none"])
def test_what_is_no_file(path: str) -> None:
    with pytest.raises(ApplyError, match=f"{path} is not a file"):
        given_edits.after(GIVEN).tree.file(path)


def test_a_name_is_given_once_in_a_directory() -> None:
    tree = given_edits.after(GIVEN).tree
    before = tree.node("/d/e")
    again = new_directory(20000, b"e")
    with pytest.raises(ApplyError, match="/d already has an entry b'e'"):
        tree.link(given_edits.directory(given_edits.after(GIVEN), "/d"), again)
    assert tree.node("/d/e") is before
    assert 20000 not in tree.inodes


def test_the_root_stays() -> None:
    tree = given_edits.after(GIVEN).tree
    with pytest.raises(ApplyError, match="the root cannot be unlinked"):
        tree.unlink(tree.root)


def test_what_is_unlinked_is_known_until_it_is_forgotten() -> None:
    namespace = given_edits.after(GIVEN)
    tree, top = namespace.tree, given_edits.directory(namespace, "/d")
    below = [tree.node("/d/e"), tree.node("/d/f")]
    assert tree.unlink(top) is tree.root
    assert (top.parent, tree.find("/d")) == (None, None)
    assert [node.id in tree.inodes for node in (top, *below)] == [True, True, True]
    assert [node.parent for node in below] == [top, top]
    tree.forget(top)
    assert [node.id in tree.inodes for node in (top, *below)] == [False, False, False]
    assert [node.parent for node in below] == [None, None]


SIZES: dict[str, int] = {"/": 5, "/d": 3, "/d/e": 1, "/d/f": 1, "/l": 1}


@pytest.mark.parametrize(("path", "expected"), SIZES.items(), ids=SIZES)
def test_how_many_inodes_there_are(path: str, expected: int) -> None:
    tree = given_edits.after(GIVEN).tree
    assert tree.usage.of_tree(tree.node(path), 0).names == expected


# What happens after the counts of these directories were asked for, and the counts then.
COUNTED: dict[str, tuple[list[Op], dict[str, int]]] = {
    "nothing": ([], {"/": 5, "/d": 3, "/d/e": 1}),
    "something is made further below": (
        [given_edits.mkdir("/d/e/x")],
        {"/": 6, "/d": 4, "/d/e": 2},
    ),
    "a tree goes": ([ops.Delete("/d", 5)], {"/": 2}),
    "a part of it goes": ([ops.Delete("/d/f", 5)], {"/": 4, "/d": 2, "/d/e": 1}),
    "a tree moves out": (
        [given_edits.mkdir("/d/e/x"), ops.Rename("/d/e", "/e", 5)],
        {"/": 6, "/d": 2, "/e": 2},
    ),
    "a tree moves below what was not counted": (
        [given_edits.mkdir("/x"), ops.Rename("/d", "/x/d", 5)],
        {"/": 6, "/x": 4, "/x/d": 3, "/x/d/e": 1},
    ),
}


@pytest.mark.parametrize(("then", "expected"), COUNTED.values(), ids=COUNTED.keys())
def test_a_count_is_kept_right(then: list[Op], expected: dict[str, int]) -> None:
    namespace = given_edits.after(GIVEN)
    for path in ("/", "/d", "/d/e"):
        namespace.tree.usage.of(given_edits.directory(namespace, path))
    given_edits.go_on(namespace, then)
    counts = {
        path: namespace.tree.usage.of(given_edits.directory(namespace, path)).names
        for path in expected
    }
    assert counts == expected


def test_a_count_is_kept_so_that_the_next_question_costs_no_walk() -> None:
    namespace = given_edits.after(GIVEN)
    top = given_edits.directory(namespace, "/d")
    assert namespace.tree.usage.of(top).names == 3
    top.children.clear()  # behind the tree's back
    assert namespace.tree.usage.of(top).names == 3


def test_the_count_of_what_is_forgotten_is_forgotten() -> None:
    namespace = given_edits.after(GIVEN)
    tree, top = namespace.tree, given_edits.directory(namespace, "/d")
    assert tree.usage.of(top).names == 3
    tree.unlink(top)
    tree.forget(top)
    empty = new_directory(top.id, b"d")
    tree.link(tree.root, empty)
    assert tree.usage.of(empty).names == 1


ORDERED: dict[str, tuple[list[Op], list[bytes]]] = {
    "nothing": ([], [b"b", b"c", b"e"]),
    "one is made between": ([given_edits.mkdir("/d/d")], [b"b", b"c", b"d", b"e"]),
    "one that is no ASCII is made": ([given_edits.mkdir("/d/é")], ["é".encode(), b"b", b"c", b"e"]),
    "one goes": ([ops.Delete("/d/c", 5)], [b"b", b"e"]),
    "one gets another name": ([ops.Rename("/d/b", "/d/x", 5)], [b"c", b"e", b"x"]),
}


@pytest.mark.parametrize(("then", "expected"), ORDERED.values(), ids=ORDERED.keys())
def test_names_that_were_asked_for_stay_in_order(then: list[Op], expected: list[bytes]) -> None:
    namespace = given_edits.after(
        given_edits.mkdir("/d"),
        given_edits.mkdir("/d/e"),
        given_edits.mkdir("/d/b"),
        given_edits.mkdir("/d/c"),
    )
    given_edits.directory(namespace, "/d").ordered_names()
    given_edits.go_on(namespace, then)
    assert given_edits.directory(namespace, "/d").ordered_names() == expected


def test_a_writer_has_a_lease_as_long_as_it_writes_a_file() -> None:
    namespace = given_edits.after(
        add("/f"), add("/g"), add("/h", client_name="other"), file("/closed")
    )
    tree = namespace.tree
    first, second, third = (tree.file(path) for path in ("/f", "/g", "/h"))
    assert tree.leases == {"writer": {first.id, second.id}, "other": {third.id}}
    tree.add_lease(tree.file("/closed"))
    tree.drop_lease(tree.file("/closed"))
    assert tree.leases == {"writer": {first.id, second.id}, "other": {third.id}}
    tree.drop_lease(first)
    assert tree.leases == {"writer": {second.id}, "other": {third.id}}
    tree.drop_lease(second)
    assert tree.leases == {"other": {third.id}}
    tree.drop_lease(second)
    assert tree.leases == {"other": {third.id}}


def test_the_lease_goes_with_a_file_that_is_forgotten() -> None:
    tree = given_edits.after(given_edits.mkdir("/d"), add("/d/f"), file("/d/g")).tree
    tree.forget(tree.file("/d/g"))
    assert tree.leases == {"writer": {tree.file("/d/f").id}}
    tree.forget(tree.file("/d/f"))
    assert tree.leases == {}


def test_a_lease_is_of_whoever_writes_now() -> None:
    tree = given_edits.after(add("/f")).tree
    made = tree.file("/f")
    tree.drop_lease(made)
    made.under_construction = inode.UnderConstruction("other", "there")
    tree.add_lease(made)
    assert tree.leases == {"other": {made.id}}


def test_names_of_users_are_one_object_each() -> None:
    tree = given_edits.after(GIVEN).tree
    one, other = "".join(["us", "er"]), "".join(["u", "ser"])
    assert tree.intern(one) is tree.intern(other)
