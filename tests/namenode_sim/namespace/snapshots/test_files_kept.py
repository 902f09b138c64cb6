"""What is left of a file, and of what its snapshots keep, when one state of it goes.

A file is written as its blocks, its diffs and its marks: "1 2=50; s3=100[1]; deleted" has
one block of 100 bytes and another of 50, a diff of snapshot 3 with a list of its own, and is in
snapshots only.  "empty" is a history without diffs, "open" a file that is written.
"""

from collections.abc import Iterator

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.values import Block, RenameOption
from namenode_sim.namespace import inode
from namenode_sim.namespace.changes import BlocksGone, BlockWatch
from namenode_sim.namespace.file_numbers import PACKED_BLOCK, pack_blocks, pack_numbers
from namenode_sim.namespace.inode_map import InodeMap
from namenode_sim.namespace.snapshots import files
from namenode_sim.namespace.snapshots.diffs import CURRENT, NONE
from tests.namenode_sim.namespace import given_edits
from tests.namenode_sim.namespace.given_edits import file


def packed(text: str) -> bytes:
    pairs = (block.partition("=") for block in text.split())
    return pack_blocks(tuple(Block(int(one), int(size or 100), 1) for one, _, size in pairs))


def listed(blocks: bytes) -> str:
    found = PACKED_BLOCK.iter_unpack(blocks)
    return " ".join(str(one) if size == 100 else f"{one}={size}" for one, size, _ in found)


def given(text: str) -> inode.INodeFile:
    blocks, *more = text.split("; ")
    made = inode.INodeFile(
        b"f", pack_numbers(20000, 10, 10, packed(blocks)), inode.FileTraits("u", "g", 0o640, 3, 128)
    )
    if "open" in more:
        made.under_construction = inode.UnderConstruction("w", "m")
    past = [word for word in more if word != "open"]
    if past:
        made.history = inode.FileHistory([diff(word) for word in past if word[0] == "s"])
        made.history.deleted = "deleted" in past
    return made


def diff(word: str) -> inode.FileDiff:
    head, _, kept = word.removesuffix("]").partition("[")
    number, _, size = head.removeprefix("s").partition("=")
    return inode.FileDiff(int(number), int(size), None, packed(kept) or None)


def past_of(one: inode.INodeFile) -> inode.FileHistory:
    assert one.history is not None
    return one.history


def shown(one: inode.INodeFile) -> str:
    return "; ".join([listed(one.packed_blocks), *marks(one)])


def marks(one: inode.INodeFile) -> Iterator[str]:
    if one.history is not None:
        for was in one.history.diffs:
            kept = "" if was.packed_blocks is None else f"[{listed(was.packed_blocks)}]"
            yield f"s{was.snapshot_id}={was.size}{kept}"
        if one.history.deleted:
            yield "deleted"
    if one.under_construction is not None:
        yield "open"


DELETED: dict[str, tuple[str, int, str]] = {
    "closed, without a history": ("1 2=0", 3, "1 2=0"),
    "open, and its last block is empty": ("1 2=0; open", 3, "1; open"),
    "open, and its last block is not empty": ("1 2=1; open", 3, "1 2=1; open"),
    "open, without blocks": ("; open", 3, "; open"),
    "the newest diff holds less": ("1 2; s3=100", 3, "1; s3=100; deleted"),
    "the newest diff is older": ("1 2; s3=100", 5, "1 2; s3=100; s5=200; deleted"),
    "it was before": ("1 2 3; s3=200; deleted", 5, "1 2; s3=200; deleted"),
    "the newest of two diffs counts": (
        "1 2 3; s1=300; s3=100; deleted", 3, "1; s1=300; s3=100; deleted",
    ),
    "the newest of two lists counts": (
        "1 2 3; s1=100[1]; s3=200[1 2]; deleted", 3, "1 2; s1=100[1]; s3=200[1 2]; deleted",
    ),
    "the list differs in the middle": (
        "1 2 3; s3=300[1 9 3]", 3, "1; s3=300[1 9 3]; deleted",
    ),
    "the list has another length of a block": (
        "1 2=50 3; s3=130[1 2=30]; deleted", 3, "1 2=50; s3=130[1 2=30]; deleted",
    ),
    "the list is longer": ("1; s3=200[1 2]; deleted", 3, "1; s3=200[1 2]; deleted"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "prior", "left"), DELETED.values(), ids=DELETED.keys())
def test_a_file_is_deleted_that_a_snapshot_has(before: str, prior: int, left: str) -> None:
    one, context = given(before), files.Reclaim(None)
    files.clean_file(context, one, CURRENT, prior)
    assert shown(one) == left
    assert context.removed == []
    assert context.abandoned == ([one] if "open" in before else [])


GIVEN_UP: dict[str, tuple[str, str]] = {
    "its own length counts": ("1 2 3=0; s1=100", "1 2; s1=100"),
    "without diffs": ("1 2=0; empty", "1"),
    "in snapshots only, the diff counts": ("1 2; s1=100; deleted", "1; s1=100; deleted"),
}


@pytest.mark.parametrize(("before", "left"), GIVEN_UP.values(), ids=GIVEN_UP.keys())
def test_a_snapshot_goes_and_the_file_as_it_is_now_with_it(before: str, left: str) -> None:
    """Neither save nor mark it then: it left the tree before."""
    one, context = given(before), files.Reclaim(None, dropping=4)
    files.clean_file(context, one, CURRENT, 3)
    assert (shown(one), context.removed, context.abandoned) == (left, [], [])


