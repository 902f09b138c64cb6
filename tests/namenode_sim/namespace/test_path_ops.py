"""What edits about names leave: what a new inode has, whose times rise, and what may not move."""

from dataclasses import replace

import pytest

from namenode_sim.edits import ops, values
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import INodeDirectory, INodeSymlink
from namenode_sim.namespace.paths import old_rename_target
from tests.namenode_sim.namespace import given_edits
from tests.namenode_sim.namespace.given_edits import add, file, mkdir, mtime

OVERWRITE = (values.RenameOption.OVERWRITE,)
NO_GROUP = values.Permission("alice", "", 0o750)
THREE = (values.AclType.USER, values.AclType.GROUP, values.AclType.OTHER)
ACCESS = tuple(values.AclEntry(values.AclScope.ACCESS, kind, None, 5) for kind in THREE)
DEFAULT = tuple(values.AclEntry(values.AclScope.DEFAULT, kind, None, 7) for kind in THREE)


def test_what_a_new_directory_has() -> None:
    marks = (values.XAttr(values.XAttrNamespace.USER, "a", b"1"),)
    given = ops.Mkdir(16400, "/d", 10, 20, given_edits.WHO, (*ACCESS, *DEFAULT), marks)
    made = given_edits.after(given).tree.node("/d")
    assert isinstance(made, INodeDirectory)
    assert (made.id, made.name, made.mtime) == (16400, b"d", 10)
    assert (made.user, made.group, made.mode) == ("alice", "staff", 0o555)
    assert (made.acl, made.xattrs) == (DEFAULT, None)


def test_a_new_directory_without_an_acl_has_the_mode_of_the_edit() -> None:
    made = given_edits.after(mkdir("/d")).tree.node("/d")
    assert isinstance(made, INodeDirectory)
    assert (made.mode, made.acl) == (0o750, None)


def test_what_a_new_symlink_has() -> None:
    made = given_edits.after(
        ops.Symlink(16400, "/l", "/t\ud800x", 5, 6, given_edits.WHO)
    ).tree.node("/l")
    assert isinstance(made, INodeSymlink)
    assert (made.id, made.name, made.target) == (16400, b"l", b"/t?x")
    assert (made.mtime, made.atime) == (5, 6)
    assert (made.user, made.group, made.mode) == ("alice", "staff", 0o750)


WITHOUT_GROUP: list[Op] = [
    replace(mkdir("/d/n"), permission=NO_GROUP),
    replace(add("/d/n"), permission=NO_GROUP),
    ops.Symlink(0, "/d/n", "/t", 5, 5, NO_GROUP),
]


@pytest.mark.parametrize("op", WITHOUT_GROUP, ids=lambda op: type(op).__name__)
def test_an_edit_without_a_group_takes_the_directory_s(op: Op) -> None:
    made = given_edits.after(mkdir("/d"), op).tree.node("/d/n")
    assert (made.user, made.group) == ("alice", "staff")


def test_the_names_of_a_user_and_a_group_are_kept_once() -> None:
    namespace = given_edits.after(
        ops.Mkdir(
            0, "/d", 1, 1, values.Permission("".join(["al", "ice"]), "".join(["st", "aff"]), 0)
        ),
        ops.Symlink(
            0, "/l", "/t", 1, 1, values.Permission("".join(["ali", "ce"]), "st" + "aff", 0)
        ),
    )
    one, other = namespace.tree.node("/d"), namespace.tree.node("/l")
    assert one.user is other.user
    assert one.group is other.group


INODE_IDS: dict[str, tuple[list[Op], list[int], int]] = {
    "of old logs, which have none": ([mkdir("/a"), mkdir("/b")], [16386, 16387], 16387),
    "a symlink's": ([ops.Symlink(0, "/a", "/t", 1, 1, given_edits.WHO)], [16386], 16386),
    "a file's": ([add("/a")], [16386], 16386),
    "the edit's own": ([replace(mkdir("/a"), inode_id=17000)], [17000], 17000),
    "the next after the edit's own": (
        [replace(mkdir("/a"), inode_id=17000), mkdir("/b")],
        [17000, 17001],
        17001,
    ),
    "a lower one, which no next one repeats": (
        [replace(mkdir("/a"), inode_id=17000), replace(mkdir("/b"), inode_id=16500), mkdir("/c")],
        [17000, 16500, 17001],
        17001,
    ),
    "one for a directory that exists already is used up": (
        [mkdir("/a"), mkdir("/a"), mkdir("/b")],
        [16386, 16388],
        16388,
    ),
}


