"""Rules about snapshots that are switched on, and corners that random edits seldom reach."""

from collections.abc import Callable

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from namenode_sim.namespace.file_numbers import pack_blocks
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.snapshots import DELETED_MARK
from namenode_sim.namespace.state import SnapshotRules
from tests.namenode_sim.namespace import given_edits as given
from tests.namenode_sim.namespace.given_edits import ALLOWED, B1, add, after, file, go_on, take


def length(namespace: Namespace, name: str, *path: str) -> int:
    node = given.seen(namespace, name, *path).node
    assert isinstance(node, INodeFile)
    return node.length()


def test_only_the_oldest_snapshot_goes_if_they_go_in_order() -> None:
    namespace = after(list(ALLOWED), take("s0"), take("s1"))
    namespace.snapshots.rules = SnapshotRules(deletion_ordered=True)
    go_on(namespace, ops.DeleteSnapshot("/d", "s1", 60))
    assert [one.name for one in given.snapshots(namespace)] == ["s0", "s1#1"]
    assert given.snapshots(namespace)[1].root.xattrs == (DELETED_MARK,)
    go_on(namespace, ops.DeleteSnapshot("/d", "s0", 70), ops.DeleteSnapshot("/d", "s1#1", 80))
    assert given.snapshots(namespace) == []


OPEN: list[Op] = [add("/d/f"), ops.AddBlock("/d/f", None, Block(1, 0, 11))]


@pytest.mark.parametrize("captured", [False, True])
def test_open_files_grow_in_a_snapshot_unless_they_are_captured(captured: bool) -> None:
    namespace = after(list(ALLOWED), list(OPEN), ops.UpdateBlocks("/d/f", (Block(1, 40, 11),)))
    namespace.snapshots.rules = SnapshotRules(capture_open_files=captured)
    go_on(namespace, take("s0"), given.close("/d/f", B1))
    assert length(namespace, "s0", "f") == (40 if captured else 100)


@pytest.mark.parametrize("skipped", [False, True])
def test_a_mere_access_may_be_left_out(skipped: bool) -> None:
    namespace = after(list(ALLOWED), file("/d/f", B1), take("s0"))
    namespace.snapshots.rules = SnapshotRules(skip_access_time=skipped)
    go_on(namespace, ops.Times("/d/f", -1, 999))
    node = given.seen(namespace, "s0", "f").node
    assert isinstance(node, INodeFile)
    assert node.atime == (999 if skipped else 20)


def test_a_file_cut_below_a_snapshot_gets_a_shorter_copy_of_its_last_block() -> None:
    """Expect what remains: the edit has no length of the copy (prepareFileForTruncate)."""
    namespace = after(list(ALLOWED), file("/d/f", B1, given.B2), take("s0"))
    go_on(namespace, ops.Truncate("/d/f", "c", "host", 130, 60, Block(9, 0, 19)))
    assert namespace.tree.file("/d/f").blocks == (B1, Block(9, 30, 19))
    assert length(namespace, "s0", "f") == 200


CHANGED: dict[str, list[Op]] = {
    "appended to in an old log": [given.reopened("/d/e/f", B1, given.B2)],
    "concatenated": [*file("/d/e/g", given.B2), ops.ConcatDelete("/d/e/f", ("/d/e/g",), 60)],
    "overwritten": [add("/d/e/f", 60, overwrite=True)],
}


@pytest.mark.parametrize("edits", CHANGED.values(), ids=CHANGED.keys())
def test_a_file_that_is_changed_stays_in_the_snapshot_as_it_was(edits: list[Op]) -> None:
    namespace = after(list(ALLOWED), given.mkdir("/d/e"), file("/d/e/f", B1), take("s0"))
    go_on(namespace, edits)
    assert length(namespace, "s0", "e", "f") == 100
    assert given.seen(namespace, "s0", "e", "f").node.mtime == 20


def test_a_directory_in_which_a_file_is_overwritten_keeps_its_time_in_the_snapshot() -> None:
    namespace = after(list(ALLOWED), given.mkdir("/d/e"), file("/d/e/f"), take("s0"))
    go_on(namespace, add("/d/e/f", 60, overwrite=True))
    assert given.seen(namespace, "s0", "e").node.mtime == 10
    assert namespace.tree.node("/d/e").mtime == 60


