"""The edits of the bench: each succeeds on the image they were made for, and all kinds occur."""

from collections import Counter
from pathlib import Path

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.image.reader import load_image
from namenode_sim.storage.local_edits import chain, edits_of, finalized_in
from tests.worlds.large.edits import LARGE_TREE, edits_on, write_segments
from tests.worlds.large.images import LAST_TXID, write_big_image
from tests.worlds.large.shape import Shape

SHAPE = Shape(20_000)
COUNT = 6000
FIRST = TxId(LAST_TXID + 1)


def test_every_edit_succeeds_on_its_image(tmp_path: Path) -> None:
    namespace = load_image(write_big_image(tmp_path, SHAPE))
    last = write_segments(tmp_path, edits_on(SHAPE, COUNT), first=FIRST, segments=3, count=COUNT)
    segments = chain(finalized_in(tmp_path), FIRST)
    assert len(segments) == 3
    kinds: Counter[type[ops.Op]] = Counter()
    largest = 0
    for segment in segments:
        for located in edits_of(segment):
            before = len(namespace.tree.inodes)
            namespace.apply(located.txid, located.op)
            largest = max(largest, before - len(namespace.tree.inodes))
            kinds[type(located.op)] += 1
    assert namespace.last_applied == last
    assert sum(kinds.values()) == COUNT + 2 * 3
    assert 0.02 < largest / SHAPE.inodes < LARGE_TREE + 0.02
    wanted = {ops.Add, ops.AddBlock, ops.Close, ops.Mkdir, ops.Rename, ops.RenameOld, ops.Delete,
              ops.ConcatDelete, ops.Append, ops.UpdateBlocks, ops.Truncate, ops.SetXAttr,
              ops.SetAcl, ops.SetQuota, ops.GetDelegationToken, ops.Times}  # fmt: skip
    assert wanted <= kinds.keys()


def test_edits_happen_below_what_was_moved_and_where_something_was() -> None:
    moved: set[str] = set()
    freed: set[str] = set()
    below = again = 0
    for op in edits_on(SHAPE, COUNT):
        match op:
            case ops.Rename():
                below += any(op.src.startswith(f"{path}/") for path in moved)
                if "/moved-" in op.dst:
                    moved.add(op.dst)
                freed.add(op.src)
            case ops.Delete():
                freed.add(op.path)
            case ops.Add() | ops.Mkdir():
                again += op.path in freed
            case _:
                pass
    assert len(moved) > 10
    assert below > 5
    assert again > 20


def test_the_same_seed_gives_the_same_edits() -> None:
    assert list(edits_on(SHAPE, 500, 3)) == list(edits_on(SHAPE, 500, 3))
    assert list(edits_on(SHAPE, 500, 3)) != list(edits_on(SHAPE, 500, 4))