@pytest.mark.parametrize(("given", "ids", "last"), INODE_IDS.values(), ids=INODE_IDS.keys())
def test_the_ids_of_new_inodes(given: list[Op], ids: list[int], last: int) -> None:
    namespace = given_edits.after(given)
    names = sorted(namespace.tree.root.children)
    assert [namespace.tree.root.children[name].id for name in names] == ids
    assert namespace.counters.last_inode_id == last


NOTHING_DONE: dict[str, tuple[list[Op], Op]] = {
    "mkdir of the root": ([mkdir("/d")], mkdir("/", 90)),
    "mkdir on a directory": ([mkdir("/d"), mkdir("/d/e")], mkdir("/d", 90)),
    "mkdir on a file": ([mkdir("/d"), *file("/d/f")], mkdir("/d/f", 90)),
    "delete of the root": ([mkdir("/d")], ops.Delete("/", 90)),
    "delete of nothing": ([mkdir("/d")], ops.Delete("/d/none", 90)),
    "delete below a file": ([mkdir("/d"), *file("/d/f")], ops.Delete("/d/f/x", 90)),
    "old rename of the root": ([mkdir("/d")], ops.RenameOld("/", "/d", 90)),
    "old rename of nothing": ([mkdir("/d")], ops.RenameOld("/none", "/d", 90)),
    "old rename to itself": ([mkdir("/d"), mkdir("/d/e")], ops.RenameOld("/d/e", "//d/e/", 90)),
    "old rename of a file to itself": ([mkdir("/d"), *file("/f")], ops.RenameOld("/f", "/f", 90)),
    "old rename into its own directory": (
        [mkdir("/d"), mkdir("/d/e")],
        ops.RenameOld("/d/e", "/d", 90),
    ),
    "old rename far below itself": ([mkdir("/d"), mkdir("/d/e")], ops.RenameOld("/d", "/d/e", 90)),
    "old rename to where its name is taken": (
        [mkdir("/d"), mkdir("/d/f"), *file("/f")],
        ops.RenameOld("/d/f", "/", 90),
    ),
    "old rename below a file": ([mkdir("/d"), *file("/f")], ops.RenameOld("/d", "/f/d", 90)),
    "old rename below nothing": ([mkdir("/d")], ops.RenameOld("/d", "/none/d", 90)),
}


@pytest.mark.parametrize(("given", "op"), NOTHING_DONE.values(), ids=NOTHING_DONE.keys())
def test_an_edit_that_does_nothing(given: list[Op], op: Op) -> None:
    namespace = given_edits.after(given)
    before = [(path, mtime(namespace, path)) for path in ["/", *given_edits.paths(namespace)]]
    given_edits.go_on(namespace, op)
    assert [
        (path, mtime(namespace, path)) for path in ["/", *given_edits.paths(namespace)]
    ] == before
    assert len(namespace.tree.inodes) == len(before)


MOVED: dict[str, tuple[list[Op], Op, list[str]]] = {
    "old rename into the root": (
        [mkdir("/d"), *file("/d/f")],
        ops.RenameOld("/d/f", "/", 90),
        ["/d", "/f"],
    ),
    "old rename into a directory with an ending slash": (
        [mkdir("/d"), *file("/f")],
        ops.RenameOld("/f", "/d/", 90),
        ["/d", "/d/f"],
    ),
    "rename of a file onto a file": (
        [*file("/f"), *file("/g")],
        ops.Rename("/f", "/g", 90, OVERWRITE),
        ["/g"],
    ),
    "rename of a symlink onto a file": (
        [ops.Symlink(0, "/l", "/t", 1, 1, given_edits.WHO), *file("/g")],
        ops.Rename("/l", "/g", 90, OVERWRITE),
        ["/g"],
    ),
    "rename of a file onto a symlink": (
        [ops.Symlink(0, "/l", "/t", 1, 1, given_edits.WHO), *file("/g")],
        ops.Rename("/g", "/l", 90, OVERWRITE),
        ["/l"],
    ),
    "rename to a longer name that starts alike": (
        [mkdir("/d")],
        ops.Rename("/d", "/dd", 90),
        ["/dd"],
    ),
    "rename upwards": (
        [mkdir("/d"), mkdir("/d/e"), *file("/d/e/f")],
        ops.Rename("/d/e/f", "/f", 90),
        ["/d", "/d/e", "/f"],
    ),
    "rename with other options": (
        [mkdir("/d")],
        ops.Rename("/d", "/e", 90, (values.RenameOption.TO_TRASH,)),
        ["/e"],
    ),
}


