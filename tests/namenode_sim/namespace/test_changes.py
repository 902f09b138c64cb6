"""Each edit says what it changes about blocks, and nothing else changes."""

import random
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import assert_never

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from namenode_sim.namespace import changes
from namenode_sim.namespace.changes import (
    BlockAdded,
    BlockChange,
    BlockCut,
    BlockIdGiven,
    BlockSettled,
    BlocksGone,
    BlocksMoved,
    BlockWatch,
    ReplicationSet,
    StampGiven,
)
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.files import Reclaim
from namenode_sim.namespace.tree import Tree
from tests.namenode_sim.namespace.given_edits import B1, B2, B3, add, close, file, mkdir, reopened
from tests.simulation.engine.mutants import Planting, replacing
from tests.worlds.author import FILE_DEEDS, Author, add_again
from tests.worlds.moving_deeds import MOVING_DEEDS, PAST, plain_file, touch_past
from tests.worlds.scribe import Scribe
from tests.worlds.scribe_actions import act

SEEDS = 60


@dataclass(frozen=True, slots=True)
class Known:
    """One block as the changes report it."""

    file_id: int
    length: int
    stamp: int
    expected: int
    complete: bool


def learn(  # noqa: C901 - flat dispatch
    known: dict[int, Known], told_changes: tuple[BlockChange, ...]
) -> None:
    for change in told_changes:
        match change:
            case BlockAdded():
                assert change.block_id not in known
                known[change.block_id] = Known(
                    change.file_id, change.length, change.stamp, change.expected, change.complete
                )
            case BlockSettled():
                block = known[change.block_id]
                known[change.block_id] = replace(
                    block, length=change.length, stamp=change.stamp, complete=change.complete
                )
            case BlockCut():
                assert not known[change.block_id].complete
            case BlocksGone():
                for number in change.block_ids:
                    del known[number]
            case BlocksMoved():
                for number in change.block_ids:
                    known[number] = replace(
                        known[number], file_id=change.file_id, expected=change.expected
                    )
            case ReplicationSet():
                for number in change.block_ids:
                    known[number] = replace(known[number], expected=change.expected)
            case StampGiven() | BlockIdGiven():
                pass
            case _:
                assert_never(change)


def ensure_learned(namespace: Namespace, known: dict[int, Known]) -> None:
    """Compare what was learned with a walk over all files and what snapshots have of them."""
    found: dict[int, Known] = {}
    for node in namespace.tree.inodes.values():
        if not isinstance(node, INodeFile):
            continue
        diffs = node.history.diffs if node.history is not None else []
        replications = [diff.copy.replication for diff in diffs if diff.copy is not None]
        gone = node.history is not None and node.history.deleted
        if not gone or not replications:
            replications.append(node.replication)
        lists = [diff.packed_blocks or b"" for diff in diffs] + [node.packed_blocks]
        current = node.blocks
        for number, length, stamp in (b for one in lists for b in PACKED_BLOCK.iter_unpack(one)):
            is_last = bool(current) and number == current[-1].block_id
            complete = node.under_construction is None or not is_last
            # An open file's last block may have stayed complete.
            kept = number in known and known[number].complete
            found[number] = Known(node.id, length, stamp, max(replications), complete or kept)
    assert known == found


def told(*given: Op | list[Op]) -> list[BlockChange]:
    namespace = Namespace.empty("hdfs")
    namespace.watch_blocks()
    changes: tuple[BlockChange, ...] = ()
    for op in [op for some in given for op in (some if isinstance(some, list) else [some])]:
        changes = namespace.apply(TxId(namespace.last_applied + 1), op)
    return list(changes)


GROWN = replace(B1, num_bytes=60)
RESTAMPED = replace(B1, generation_stamp=20)
FULL = replace(B1, num_bytes=128)
OPEN: list[Op] = [add("/f"), ops.AddBlock("/f", None, B1)]