def test_a_block_that_grows_is_no_longer_in_the_snapshot() -> None:
    namespace = after(list(ALLOWED), file("/d/f", Block(1, 40, 11)), take("s0"))
    go_on(namespace, ops.Append("/d/f", "c", "host", new_block=False), given.close("/d/f", B1))
    assert length(namespace, "s0", "f") == 40
    assert namespace.tree.file("/d/f").length() == 100


MOVES: dict[str, Callable[[str, str], Op]] = {
    "rename": lambda src, dst: ops.Rename(src, dst, 60, ()),
    "rename of old": lambda src, dst: ops.RenameOld(src, dst, 60),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_a_file_that_moves_about_is_in_each_snapshot_where_it_was(
    move: Callable[[str, str], Op],
) -> None:
    namespace = after(list(ALLOWED), given.mkdir("/d/e"), file("/d/f", B1), take("s0"))
    go_on(namespace, move("/d/f", "/d/e/g"), take("s1"), move("/d/e/g", "/h"), take("s2"))
    go_on(namespace, ops.SetPermissions("/h", 0o777), move("/h", "/d/f"), take("s3"))
    for name, path in (("s0", ["f"]), ("s1", ["e", "g"]), ("s3", ["f"])):
        assert length(namespace, name, *path) == 100
    assert given.names_seen(given.seen(namespace, "s2")) == [b"e"]
    assert [given.seen(namespace, name, "f").node.mode for name in ("s0", "s3")] == [0o750, 0o777]
    for name in ("s1", "s0", "s3", "s2"):
        go_on(namespace, ops.DeleteSnapshot("/d", name, 70))
    assert namespace.tree.file("/d/f").history is None
    go_on(namespace, ops.Delete("/d/f", 80))
    assert len(namespace.tree.inodes) == 3


GROWN: dict[str, list[Op]] = {
    "to its end": [given.close("/d/g", B1)],
    "and is followed by another": [ops.AddBlock("/d/g", B1, given.B2)],
}


@pytest.mark.parametrize("grown", GROWN.values(), ids=GROWN.keys())
def test_a_diff_shares_the_blocks_of_its_file(grown: list[Op]) -> None:
    """Point to the same objects, as in Hadoop: it shows in the image."""
    moved = ops.Rename("/d/f", "/d/g", 60, ())
    namespace = after(list(ALLOWED), file("/d/f", Block(1, 40, 11)), take("s0"), moved)
    go_on(namespace, ops.Append("/d/g", "c", "host", new_block=False), grown)
    history = namespace.tree.file("/d/g").history
    assert history is not None
    assert [diff.packed_blocks for diff in history.diffs] == [pack_blocks((B1,))]
    assert length(namespace, "s0", "f") == 40


def test_a_dropped_snapshot_is_left_to_the_one_of_a_directory_above_that_was_moved() -> None:
    """Hadoop asks all directories above, whether or not they had this one then."""
    namespace = after(
        list(ALLOWED), given.mkdir("/d/x"), take("s0"), ops.Rename("/d/x", "/x", 60, ())
    )
    go_on(namespace, given.mkdir("/x/k"), ops.AllowSnapshot("/x/k"))
    go_on(namespace, ops.CreateSnapshot("/x/k", "t", 70), ops.DeleteSnapshot("/x/k", "t", 80))
    directory = namespace.tree.node("/x/k")
    assert isinstance(directory, INodeDirectory)
    assert directory.history is not None
    assert [(diff.snapshot_id, diff.is_root) for diff in directory.history.diffs] == [(0, False)]


def test_a_deep_tree_needs_no_deep_stack() -> None:
    path = "/d" + "/x" * 2000
    paths = ["/d" + "/x" * depth for depth in range(1, 2001)]
    namespace = after(list(ALLOWED), [given.mkdir(path) for path in paths], take("s0"))
    go_on(namespace, ops.SetPermissions(path, 0o700), ops.Delete("/d/x", 60))
    assert len(namespace.tree.inodes) == 2002
    go_on(namespace, ops.DeleteSnapshot("/d", "s0", 70))
    assert len(namespace.tree.inodes) == 2