@pytest.mark.parametrize(("given", "op", "expected"), MOVED.values(), ids=MOVED.keys())
def test_a_move(given: list[Op], op: Op, expected: list[str]) -> None:
    namespace = given_edits.after(given, op)
    assert given_edits.paths(namespace) == expected
    assert len(namespace.tree.inodes) == len(expected) + 1


REFUSED: dict[str, tuple[list[Op], Op, str]] = {
    "mkdir below nothing": ([], mkdir("/x/y"), "/x/y has no directory to be created in"),
    "mkdir below a file": (file("/f"), mkdir("/f/y"), "/f/y has no directory to be created in"),
    "a symlink below nothing": (
        [],
        ops.Symlink(0, "/x/l", "/t", 1, 1, given_edits.WHO),
        "/x/l has no directory to be created in",
    ),
    "a symlink as the root": (
        [],
        ops.Symlink(0, "/", "/t", 1, 1, given_edits.WHO),
        "/ has no directory to be created in",
    ),
    "a symlink on a name that is taken": (
        [mkdir("/d")],
        ops.Symlink(0, "/d", "/t", 1, 1, given_edits.WHO),
        "already has an entry b'd'",
    ),
    "rename onto itself": (
        [mkdir("/d")],
        ops.Rename("/d", "/d", 5, OVERWRITE),
        "/d cannot be renamed to /d, which is at or below it",
    ),
    "rename of the root": (
        [mkdir("/d")],
        ops.Rename("/", "/x", 5),
        "/ cannot be renamed to /x, which is at or below it",
    ),
    "rename onto a directory above": (
        [mkdir("/d"), mkdir("/d/e")],
        ops.Rename("/d/e", "/d", 5, OVERWRITE),
        "/d is not empty",
    ),
    "rename onto the root": ([mkdir("/d")], ops.Rename("/d", "/", 5, OVERWRITE), "/ is not empty"),
    "rename without overwriting": (
        [mkdir("/a"), mkdir("/b")],
        ops.Rename("/a", "/b", 5, (values.RenameOption.NONE,)),
        "/b exists and /a may not replace it",
    ),
    "rename of a file onto a directory": (
        [*file("/a"), mkdir("/b")],
        ops.Rename("/a", "/b", 5, OVERWRITE),
        "/a and /b must both be directories, or neither",
    ),
    "rename of a directory onto a file": (
        [mkdir("/a"), *file("/b")],
        ops.Rename("/a", "/b", 5, OVERWRITE),
        "/a and /b must both be directories, or neither",
    ),
    "rename to below nothing": (
        [mkdir("/a")],
        ops.Rename("/a", "/x/a", 5),
        "/x/a has no directory to be moved into",
    ),
    "rename to below a file": (
        [mkdir("/a"), *file("/f")],
        ops.Rename("/a", "/f/a", 5),
        "/f/a has no directory to be moved into",
    ),
    "rename of nothing": ([], ops.Rename("/a", "/b", 5), "/a does not exist"),
}