CASES: dict[str, tuple[list[Op | list[Op]], list[BlockChange]]] = {
    "a directory holds no block": ([mkdir("/d")], []),
    "a file begins without one": ([add("/f")], []),
    "an id and a stamp are given out before a block has them": (
        [ops.AllocateBlockId(2**30 + 1)],
        [BlockIdGiven(2**30 + 1)],
    ),
    "a stamp": ([ops.SetGenstampV2(1001)], [StampGiven(1001)]),
    "what an edit told is not told again": (
        [ops.SetGenstampV2(1001), file("/f", B1), ops.Delete("/f", 30), mkdir("/d")],
        [],
    ),
    "a stamp that was told before": ([ops.SetGenstampV2(1001), mkdir("/d")], []),
    "the first block": ([OPEN], [BlockAdded(16386, 1, 100, 11, 3, complete=False)]),
    "the next block completes the one before": (
        [OPEN, ops.AddBlock("/f", GROWN, B2)],
        [
            BlockSettled(1, 60, 11, complete=True),
            BlockAdded(16386, 2, 100, 12, 3, complete=False),
        ],
    ),
    "the next block completes one whose length was known": (
        [OPEN, ops.AddBlock("/f", B1, B2)],
        [
            BlockSettled(1, 100, 11, complete=True),
            BlockAdded(16386, 2, 100, 12, 3, complete=False),
        ],
    ),
    "a length of a block that others have followed": (
        [OPEN, ops.AddBlock("/f", B1, B2), ops.AddBlock("/f", B2, B3),
         ops.UpdateBlocks("/f", (GROWN, B2, B3))],
        [BlockSettled(1, 60, 11, complete=True)],
    ),
    "a sync tells a length": (
        [OPEN, ops.UpdateBlocks("/f", (GROWN,))],
        [BlockSettled(1, 60, 11, complete=False)],
    ),
    "a recovered pipeline has another stamp": (
        [OPEN, ops.UpdateBlocks("/f", (RESTAMPED,))],
        [BlockSettled(1, 100, 20, complete=False)],
    ),
    "a block that is given up": ([OPEN, ops.UpdateBlocks("/f", ())], [BlocksGone((1,))]),
    "the block before one that is given up stays complete": (
        [OPEN, ops.AddBlock("/f", B1, B2), ops.UpdateBlocks("/f", (B1,))],
        [BlocksGone((2,))],
    ),
    "a close completes the last block": (
        [OPEN, close("/f", B1)],
        [BlockSettled(1, 100, 11, complete=True)],
    ),
    "an append reopens the last block": (
        [file("/f", B1, B2), ops.Append("/f", "w", "m", new_block=False)],
        [BlockSettled(2, 100, 12, complete=False)],
    ),
    "an append to a new block reopens nothing": (
        [file("/f", B1), ops.Append("/f", "w", "m", new_block=True)],
        [],
    ),
    "an append behind a full block reopens nothing": (
        [file("/f", FULL), ops.Append("/f", "w", "m", new_block=False)],
        [],
    ),
    "an append as logs before layout -62 have it": (
        [file("/f", B1), reopened("/f", B1)],
        [BlockSettled(1, 100, 11, complete=False)],
    ),
    "a file of an old log begins with blocks": (
        [replace(add("/f"), blocks=(B1,))],
        [BlockAdded(16386, 1, 100, 11, 3, complete=False)],
    ),
    "a truncation at a boundary": (
        [file("/f", B1, B2), ops.Truncate("/f", "w", "m", 100, 30)],
        [BlocksGone((2,))],
    ),
    "a truncation inside a block": (
        [file("/f", B1, B2), ops.Truncate("/f", "w", "m", 40, 30, Block(1, 100, 21))],
        [BlocksGone((2,)), BlockSettled(1, 100, 11, complete=False), BlockCut(1, 40, 21, 1)],
    ),
    "a truncation that copies the block": (
        [file("/f", B1), ops.Truncate("/f", "w", "m", 40, 30, Block(9, 0, 21))],
        [
            BlocksGone((1,)),
            BlockAdded(16386, 9, 40, 21, 3, complete=False),
            BlockCut(9, 40, 21, 1),
        ],
    ),
    "a deletion": ([file("/f", B1, B2), ops.Delete("/f", 30)], [BlocksGone((1, 2))]),
    "a deletion of a tree": (
        [mkdir("/d"), file("/d/f", B1), file("/d/g", B2), ops.Delete("/d", 30)],
        [BlocksGone((2, 1))],
    ),
    "a file that is overwritten": (
        [file("/f", B1), add("/f", overwrite=True)],
        [BlocksGone((1,))],
    ),
    "another replication": (
        [file("/f", B1, B2), ops.SetReplication("/f", 2)],
        [ReplicationSet((1, 2), 2)],
    ),
    "the same replication": ([file("/f", B1), ops.SetReplication("/f", 3)], []),
    "a concatenation": (
        [
            file("/f", B1),
            ops.SetReplication("/f", 2),
            file("/g", B2, B3),
            ops.ConcatDelete("/f", ("/g",), 30),
        ],
        [BlocksMoved((2, 3), 16386, 2)],
    ),
    "what was concatenated stays, whatever a snapshot had": (
        [mkdir("/d"), file("/d/g", B2), ops.AllowSnapshot("/d"),
         ops.CreateSnapshot("/d", "s", 5), file("/d/f", B1),
         ops.ConcatDelete("/d/f", ("/d/g",), 30), ops.DeleteSnapshot("/d", "s", 40)],
        [],
    ),
    "a snapshot keeps what is deleted": (
        [mkdir("/d"), file("/d/f", B1), ops.AllowSnapshot("/d"),
         ops.CreateSnapshot("/d", "s", 5), ops.Delete("/d/f", 30)],
        [],
    ),
    "the last snapshot goes": (
        [mkdir("/d"), file("/d/f", B1), ops.AllowSnapshot("/d"),
         ops.CreateSnapshot("/d", "s", 5), ops.Delete("/d/f", 30),
         ops.DeleteSnapshot("/d", "s", 40)],
        [BlocksGone((1,))],
    ),
    "a snapshot wants more replicas than the file": (
        [mkdir("/d"), file("/d/f", B1), ops.AllowSnapshot("/d"),
         ops.CreateSnapshot("/d", "s", 5), ops.SetReplication("/d/f", 1)],
        [],
    ),
    "without the snapshot the file's own replication counts": (
        [mkdir("/d"), file("/d/f", B1), ops.AllowSnapshot("/d"),
         ops.CreateSnapshot("/d", "s", 5), ops.SetReplication("/d/f", 1),
         ops.DeleteSnapshot("/d", "s", 40)],
        [ReplicationSet((1,), 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "changes"), CASES.values(), ids=CASES.keys())
def test_what_an_edit_tells(given: list[Op | list[Op]], changes: list[BlockChange]) -> None:
    assert told(*given) == changes


def test_nobody_is_told_who_does_not_watch() -> None:
    namespace = Namespace.empty("hdfs")
    for op in file("/f", B1):
        assert namespace.apply(TxId(namespace.last_applied + 1), op) == ()


def play_files(seed: int) -> None:
    """Play random edits of clients, and trees that change places."""
    deeds = (*FILE_DEEDS, *MOVING_DEEDS, add_again, plain_file)
    author = Author(random.Random(seed), Namespace.empty("hdfs"), kept_out=frozenset({PAST}))
    watched = Namespace.empty("hdfs")
    watched.watch_blocks()
    known: dict[int, Known] = {}
    for step in range(60):
        if step >= 20 and step % 9 == 2:
            touch_past(author, new=step == 20)
        else:
            author.step(deeds)
        for txid, op in author.log[watched.last_applied :]:
            learn(known, watched.apply(txid, op))
        ensure_learned(watched, known)


def play_snapshots(seed: int) -> None:
    chance = random.Random(seed)
    scribe, namespace = Scribe(), Namespace.empty("hdfs")
    namespace.watch_blocks()
    known: dict[int, Known] = {}
    for _ in range(120):
        act(scribe, chance.randrange)
        files = scribe.model.paths("file")
        if files and chance.random() < 0.4:
            scribe.write(ops.SetReplication(chance.choice(files), chance.randint(1, 4)))
        for op in scribe.take_written():
            learn(known, namespace.apply(TxId(namespace.last_applied + 1), op))
            ensure_learned(namespace, known)


def play_all() -> None:
    for seed in range(SEEDS):
        play_files(seed)
        play_snapshots(seed)


def test_the_changes_of_random_edits_are_all_that_happens() -> None:
    play_all()


def _nothing(*_arguments: object) -> None:
    """Leave out a step."""


def _too_long_a_front(before: changes._Holding, after: changes._Holding) -> int:
    return min(len(before.blocks), len(after.blocks))


_holding = changes._holding

BUGS: dict[str, Planting] = {
    "an edit of a file is not noted": replacing(Tree, "touch", _nothing),
    "what snapshots let go is not noted": replacing(Reclaim, "touch", _nothing),
    "deleted trees are not noted": replacing(BlockWatch, "drop", _nothing),
    "old replications in snapshots do not count": replacing(
        changes, "expected_replication", lambda file: file.replication
    ),
    "blocks that only snapshots hold are forgotten": replacing(
        changes, "_holding", lambda file: _holding(file)._replace(kept=())
    ),
    "the last block of the longer list is not compared": replacing(
        changes, "_same_front", _too_long_a_front
    ),
}


@pytest.mark.parametrize("plant", BUGS.values(), ids=BUGS.keys())
def test_a_planted_bug_is_found(plant: Planting) -> None:
    with ExitStack() as planted:
        plant(planted)
        with pytest.raises((AssertionError, KeyError)):
            play_all()