DROPPED: dict[str, tuple[str, int, int, str]] = {
    "nothing is kept": ("1 2=0; open", 3, 1, "1 2=0; open"),
    "nothing is kept for it": ("1 2; s1=100", 3, 2, "1 2; s1=100"),
    "the only one": ("1 2; s3=100", 3, NONE, "1 2"),
    "the only one, with a list": ("1; s3=200[1 2]", 3, NONE, "1"),
    "the prior one had no diff": ("1 2; s3=100", 3, 1, "1 2; s1=100"),
    "the prior one is newer than the diff before": (
        "1 2; s1=100; s5=200", 5, 3, "1 2; s1=100; s3=200",
    ),
    "the diff before is newer than the prior one": ("1 2; s1=100; s5=200", 5, 0, "1 2; s1=100"),
    "the list goes to the diff before": (
        "1; s1=100; s3=200; s5=300[1 2 3]; s7=100", 5, 3, "1; s1=100; s3=200[1 2]; s7=100",
    ),
    "the diff before has a list": ("1; s1=100[1]; s3=200[1 2]", 3, 1, "1; s1=100[1]"),
    "blocks that the diff before lacks go with the file": (
        "1 2; s1=100; s3=200; deleted", 3, 1, "1; s1=100; deleted",
    ),
    "blocks that the diff before lacks stay in the file": (
        "1 2; s1=100; s3=200", 3, 1, "1 2; s1=100",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "snapshot", "prior", "left"), DROPPED.values(), ids=DROPPED.keys()
)
def test_a_snapshot_goes(before: str, snapshot: int, prior: int, left: str) -> None:
    one, context = given(before), files.Reclaim(None, dropping=snapshot)
    files.clean_file(context, one, snapshot, prior)
    assert (shown(one), context.removed, context.abandoned) == (left, [], [])


GONE: dict[str, tuple[str, int, int]] = {
    "the last snapshot of a deleted file": ("1 2; s3=200; deleted", 3, NONE),
    "a deleted file without diffs": ("1 2; empty; deleted", CURRENT, 1),
}


@pytest.mark.parametrize(("before", "snapshot", "prior"), GONE.values(), ids=GONE.keys())
def test_nothing_is_left_of_a_file(before: str, snapshot: int, prior: int) -> None:
    one, context = given(before), files.Reclaim(None, dropping=snapshot)
    files.clean_file(context, one, snapshot, prior)
    assert (one.blocks, one.history, context.removed) == ((), None, [one])


@pytest.mark.parametrize("before", ["1 2", "1 2; s1=100"], ids=["", "with a history"])
def test_a_destroyed_file_holds_nothing(before: str) -> None:
    one, context = given(before), files.Reclaim(None)
    files.destroy_file(context, one)
    assert (shown(one), context.removed) == ("", [one])


LEFT: dict[str, tuple[str, str]] = {
    "without a history": ("1", "1"),
    "with one": ("1; s1=100", "1; s1=100; deleted"),
    "open": ("1; s1=100; open", "1; s1=100; deleted; open"),
}


@pytest.mark.parametrize(("before", "left"), LEFT.values(), ids=LEFT.keys())
def test_a_file_leaves_with_a_directory_that_moved(before: str, left: str) -> None:
    one, context = given(before), files.Reclaim(None)
    files.leave_file(context, one)
    assert shown(one) == left
    assert context.abandoned == ([one] if "open" in before else [])


@pytest.mark.parametrize("own", [False, True], ids=["the later one", "its own"])
def test_the_attributes_that_the_diff_before_has_in_the_end(own: bool) -> None:
    one = given("1; s1=100; s3=100")
    earlier, later = past_of(one).diffs
    later.copy, mine = one.kept_copy(b"later", b""), one.kept_copy(b"earlier", b"")
    earlier.copy = mine if own else None
    expected = mine if own else later.copy
    files.clean_file(files.Reclaim(None, dropping=3), one, 3, 1)
    assert past_of(one).diffs == [earlier]
    assert earlier.copy is expected


def test_blocks_that_go_with_a_diff_are_told() -> None:
    one, watch = given("1 2; s1=100; s3=200; deleted"), BlockWatch()
    files.delete_file_diff(files.Reclaim(watch, dropping=3), one, past_of(one), 3, 1)
    assert watch.take(InodeMap([one])) == (BlocksGone((2,)),)


def test_a_deleted_file_is_saved_for_the_snapshot() -> None:
    namespace = given_edits.after(
        list(given_edits.ALLOWED), file("/d/f", given_edits.B1), given_edits.take("s0")
    )
    one = namespace.tree.file("/d/f")
    given_edits.go_on(namespace, ops.Delete("/d/f", 60))
    assert shown(one) == "1; s0=100; deleted"


def test_a_moved_file_in_whose_place_another_comes_keeps_its_blocks() -> None:
    """Unlike one that is deleted, which lets go of what no snapshot needs."""
    namespace = given_edits.after(
        list(given_edits.ALLOWED),
        file("/d/f", given_edits.B1),
        given_edits.take("s0"),
        file("/h", given_edits.B3),
    )
    one = namespace.tree.file("/d/f")
    given_edits.go_on(
        namespace, ops.Rename("/d/f", "/g", 60, ()), ops.Append("/g", "c", "host", True)
    )
    given_edits.go_on(
        namespace,
        ops.AddBlock("/g", given_edits.B1, given_edits.B2),
        given_edits.close("/g", given_edits.B1, given_edits.B2),
    )
    given_edits.go_on(namespace, ops.Rename("/h", "/g", 70, (RenameOption.OVERWRITE,)))
    assert namespace.tree.file("/g").blocks == (given_edits.B3,)
    assert shown(one) == "1 2; s0=100[1]; deleted"