@pytest.mark.parametrize(("given", "op", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_an_edit_that_contradicts_the_names(given: list[Op], op: Op, text: str) -> None:
    namespace = given_edits.after(given)
    with pytest.raises(ApplyError, match=f"{type(op).__name__}: .*{text}"):
        given_edits.go_on(namespace, op)


# Whose modification time is asked for, after what.
OLD, NEW = [mkdir("/old", 10), mkdir("/old/x", 10)], [mkdir("/new", 10)]
OVER = [*OLD, *NEW, mkdir("/new/y", 10)]
TIMES: dict[str, tuple[list[Op], str, int]] = {
    "a new symlink raises its directory's": (
        [mkdir("/d", 10), ops.Symlink(0, "/d/l", "/t", 30, 90, given_edits.WHO)], "/d", 30,
    ),
    "an older symlink leaves it": (
        [mkdir("/d", 40), ops.Symlink(0, "/d/l", "/t", 30, 90, given_edits.WHO)], "/d", 40,
    ),
    "a new directory raises it": ([mkdir("/d", 10), mkdir("/d/e", 30)], "/d", 30),
    "a delete raises it": ([*OLD, ops.Delete("/old/x", 60)], "/old", 60),
    "an older delete leaves it": ([mkdir("/old", 70), *OLD[1:], ops.Delete("/old/x", 60)],
                                  "/old", 70),
    "a rename raises where it came from": (
        [*OLD, *NEW, ops.Rename("/old/x", "/new/x", 60)], "/old", 60,
    ),
    "an older rename leaves where it came from": (
        [mkdir("/old", 70), *OLD[1:], *NEW, ops.Rename("/old/x", "/new/x", 60)], "/old", 70,
    ),
    "a rename raises where it came to": (
        [*OLD, *NEW, ops.Rename("/old/x", "/new/x", 60)], "/new", 60,
    ),
    "an older rename leaves where it came to": (
        [*OLD, mkdir("/new", 70), ops.Rename("/old/x", "/new/x", 60)], "/new", 70,
    ),
    "what was moved is newer than where it came to": (
        [mkdir("/old"), mkdir("/old/x", 80), *NEW, ops.Rename("/old/x", "/new/x", 60)],
        "/new", 80,
    ),
    "where it came from does not get that": (
        [mkdir("/old"), mkdir("/old/x", 80), ops.Times("/old", 20, -1), *NEW,
         ops.Rename("/old/x", "/new/x", 60)],
        "/old", 60,
    ),
    "a rename over another raises both": (
        [*OVER, ops.Rename("/old/x", "/new/y", 60, OVERWRITE)], "/new", 60,
    ),
    "what was moved keeps its own": (
        [*OVER, ops.Rename("/old/x", "/new/y", 60, OVERWRITE)], "/new/y", 10,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "path", "expected"), TIMES.values(), ids=TIMES.keys())
def test_times_of_modification(given: list[Op], path: str, expected: int) -> None:
    assert mtime(given_edits.after(given), path) == expected


def test_what_is_replaced_is_gone_with_all_that_was_below() -> None:
    namespace = given_edits.after(file("/f"), file("/g"))
    gone, moved = namespace.tree.file("/g"), namespace.tree.file("/f")
    given_edits.go_on(namespace, ops.Rename("/f", "/g", 60, OVERWRITE))
    assert namespace.tree.file("/g") is moved
    assert (moved.name, moved.parent) == (b"g", namespace.tree.root)
    assert gone.id not in namespace.tree.inodes
    assert gone.parent is None


# What a boolean rename would do: the source, the asked destination, and the path that it gets.
OLD_TARGETS: list[tuple[str, str, str | None]] = [
    ("/d", "/new", "/new"),
    ("/f", "/d", "/d/f"),
    ("/f", "/d/", "/d/f"),
    ("/d/e", "/", "/e"),
    ("/f", "/f", "/f"),
    ("/d/e", "/d", "/d/e"),
    ("/f", "/", "/f"),
    ("/", "/", None),
    ("/", "/d", None),
    ("/", "/new", None),
    ("/none", "/new", None),
    ("/f", "/g", None),
    ("/d", "/d", None),
    ("/d", "/d/e/new", None),
    ("/f", "/none/new", None),
    ("/f", "/g/new", None),
]


@pytest.mark.parametrize(("source", "asked", "expected"), OLD_TARGETS)
def test_where_a_boolean_rename_goes(source: str, asked: str, expected: str | None) -> None:
    tree = given_edits.after(mkdir("/d"), mkdir("/d/e"), file("/f"), file("/g")).tree
    assert old_rename_target(tree, source, asked) == expected
