"""How diffs are looked up, and which change of what makes one."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from namenode_sim.namespace import inode
from namenode_sim.namespace.file_numbers import pack_blocks
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots import diffs
from namenode_sim.namespace.snapshots.diffs import CURRENT, NONE
from tests.namenode_sim.namespace.given_edits import (
    B1,
    B2,
    B3,
    add,
    after,
    close,
    file,
    go_on,
    mkdir,
    mtime,
)

B4 = Block(4, 100, 14)


def allowed(*paths: str) -> list[Op]:
    return [op for path in paths for op in (mkdir(path), ops.AllowSnapshot(path))]


def take(path: str, name: str = "s") -> ops.CreateSnapshot:
    return ops.CreateSnapshot(path, name, 50)


def move(src: str, dst: str) -> ops.Rename:
    return ops.Rename(src, dst, 60, ())


def a_directory() -> inode.INodeDirectory:
    return inode.INodeDirectory(20000, b"d", "alice", "staff", 0o750, 10)


def place_of_a_move(node: inode.INode) -> inode.NewPlace:
    node.reference = inode.Reference(node)
    node.reference.place = inode.NewPlace(None, node.reference, 0)
    return node.reference.place


def test_a_child_that_was_moved_stands_in_the_lists_as_its_place() -> None:
    moved, unmoved, left = a_directory(), a_directory(), a_directory()
    place = place_of_a_move(moved)
    left.reference = inode.Reference(left)
    assert diffs.entry_of(moved) is place
    assert diffs.entry_of(unmoved) is unmoved
    assert diffs.entry_of(left) is left


NAMES: dict[str, list[bytes]] = {
    "ASCII": [b"B", b"a", b"b"],
    "others come first": [b"\xc3\xa4", b"\xc3\xb6", b"B", b"a"],
    "others alone": [b"\xc3\xa4", b"\xc3\xb6"],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
def test_names_are_in_the_order_of_signed_bytes(names: list[bytes]) -> None:
    assert diffs.names_in_order(reversed(names)) == names


PRIOR: dict[str, tuple[list[int], int, bool, int]] = {
    "of nothing": ([], 3, False, NONE),
    "of nothing, now": ([], CURRENT, False, NONE),
    "now": ([1, 5], CURRENT, False, 5),
    "itself": ([1, 5], 1, False, 1),
    "itself left out": ([1, 5], 5, True, 1),
    "the first left out": ([1, 5], 1, True, NONE),
    "between two": ([1, 5], 3, False, 1),
    "before all": ([1, 5], 0, False, NONE),
    "after all": ([1, 5], 9, True, 5),
}


@pytest.mark.parametrize(("ids", "anchor", "exclusive", "prior"), PRIOR.values(), ids=PRIOR.keys())
def test_the_newest_diff_up_to_a_snapshot(
    ids: list[int], anchor: int, exclusive: bool, prior: int
) -> None:
    given = [inode.FileDiff(number, 0) for number in ids]
    assert diffs.prior_id(given, anchor, exclusive=exclusive) == prior


LATEST: dict[str, tuple[list[Op], str, int]] = {
    "no snapshot": (allowed("/d"), "/d/e", CURRENT),
    "of the directory itself": ([*allowed("/d"), take("/d")], "/d", 0),
    "of the directory above": ([*allowed("/d"), take("/d")], "/d/e", 0),
    "of a directory beside": ([*allowed("/d"), take("/d"), mkdir("/e")], "/e/f", CURRENT),
    "the last of two": ([*allowed("/d"), take("/d", "s"), take("/d", "t")], "/d/e", 1),
    "further down is newer": ([*allowed("/d", "/d/e"), take("/d"), take("/d/e")], "/d/e/f", 1),
    "further up is newer": ([*allowed("/d", "/d/e"), take("/d/e"), take("/d")], "/d/e/f", 1),
    "of where it came from": (
        [*allowed("/d", "/e"), mkdir("/d/x"), take("/d"), move("/d/x", "/e/x")],
        "/e/x/f",
        0,
    ),
    "a directory that was moved has none of its own place": (
        [*allowed("/d", "/e"), mkdir("/d/x"), take("/d"), move("/d/x", "/e/x")],
        "/e/x",
        CURRENT,
    ),
    "of where it came from though the new place has a later one": (
        [*allowed("/d", "/e"), mkdir("/d/x"), take("/d"), take("/e"), move("/d/x", "/e/x")],
        "/e/x/f",
        0,
    ),
    "the first of the new place since it came": (
        [*allowed("/d", "/e"), mkdir("/d/x"), take("/d"), move("/d/x", "/e/x"), take("/e")],
        "/e/x/f",
        1,
    ),
    "a later one of the new place since it came": (
        [
            *allowed("/d", "/e"), mkdir("/d/x"), take("/d"), take("/e"), move("/d/x", "/e/x"),
            take("/e", "t"),
        ],
        "/e/x/f",
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "path", "latest"), LATEST.values(), ids=LATEST.keys())
def test_the_latest_snapshot_of_a_path(given: list[Op], path: str, latest: int) -> None:
    assert diffs.latest_snapshot(after(given).tree, path) == latest


def test_what_is_new_since_a_snapshot_is_not_in_it() -> None:
    tree = after(allowed("/d"), mkdir("/d/old"), take("/d"), mkdir("/d/new")).tree
    old, new = tree.node("/d/old"), tree.node("/d/new")
    assert [diffs.in_latest(node, 0) for node in (old, new)] == [True, False]
    assert [diffs.in_latest(old, latest) for latest in (CURRENT, NONE)] == [False, False]


def test_what_left_the_tree_is_not_current() -> None:
    namespace = after(
        allowed("/d"), mkdir("/gone"), mkdir("/d/gone"), mkdir("/d/moved"), add("/d/file"),
        mkdir("/d/e"), mkdir("/d/e/below"), take("/d"),
    )  # fmt: skip
    tree = namespace.tree
    kept = [tree.root, *map(tree.node, ("/d", "/d/e"))]
    paths = ("/gone", "/d/gone", "/d/moved", "/d/file", "/d/e/below")
    left = [tree.node(path) for path in paths]
    assert all(map(diffs.is_current, kept + left))
    go_on(namespace, move("/d/moved", "/m"), ops.Delete("/m", 60))
    go_on(namespace, [ops.Delete(path, 60) for path in paths if path != "/d/moved"])
    assert all(map(diffs.is_current, kept))
    assert not any(map(diffs.is_current, left))


def ids_of(namespace: Namespace, path: str) -> list[int]:
    return [diff.snapshot_id for diff in diffs.diffs_of(namespace.tree.node(path)) or ()]


SOURCE = [*allowed("/d", "/e"), *file("/d/f", B1), mkdir("/d/x"), take("/d")]
MOVED: dict[str, tuple[list[Op], list[int]]] = {
    "to where no snapshot is": ([], [0]),
    "to where one was taken before": ([take("/e"), move("/d/f", "/e/f")], [0]),
    "to where one is taken then": ([move("/d/f", "/e/f"), take("/e")], [0, 1]),
}


@pytest.mark.parametrize(("given", "ids"), MOVED.values(), ids=MOVED.keys())
def test_a_moved_file_s_changes_belong_to_its_old_snapshots(
    given: list[Op], ids: list[int]
) -> None:
    namespace = after(SOURCE, given or [move("/d/f", "/e/f")], ops.SetPermissions("/e/f", 0o700))
    assert ids_of(namespace, "/e/f") == ids


@pytest.mark.parametrize("blocks", [(), (B1,)], ids=["empty", "with a block"])
def test_the_first_change_after_a_snapshot_makes_the_file_s_diff(blocks: tuple[Block, ...]) -> None:
    modes = (0o700, 0o701, 0o702, 0o703)
    namespace = after(allowed("/d"), file("/d/f", *blocks), ops.SetPermissions("/d/f", 0o600))
    for name, mode in zip("rst", modes, strict=False):
        go_on(namespace, take("/d", name))
        go_on(namespace, ops.SetPermissions("/d/f", mode), ops.SetPermissions("/d/f", mode))
    history = namespace.tree.file("/d/f").history
    assert history is not None
    assert [diff.snapshot_id for diff in history.diffs] == [0, 1, 2]
    assert [diff.copy and diff.copy.mode for diff in history.diffs] == [0o600, 0o700, 0o701]
    assert [diff.packed_blocks for diff in history.diffs] == [None, None, None]


def cut(path: str, length: int) -> ops.Truncate:
    """Truncate to the end of a block, which is done at once."""
    return ops.Truncate(path, "c", "host", length, 60, None)


def grown(path: str, *blocks: Block) -> list[Op]:
    """Append to the file; its last block is the new one."""
    *kept, last = blocks
    return [
        ops.Append(path, "c", "host", new_block=True),
        ops.AddBlock(path, kept[-1], last),
        close(path, *blocks),
    ]


KEPT = (B1, B2)
KEEPS: dict[str, tuple[list[Op], str, list[int]]] = {
    "no snapshot": (file("/d/f", *KEPT), "/d/f", []),
    "not changed since": ([*file("/d/f", *KEPT), take("/d")], "/d/f", [1, 2]),
    "grown since": (
        [*file("/d/f", B1), take("/d"), *grown("/d/f", B1, B2)],
        "/d/f",
        [1],
    ),
    "moved away and grown": (
        [*file("/d/f", B1), take("/d"), move("/d/f", "/f"), *grown("/f", B1, B2)],
        "/f",
        [1],
    ),
    "moved to where a snapshot was taken before, and grown": (
        [*file("/d/f", B1), take("/d"), take("/e"), move("/d/f", "/e/f"), *grown("/e/f", B1, B2)],
        "/e/f",
        [1],
    ),
    "moved to where a snapshot is taken then": (
        [*file("/d/f", B1), take("/d"), move("/d/f", "/e/f"), *grown("/e/f", B1, B2), take("/e")],
        "/e/f",
        [1, 2],
    ),
    "grown since each of two": (
        [
            *file("/d/f", B1), take("/d", "s"), *grown("/d/f", B1, B2), take("/d", "t"),
            *grown("/d/f", B1, B2, B3),
        ],
        "/d/f",
        [1, 2],
    ),
    "cut since, and grown": (
        [*file("/d/f", *KEPT), take("/d"), cut("/d/f", 100), *grown("/d/f", B1, B3)],
        "/d/f",
        [1],
    ),
    "cut and grown, and grown since the next": (
        [
            *file("/d/f", *KEPT), take("/d", "s"), cut("/d/f", 100), *grown("/d/f", B1, B3),
            take("/d", "t"), *grown("/d/f", B1, B3, B4),
        ],
        "/d/f",
        [1, 3],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "path", "kept"), KEEPS.values(), ids=KEEPS.keys())
def test_which_blocks_of_a_file_a_snapshot_keeps(
    given: list[Op], path: str, kept: list[int]
) -> None:
    tree = after(allowed("/d", "/e"), given).tree
    held = tree.file(path)
    numbers = [block.block_id for block in held.blocks]
    assert [one for one in numbers if diffs.keeps_block(tree, path, held, one)] == kept


def test_a_diff_that_needs_no_block_has_no_list() -> None:
    diff = inode.FileDiff(0, 0)
    diffs.keep_blocks(diff, pack_blocks((B1,)))
    assert diff.packed_blocks is None


def test_a_directory_s_copy_is_in_no_tree() -> None:
    parent, child, whole = a_directory(), a_directory(), a_directory()
    whole.quotas = inode.Quotas(5, 6)
    whole.parent, whole.children, whole.sorted_names = parent, {b"d": child}, [b"d"]
    whole.history = inode.DirectoryHistory([inode.DirectoryDiff(0, 1)])
    place_of_a_move(whole)
    copy = diffs.copy_of_directory(whole)
    assert (copy.id, copy.name, copy.mode, copy.quotas) == (20000, b"d", 0o750, inode.Quotas(5, 6))
    assert (copy.parent, copy.children, copy.sorted_names) == (None, {}, None)
    assert (copy.history, copy.reference) == (None, None)


TIMES: dict[str, tuple[int, int, bool]] = {
    "later": (60, 60, True),
    "the same": (50, 50, False),
    "earlier": (40, 50, False),
}


@pytest.mark.parametrize(("time", "left", "saved"), TIMES.values(), ids=TIMES.keys())
def test_a_directory_s_time_only_rises_and_is_saved_first(
    time: int, left: int, saved: bool
) -> None:
    directory = after(allowed("/d"), mkdir("/d/e", 50), take("/d")).tree.node("/d/e")
    assert isinstance(directory, inode.INodeDirectory)
    diffs.update_mtime(directory, time, 0)
    assert directory.mtime == left
    past = directory.history.diffs if directory.history is not None else []
    assert [diff.copy and diff.copy.mtime for diff in past] == ([50] if saved else [])


def test_an_older_child_leaves_its_directory_s_time() -> None:
    """Keep the time whether or not there are snapshots."""
    namespace = after(mkdir("/d", 70), mkdir("/d/e", 10), allowed("/x"), take("/x"))
    assert mtime(go_on(namespace, mkdir("/d/f", 10)), "/d") == 70
