"""Random edits below snapshots replayed by Hadoop's own NameNode: its image says what ours does."""

import os
import random
from pathlib import Path

import pytest

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import Op
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import images
from tests.namenode_sim.namespace.given_edits import go_on
from tests.namenode_sim.namespace.snapshots.histories import one_after_another
from tests.namenode_sim.namespace.snapshots.test_histories import histories
from tests.worlds.name_dirs import format_name_dirs
from tests.worlds.scribe import Scribe
from tests.worlds.scribe_actions import act

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

NO_ACK = 2**63 - 1
INFO = NamespaceInfo(-67, 4711, "CID-ours", 0, "BP-1-127.0.0.1-2")
SEEDS = [int(seed) for seed in os.environ.get("NNHA_HADOOP_SEEDS", "1 2").split()]
STEPS = int(os.environ.get("NNHA_SNAPSHOT_STEPS", "300"))


ENDS_HADOOP = (
    "mkdir d, allow d, mkdir d/a, mkdir d/a/b, file d/a/b/a, mkdir b, take d, move d/a a, take d, "
    "file a/a, move a b/b, mkdir d/a, move b d/a/b, move d/a/b/b/b/a d/a/b/a, "
    "move d/a/b/a d/a/b/b/a, take d, delete d/a, drop d s2"
)
"""Hadoop's NameNode ends while it replays this: removeChild takes out a child that had moved."""


def random_log(seed: int, steps: int) -> list[Op]:
    chance = random.Random(seed)
    scribe = Scribe(for_hadoop=True)
    for _ in range(steps):
        act(scribe, chance.randrange)
    return [ops.StartLogSegment(), *scribe.take_written(), ops.EndLogSegment()]


def name_directory(folder: Path, log: list[Op], begin: int) -> Path:
    """Make a name directory with our image after ``begin`` edits and a segment of the others."""
    namespace = Namespace.empty("hdfs")
    go_on(namespace, log[:begin])
    format_name_dirs([folder], INFO, namespace)
    rest = enumerate(log[begin:], start=begin + 1)
    frames = b"".join(encode(op, TxId(txid), -67) for txid, op in rest)
    header = (-67).to_bytes(4, "big", signed=True) + bytes(4)
    segment = folder / "current" / f"edits_{begin + 1:019d}-{len(log):019d}"
    segment.write_bytes(header + frames)
    return folder


def forget_lost_blocks(theirs: Namespace, ours: Namespace) -> None:
    """Leave out diffs with blocks that Hadoop deleted though a snapshot has them.

    A cut of a file that was moved out of a snapshot does not ask which blocks to retain
    (INodeFile.getSnapshotBlocksToRetain).  A deleted block has the length BlockCommand.NO_ACK, so
    that the blocks behind it are beyond the size of the diff and not loaded.
    """
    for number, node in theirs.tree.inodes.items():
        mine = ours.tree.inodes.get(number)
        if not isinstance(node, INodeFile) or not isinstance(mine, INodeFile):
            continue
        if node.history is None or mine.history is None:
            continue
        for diff, my_diff in zip(node.history.diffs, mine.history.diffs, strict=False):
            blocks = PACKED_BLOCK.iter_unpack(diff.packed_blocks or b"")
            if any(length == NO_ACK for _, length, _ in blocks):
                diff.packed_blocks = my_diff.packed_blocks


def forget_labels(theirs: Namespace, ours: Namespace) -> None:
    """Hadoop may take another directory's snapshot for a directory's own after a restart.

    A snapshot's diff that is given to a snapshot further up stays marked as that of a root, whose
    attributes its image then takes from the other snapshot.
    """
    for number, node in theirs.tree.inodes.items():
        mine = ours.tree.inodes.get(number)
        if not isinstance(node, INodeDirectory) or not isinstance(mine, INodeDirectory):
            continue
        if node.history is None or mine.history is None:
            continue
        for diff, my_diff in zip(node.history.diffs, mine.history.diffs, strict=False):
            if diff.is_root and not my_diff.is_root:
                diff.is_root, diff.copy = False, my_diff.copy


def compare(hadoop: Hadoop, name_dir: Path, log: list[Op]) -> list[str]:
    ours = Namespace.empty("hdfs")
    go_on(ours, log)
    hadoop.save_again(name_dir)
    theirs = load_image(images(name_dir)[-1])
    theirs.secrets = ours.secrets  # a NameNode that leaves safe mode makes keys
    forget_lost_blocks(theirs, ours)
    forget_labels(theirs, ours)
    return content_differences(ours, theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_hadoop_s_replay_gives_our_image(hadoop: Hadoop, tmp_path: Path, seed: int) -> None:
    log = random_log(seed, STEPS)
    found = compare(hadoop, name_directory(tmp_path / "name", log, 0), log)
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_hadoop_goes_on_from_our_image(hadoop: Hadoop, tmp_path: Path, seed: int) -> None:
    log = random_log(seed, STEPS)
    found = compare(hadoop, name_directory(tmp_path / "name", log, len(log) // 2), log)
    assert found == [], "\n".join(found)


def test_hadoop_s_replay_of_the_histories_gives_our_image(hadoop: Hadoop, tmp_path: Path) -> None:
    """Without those that have a symlink, which its NameNode refuses, and the one that ends it."""
    assert ENDS_HADOOP in histories()
    replayed = [words for words in histories() if "link " not in words and words != ENDS_HADOOP]
    edits = one_after_another(replayed)
    log = [ops.StartLogSegment(), *edits, ops.EndLogSegment()]
    found = compare(hadoop, name_directory(tmp_path / "name", log, 0), log)
    assert found == [], "\n".join(found)
