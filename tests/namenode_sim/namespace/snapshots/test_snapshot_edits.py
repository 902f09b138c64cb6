"""Edits about snapshots themselves: directories that may have some, names, times, how they go."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block, XAttr, XAttrNamespace
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.snapshots import DELETED_MARK
from namenode_sim.namespace.state import SnapshotRules
from tests.namenode_sim.namespace import given_edits
from tests.namenode_sim.namespace.given_edits import ALLOWED, add, after, go_on, mkdir, mtime, take

ORDERED = SnapshotRules(deletion_ordered=True)


def names(namespace: Namespace) -> list[str]:
    return [snapshot.name for snapshot in given_edits.snapshots(namespace)]


REFUSED: dict[str, tuple[Op, str]] = {
    "a file": (ops.AllowSnapshot("/f"), "/f is not a directory"),
    "a snapshot of any directory": (take("s0", path="/e"), "/e is not snapshottable"),
    "one of any directory dropped": (ops.DeleteSnapshot("/e", "s0"), "/e is not snapshottable"),
    "one of any directory renamed": (
        ops.RenameSnapshot("/e", "s0", "s1"),
        "/e is not snapshottable",
    ),
    "no more, while there are some": (ops.DisallowSnapshot("/d"), "/d still has 2 snapshots"),
    "a name twice": (take("s0"), "already has a snapshot 's0'"),
    "a name given to another": (
        ops.RenameSnapshot("/d", "s0", "s1", 5),
        "there already is a snapshot 's1'",
    ),
    "one dropped that is not there": (ops.DeleteSnapshot("/d", "s7"), "there is no snapshot 's7'"),
    "a new name of none": (ops.RenameSnapshot("/d", "s7", "s8", 5), "there is no snapshot 's7'"),
}


@pytest.mark.parametrize(("op", "match"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(op: Op, match: str) -> None:
    namespace = after(list(ALLOWED), mkdir("/e"), given_edits.file("/f"), take("s0"), take("s1"))
    with pytest.raises(ApplyError, match=match):
        go_on(namespace, op)


def test_to_disallow_what_nobody_allowed_changes_nothing() -> None:
    namespace = after(mkdir("/d"), ops.DisallowSnapshot("/d"))
    assert (namespace.snapshots.snapshottable, given_edits.directory(namespace).history) == (
        {},
        None,
    )


def test_a_directory_that_may_have_none_any_more_has_no_history() -> None:
    namespace = after(list(ALLOWED), ops.DisallowSnapshot("/d"))
    assert (namespace.snapshots.snapshottable, given_edits.directory(namespace).history) == (
        {},
        None,
    )


def test_a_directory_that_may_have_none_any_more_keeps_what_another_s_snapshot_has() -> None:
    """Keep it until that goes, too."""
    namespace = after(list(ALLOWED), mkdir("/d/e"), take("s0"), ops.SetPermissions("/d/e", 0o700))
    go_on(namespace, ops.Rename("/d/e", "/e", 60, ()))
    go_on(namespace, ops.AllowSnapshot("/e"), ops.DisallowSnapshot("/e"))
    assert given_edits.seen(namespace, "s0", "e").node.mode == 0o750
    go_on(namespace, ops.DeleteSnapshot("/d", "s0", 70))
    assert given_edits.directory(namespace, "/e").history is None


TIMES: dict[str, tuple[list[Op], int, int]] = {
    "taken": ([take("s")], 50, 50),
    "taken by a clock that is behind": ([take("s", 5)], 5, 10),
    "taken in a log that tells no time": ([take("s", None)], 0, 10),
    "renamed": ([take("s"), ops.RenameSnapshot("/d", "s", "t", 60)], 60, 50),
    "renamed by a clock that is behind": (
        [take("s"), ops.RenameSnapshot("/d", "s", "t", 5)],
        5,
        50,
    ),
    "renamed in a log that tells no time": ([take("s"), ops.RenameSnapshot("/d", "s", "t")], 0, 50),
    "renamed to its own name": ([take("s"), ops.RenameSnapshot("/d", "s", "s", 60)], 50, 50),
}


@pytest.mark.parametrize(("edits", "of_root", "of_directory"), TIMES.values(), ids=TIMES.keys())
def test_the_times_of_a_snapshot_and_of_its_directory(
    edits: list[Op], of_root: int, of_directory: int
) -> None:
    namespace = after(list(ALLOWED), edits)
    [snapshot] = given_edits.snapshots(namespace)
    assert (snapshot.root.mtime, mtime(namespace, "/d")) == (of_root, of_directory)


DROPPED: dict[str, tuple[int, int | None, int]] = {
    "later": (50, 60, 60),
    "by a clock that is behind": (50, 20, 50),
    "in a log that tells no time": (50, None, 50),
    "of 1970 in a log that tells no time": (0, None, 0),
}


@pytest.mark.parametrize(("before", "time", "then"), DROPPED.values(), ids=DROPPED.keys())
def test_the_time_of_a_directory_whose_snapshot_is_dropped(
    before: int, time: int | None, then: int
) -> None:
    given: list[Op] = [mkdir("/d", before), ops.AllowSnapshot("/d"), take("s", None)]
    namespace = after(given, ops.DeleteSnapshot("/d", "s", time))
    assert (names(namespace), mtime(namespace, "/d")) == ([], then)


def test_a_renamed_snapshot_is_shown_with_its_new_name() -> None:
    namespace = after(list(ALLOWED), take("s"), ops.RenameSnapshot("/d", "s", "t", 60))
    assert given_edits.seen(namespace, "t").node.name == b"t"


OTHER = XAttr(XAttrNamespace.USER, "a", b"1")
NAMED_LIKE_THE_MARK = XAttr(XAttrNamespace.USER, DELETED_MARK.name, b"1")

MARKED: dict[str, tuple[tuple[XAttr, ...], list[str], list[XAttr], str]] = {
    "once": ((), ["s1"], [DELETED_MARK], "s1#1"),
    "beside another attribute": ((OTHER,), ["s1"], [DELETED_MARK, OTHER], "s1#1"),
    "beside a user's attribute of this name": (
        (NAMED_LIKE_THE_MARK,),
        ["s1"],
        [DELETED_MARK, NAMED_LIKE_THE_MARK],
        "s1#1",
    ),
    "twice": ((OTHER,), ["s1", "s1#1"], [DELETED_MARK, OTHER], "s1#1#1"),
}


@pytest.mark.parametrize(
    ("attributes", "dropped", "marked", "name"), MARKED.values(), ids=MARKED.keys()
)
def test_a_snapshot_is_marked_while_an_older_one_is_there(
    attributes: tuple[XAttr, ...], dropped: list[str], marked: list[XAttr], name: str
) -> None:
    given: list[Op] = [ops.SetXAttr("/d", attributes)] if attributes else []
    namespace = after(list(ALLOWED), given, take("s0"), take("s1"))
    namespace.snapshots.rules = ORDERED
    go_on(namespace, [ops.DeleteSnapshot("/d", one, 60) for one in dropped])
    assert list(given_edits.snapshots(namespace)[1].root.xattrs or ()) == marked
    assert names(namespace) == ["s0", name]
    assert list(given_edits.directory(namespace).xattrs or ()) == list(attributes)


@pytest.mark.parametrize(("time", "then"), [(60, 60), (None, 0)])
def test_a_marked_snapshot_has_the_time_of_its_mark_and_its_directory_keeps_its_own(
    time: int | None, then: int
) -> None:
    namespace = after(list(ALLOWED), take("s0"), take("s1"))
    namespace.snapshots.rules = ORDERED
    go_on(namespace, ops.DeleteSnapshot("/d", "s1", time))
    assert given_edits.snapshots(namespace)[1].root.mtime == then
    assert mtime(namespace, "/d") == 50


def test_a_log_of_snapshots_that_went_in_order_is_read_without_this_rule() -> None:
    """Drop a marked snapshot a second time, by its new name; here it went at the first."""
    namespace = after(list(ALLOWED), take("s0"), take("s1"), take("s2"))
    go_on(namespace, [ops.DeleteSnapshot("/d", name, 60) for name in ("s1", "s0", "s1#1")])
    assert names(namespace) == ["s2"]


@pytest.mark.parametrize("name", ["s7", "s7#7"])
def test_what_is_not_there_is_not_dropped_if_snapshots_go_in_order(name: str) -> None:
    namespace = after(list(ALLOWED), take("s0"))
    namespace.snapshots.rules = ORDERED
    with pytest.raises(ApplyError, match=f"there is no snapshot '{name}'"):
        go_on(namespace, ops.DeleteSnapshot("/d", name, 60))


def test_a_snapshot_that_is_named_as_if_it_were_marked_is_dropped() -> None:
    namespace = after(list(ALLOWED), take("a#1"), take("b"), ops.DeleteSnapshot("/d", "a#1", 60))
    assert names(namespace) == ["b"]


def test_only_open_files_of_the_snapshot_s_directory_are_captured() -> None:
    """Neither one that no snapshot has, nor one of another's from before they were captured."""
    begun: list[Op] = [mkdir("/e"), ops.AllowSnapshot("/e"), add("/e/f"), add("/f")]
    namespace = after(list(ALLOWED), begun, take("s0", path="/e"))
    go_on(namespace, ops.AddBlock("/e/f", None, Block(1, 40, 11)))
    namespace.snapshots.rules = SnapshotRules(capture_open_files=True)
    go_on(namespace, take("s1"))
    assert [namespace.tree.file(path).history for path in ("/e/f", "/f")] == [None, None]
    go_on(namespace, given_edits.close("/e/f", given_edits.B1))
    assert namespace.tree.file("/e/f").length() == 100
