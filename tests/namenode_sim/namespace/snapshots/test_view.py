"""What a look into a snapshot gives: copies that are linked to nothing that changes."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeDirectory, INodeFile, INodeSymlink
from namenode_sim.namespace.state import SnapshotRules
from tests.namenode_sim.namespace import given_edits as given
from tests.namenode_sim.namespace.given_edits import B1, B2, add, after, file, go_on, mkdir, seen

TREE: list[Op] = [mkdir("/d"), ops.AllowSnapshot("/d"), mkdir("/d/e")]
TAKE = ops.CreateSnapshot("/d", "s", 50)


def test_a_moved_directory_is_shown_with_its_old_name_and_linked_to_nothing() -> None:
    namespace = after(list(TREE), file("/d/e/f"), TAKE, ops.Rename("/d/e", "/x", 60, ()))
    go_on(namespace, ops.Delete("/x/f", 70))
    moved = namespace.tree.node("/x")
    assert isinstance(moved, INodeDirectory)
    assert list(moved.ordered_children()) == []
    node = seen(namespace, "s", "e").node
    assert isinstance(node, INodeDirectory)
    assert (node.id, node.name, list(node.children)) == (moved.id, b"e", [b"f"])
    assert (node.parent, node.sorted_names, node.history, node.reference) == (None,) * 4


def test_a_directory_that_is_as_it_was_is_a_copy_too() -> None:
    namespace = after(list(TREE), TAKE)
    live = namespace.tree.node("/d/e")
    assert isinstance(live, INodeDirectory)
    assert list(live.ordered_children()) == []
    node = seen(namespace, "s", "e").node
    assert isinstance(node, INodeDirectory)
    assert (node.id, node.name) == (live.id, b"e")
    assert (node.parent, node.sorted_names) == (None, None)


def test_a_directory_with_other_children_is_copied_without_its_history() -> None:
    node = seen(after(list(TREE), TAKE, mkdir("/d/e/new")), "s", "e").node
    assert isinstance(node, INodeDirectory)
    assert (list(node.children), node.history) == ([], None)


def test_a_directory_that_was_moved_is_copied_without_its_reference() -> None:
    namespace = after(list(TREE), TAKE, ops.Rename("/d/e", "/d/x", 60, ()))
    go_on(namespace, ops.CreateSnapshot("/d", "t", 70))
    node = seen(namespace, "t", "x").node
    assert namespace.tree.node("/d/x").reference is not None
    assert (node.name, node.parent, node.reference) == (b"x", None, None)


def test_a_directory_is_shown_with_its_name_though_its_own_snapshot_is_named_otherwise() -> None:
    """Move it away with the directory above, and then take a snapshot of its own."""
    namespace = after(list(TREE), mkdir("/d/e/k"), TAKE, ops.Rename("/d/e", "/e", 60, ()))
    go_on(namespace, ops.AllowSnapshot("/e/k"), ops.CreateSnapshot("/e/k", "t", 70))
    assert seen(namespace, "s", "e", "k").node.name == b"k"


def test_a_moved_symlink_is_shown_with_its_old_name_and_linked_to_nothing() -> None:
    link = ops.Symlink(0, "/d/l", "/t", 5, 6, given.WHO)
    sight = seen(after(list(TREE), link, TAKE, ops.Rename("/d/l", "/m", 60, ())), "s", "l")
    assert isinstance(sight.node, INodeSymlink)
    assert (sight.node.name, sight.node.target) == (b"l", b"/t")
    assert (sight.node.parent, sight.node.reference) == (None, None)


def test_only_a_directory_has_children() -> None:
    sight = seen(after(list(TREE), file("/d/f"), TAKE), "s", "f")
    assert sight.child(b"f") is None


GROWN: dict[str, tuple[list[Op], tuple[Block, ...]]] = {
    "the last block has grown": (
        [*file("/d/f", B1, Block(2, 40, 12)), TAKE,
         ops.Append("/d/f", "w", "m", new_block=False), given.close("/d/f", B1, B2)],
        (B1, Block(2, 40, 12)),
    ),
    "a block came after": (
        [*file("/d/f", Block(1, 40, 11)), TAKE,
         ops.Append("/d/f", "w", "m", new_block=True),
         ops.AddBlock("/d/f", Block(1, 40, 11), B2), given.close("/d/f", Block(1, 40, 11), B2)],
        (Block(1, 40, 11),),
    ),
    "the last block is shorter than it was told to be": (
        [add("/d/f"), ops.AddBlock("/d/f", None, Block(1, 40, 11)), TAKE,
         given.close("/d/f", Block(1, 30, 11))],
        (Block(1, 30, 11),),
    ),
    "nothing was written": ([*file("/d/f"), TAKE], ()),
}  # fmt: skip


@pytest.mark.parametrize(("edits", "blocks"), GROWN.values(), ids=GROWN.keys())
def test_the_blocks_of_a_file(edits: list[Op], blocks: tuple[Block, ...]) -> None:
    namespace = after(list(TREE))
    namespace.snapshots.rules = SnapshotRules(capture_open_files=True)
    go_on(namespace, *edits)
    node = seen(namespace, "s", "f").node
    assert isinstance(node, INodeFile)
    assert node.blocks == blocks
