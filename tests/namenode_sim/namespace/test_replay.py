"""Hadoop's own edit log replayed, sorted names and counts kept, and what an inode costs."""

import struct
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from journal.model import TxId
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.ops import Add, Close, Mkdir
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.inode import INodeDirectory, signed_order
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.tree import Tree, new_root
from tests import TESTDATA
from tests.namenode_sim.namespace.dump import differences, dump_state, dump_tree
from tests.needs import FILES_OF_HADOOP

EDITS = TESTDATA / "edits" / "editsStored"


@FILES_OF_HADOOP.mark
def test_hadoop_s_sample_log_applies_to_the_end() -> None:
    data = EDITS.read_bytes()
    (layout,) = struct.unpack(">i", data[:4])
    namespace = Namespace.empty("root")
    for txid, op in decode_all(data[8:], layout):
        namespace.apply(txid, op)
    state = dump_state(namespace)
    assert state["last_applied"] == 121
    assert [path for path, _ in dump_tree(namespace.tree.root)] == [
        "/",
        "/directory_mkdir",
        "/ec",
        "/ec/RS-3-2",
        "/ec/replicated",
        "/file_concat_target",
        "/file_create",
        "/file_moved",
        "/file_symlink",
        "/hard-lease-recovery-test",
        "/update_blocks",
    ]
    assert namespace.tree.file("/file_concat_target").length() == 9 * 512
    assert state["leases"] == {}
    assert namespace.counters.generation_stamp_v2 == 1016


names = st.binary(min_size=1, max_size=3)


@given(st.lists(st.tuples(st.booleans(), names), max_size=60), st.integers(0, 30))
def test_names_stay_in_signed_order_and_counts_stay_right(
    steps: list[tuple[bool, bytes]], asked_at: int
) -> None:
    tree = Tree(new_root("hdfs", "supergroup"))
    for number, (adds, name) in enumerate(steps):
        if number == asked_at:
            tree.root.ordered_names()
            tree.usage.of(tree.root)
        if adds and name not in tree.root.children:
            tree.link(tree.root, INodeDirectory(20000 + number, name, "u", "g", 0o755, 0))
        elif not adds and name in tree.root.children:
            child = tree.root.children[name]
            tree.unlink(child)
            tree.forget(child)
    assert tree.root.ordered_names() == sorted(tree.root.children, key=signed_order)
    assert tree.usage.of(tree.root).names == len(tree.inodes) == len(tree.root.children) + 1


def test_non_ascii_names_come_before_ascii_ones_and_prefixes_first() -> None:
    tree = Tree(new_root("hdfs", "supergroup"))
    for number, name in enumerate(["b", "a", "ab", "é", ""[:0] or "Z"]):
        child = INodeDirectory(20000 + number, name.encode(), "u", "g", 0o755, 0)
        tree.link(tree.root, child)
    assert [name.decode() for name in tree.root.ordered_names()] == ["é", "Z", "a", "ab", "b"]


def test_differences_are_told() -> None:
    one, other = Namespace.empty("hdfs"), Namespace.empty("hdfs")
    one.apply(TxId(1), Mkdir(0, "/a", 1, 1, Permission("u", "g", 0o700)))
    other.apply(TxId(1), Mkdir(0, "/a", 1, 1, Permission("u", "g", 0o755)))
    assert differences(one, other) == ["/a mode: '0o700' against '0o755'"]
    other.apply(TxId(2), Mkdir(0, "/b", 1, 1, Permission("u", "g", 0o755)))
    assert "/b is only in the second" in differences(one, other)
    assert differences(one, one) == []


def test_an_ordinary_file_costs_at_most_500_bytes() -> None:
    namespace = Namespace.empty("hdfs")
    who, count = Permission("alice", "staff", 0o644), 20_000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            path, now = f"/part-{number:010}-of-the-output", 1_700_000_000_000 + number
            txid = TxId(2 * number + 1)
            namespace.apply(txid, Add(0, path, 3, now, now, 1 << 27, (), who, client_name="w"))
            namespace.apply(TxId(txid + 1), Close(0, path, 3, now, now, 1 << 27, (), who))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / count < 500
