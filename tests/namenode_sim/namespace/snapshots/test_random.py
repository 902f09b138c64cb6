"""Random edits below snapshots: every snapshot keeps showing what was there when it was taken."""

import io
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namenode_sim.edits.ops import Op
from namenode_sim.image.reader import read_namespace
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, full_path, subtree
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots import held
from namenode_sim.namespace.snapshots.held import only_in_snapshots
from namenode_sim.namespace.usage import Kind, storage_policy_of
from tests.namenode_sim.image.image_world import saved
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.namespace.given_edits import go_on
from tests.namenode_sim.namespace.snapshots.comparing import wrong
from tests.worlds.scribe import Draw, Scribe
from tests.worlds.scribe_actions import act

SEEDS = int(os.environ.get("NNHA_SNAPSHOT_SEEDS", "100"))
"""How many long random programs are tried in addition to hypothesis's short ones."""

PARTS = 5
"""Each has the time of a test, which all together take on a busy machine."""


def through_an_image(namespace: Namespace) -> Namespace:
    """Save and load, which must change nothing."""
    again = read_namespace(io.BytesIO(saved(namespace, -67)))
    assert differences(namespace, again) == []
    return again


def charged(file: INodeFile, policy: int) -> tuple[Kind, int]:
    """Return what a file takes: each of its blocks once, an open last one as a whole one."""
    diffs = file.history.diffs if file.history is not None else []
    lengths = {block.block_id: block.num_bytes for block in file.blocks}
    if lengths and file.under_construction is not None:
        lengths[file.blocks[-1].block_id] = file.preferred_block_size
    for diff in diffs:
        for number, length, _ in PACKED_BLOCK.iter_unpack(diff.packed_blocks or b""):
            lengths.setdefault(number, length)
    copies = [diff.copy.replication for diff in diffs if diff.copy is not None]
    deleted = file.history is not None and file.history.deleted and copies
    replication = max(copies if deleted else [file.replication, *copies])
    return Kind(file.storage_policy_id or policy, replication), sum(lengths.values())


def recounted(directory: INodeDirectory) -> tuple[int, dict[Kind, int]]:
    """Return names and bytes by a walk, those of snapshots alone included."""
    nodes = [one for node in subtree(directory) for one in (node, *only_in_snapshots(node))]
    sizes: dict[Kind, int] = {}
    for node in nodes:
        if isinstance(node, INodeFile):
            kind, size = charged(node, nearest_policy(node))
            sizes[kind] = sizes.get(kind, 0) + size
    return len(nodes), {kind: size for kind, size in sizes.items() if size}


def nearest_policy(node: INode) -> int:
    chain = [node]
    while (parent := chain[-1].parent) is not None:
        chain.append(parent)
    return next(filter(None, map(storage_policy_of, chain)), 0)


def counted_wrong(namespace: Namespace) -> dict[str, tuple[object, object]]:
    """Return the directories whose kept use is not that of a walk, with both."""
    wrongly: dict[str, tuple[object, object]] = {}
    for node in subtree(namespace.tree.root):
        if isinstance(node, INodeDirectory):
            use, walked = held.use_of(namespace.tree, node), recounted(node)
            if (use.names, use.sizes) != walked:
                wrongly[full_path(node)] = (use, walked)
    return wrongly


def run(draw: Draw, steps: int) -> None:
    scribe = Scribe()
    written: list[Op] = []
    namespace = Namespace.empty("hdfs")
    for _ in range(steps):
        if draw(10) == 0:
            namespace = through_an_image(namespace)
        act(scribe, draw)
        edits = scribe.take_written()
        go_on(namespace, edits)
        written += edits
        assert wrong(namespace, scribe.model) == [], edits
        assert counted_wrong(namespace) == {}, edits
    replayed = Namespace.empty("hdfs")
    go_on(replayed, written)
    assert differences(replayed, namespace) == []


@settings(deadline=None)
@given(st.binary(min_size=40, max_size=400))
def test_short_programs(tape: bytes) -> None:
    rest = iter(tape)
    run(lambda limit: next(rest, 0) % limit, steps=len(tape) // 4)


@pytest.mark.parametrize("part", range(PARTS))
def test_long_programs(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        chance = random.Random(seed)
        try:
            run(chance.randrange, steps=120)
        except Exception as failure:
            raise AssertionError(f"seed {seed}") from failure
