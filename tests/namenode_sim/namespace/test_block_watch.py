"""What a file and its snapshots hold together, and the reports on files that change and go."""

import tracemalloc

import pytest

from namenode_sim.edits.values import Block
from namenode_sim.namespace import changes as namespace_changes
from namenode_sim.namespace.changes import BlockWatch, Held, expected_replication
from namenode_sim.namespace.file_numbers import pack_blocks, pack_numbers
from namenode_sim.namespace.inode import (
    FileDiff,
    FileHistory,
    FileTraits,
    INodeFile,
    UnderConstruction,
)
from namenode_sim.namespace.inode_map import InodeMap
from tests.namenode_sim.namespace.given_edits import B1, B2, B3

B4 = Block(4, 70, 14)
WRITER = UnderConstruction("writer", "here")
FILE_ID = 16386


def made(
    *blocks: Block, writer: UnderConstruction | None = None, history: FileHistory | None = None
) -> INodeFile:
    traits = FileTraits("u", "g", 0o644, 3, 128, under_construction=writer, history=history)
    return INodeFile(b"f", pack_numbers(FILE_ID, 10, 10, pack_blocks(blocks)), traits)


def past(*replications: int | None, deleted: bool = False) -> FileHistory:
    """Return snapshots with these replications; None for one that saved no attributes."""
    diffs = []
    for number, replication in enumerate(replications):
        copy = None
        if replication is not None:
            copy = made().kept_copy(b"f", b"")
            copy.replication = replication
        diffs.append(FileDiff(number, 0, copy))
    return FileHistory(diffs, deleted)


def keeping(*lists: tuple[Block, ...] | None) -> FileHistory:
    """Keep these lists of blocks in snapshots; None for one that shares the file's."""
    packed = [None if blocks is None else pack_blocks(blocks) for blocks in lists]
    return FileHistory([FileDiff(number, 0, None, kept) for number, kept in enumerate(packed)])


REPLICATIONS: dict[str, tuple[FileHistory | None, int]] = {
    "of a file without a past": (None, 3),
    "of a file that a snapshot has as it is": (past(), 3),
    "more in a snapshot": (past(1, 5, 2), 5),
    "fewer in all snapshots": (past(1, 2), 3),
    "a snapshot that saved no attributes": (past(None), 3),
    "of a deleted file only the snapshots' count": (past(1, None, 2, 1, deleted=True), 2),
    "of a deleted file whose attributes nobody saved": (past(None, deleted=True), 3),
}


@pytest.mark.parametrize(("history", "expected"), REPLICATIONS.values(), ids=REPLICATIONS.keys())
def test_the_largest_replication_counts(history: FileHistory | None, expected: int) -> None:
    assert expected_replication(made(B1, history=history)) == expected


def current(block: Block, *, complete: bool = True, growing: bool = False) -> tuple[int, Held]:
    held = Held(FILE_ID, block.num_bytes, block.generation_stamp, complete, growing)
    return block.block_id, held


LONGER = Block(3, 90, 13)
HOLDINGS: dict[str, tuple[INodeFile, list[tuple[int, Held]]]] = {
    "an empty file": (made(writer=WRITER), []),
    "a closed file": (made(B1, B2), [current(B1), current(B2)]),
    "all blocks of an open file but the last are complete": (
        made(B1, B2, writer=WRITER),
        [current(B1, growing=True), current(B2, complete=False, growing=True)],
    ),
    "an only block that is written": (
        made(B1, writer=WRITER),
        [current(B1, complete=False, growing=True)],
    ),
    "what only snapshots hold is complete": (
        made(B1, writer=WRITER, history=keeping((B1, B2), None)),
        [current(B1, complete=False, growing=True), current(B2)],
    ),
    "what several snapshots hold is held once, as the first has it": (
        made(history=keeping((B1, B3), (B1, LONGER, B4))),
        [current(B1), current(B3), current(B4)],
    ),
    "what the file and snapshots hold is as the file has it": (
        made(LONGER, history=keeping((B3,), (B3, B2))),
        [current(LONGER), current(B2)],
    ),
}


@pytest.mark.parametrize(("file", "held"), HOLDINGS.values(), ids=HOLDINGS.keys())
def test_each_block_is_held_once(file: INodeFile, held: list[tuple[int, Held]]) -> None:
    assert list(namespace_changes.blocks_held(file)) == held


DROPPED: dict[str, tuple[INodeFile, tuple[int, ...]]] = {
    "a file": (made(B1, B2), (1, 2)),
    "a file that snapshots had": (made(B1, history=keeping((B2,), (B3,))), (1, 2, 3)),
}


@pytest.mark.parametrize("touched", [False, True], ids=["at once", "after it changed"])
@pytest.mark.parametrize(("file", "gone"), DROPPED.values(), ids=DROPPED.keys())
def test_all_blocks_go_with_a_file_that_goes(
    file: INodeFile, gone: tuple[int, ...], touched: bool
) -> None:
    watch = BlockWatch()
    if touched:
        watch.touch(file)
    watch.drop(file)
    assert watch.take(InodeMap()) == (namespace_changes.BlocksGone(gone),)
    assert watch.take(InodeMap()) == ()


def test_a_file_that_takes_the_place_of_another_does_not_hold_its_blocks() -> None:
    watch, before, after = BlockWatch(), made(B1), made(B2)
    watch.touch(before)
    assert watch.take(InodeMap([after])) == (namespace_changes.BlocksGone((1,)),)


PASTS: dict[str, FileHistory | None] = {"a file": None, "a snapshot has it": keeping((B1,))}


@pytest.mark.parametrize("history", PASTS.values(), ids=PASTS.keys())
def test_of_a_long_file_that_grows_only_the_end_is_compared(history: FileHistory | None) -> None:
    file = made(*(Block(number, 100, 11) for number in range(1, 1001)), history=history)
    watch, inodes, packed_bytes = BlockWatch(), InodeMap([file]), len(file.packed_blocks)
    tracemalloc.start()
    watch.touch(file)
    file.packed_blocks += pack_blocks((Block(1001, 50, 12),))
    changes = watch.take(inodes)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert changes == (namespace_changes.BlockAdded(FILE_ID, 1001, 50, 12, 3, complete=True),)
    assert most_bytes < 8 * packed_bytes, "records of all blocks would take twice as much"
