"""The demo's judge sees what is lost, what is there twice, and what differs between nodes."""

from pathlib import Path

import pytest

from deploy.local.cluster import layout as layouts
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import Layout
from deploy.local.workload.audit import judge, missing_from_tree, read_journal
from deploy.local.workload.java_client import Tree
from deploy.local.workload.workload import ClientCall, ClientCallKind
from journal.frame import file_header
from journal.model import TxId
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import Add, Mkdir, Op, RenameOld
from namenode_sim.edits.values import Permission

OWNER = Permission("root", "supergroup", 0o755)


def write(kind: ClientCallKind, path: str, target: str = "", *, error: str = "") -> ClientCall:
    return ClientCall(0, kind, path, target, started=0.0, ended=1.0, error=error)


def tree(directories: set[str], files: set[str]) -> Tree:
    return Tree(frozenset(directories), frozenset(files))


def mkdir(path: str, inode: int = 17) -> Mkdir:
    return Mkdir(inode, path, 1, 1, OWNER)


def add(path: str, inode: int = 18) -> Add:
    return Add(inode, path, 3, 1, 1, 1 << 27, (), OWNER)


def segment(*ops: Op, first: int = 1) -> bytes:
    frames = (encode(op, TxId(first + index)) for index, op in enumerate(ops))
    return file_header() + b"".join(frames)


def store(layout: Layout, node: str, name: str, data: bytes) -> None:
    current = layout.edits_dir(node) / "ns1" / "current"
    current.mkdir(parents=True, exist_ok=True)
    (current / name).write_bytes(data)


MKDIR, CREATE = write(ClientCallKind.MKDIRS, "/d"), write(ClientCallKind.CREATE, "/d/f")
MOVE = write(ClientCallKind.RENAME, "/d/f", "/d/g")
MOVE_UNKNOWN = write(ClientCallKind.RENAME, "/d/f", "/d/g", error="gave up")

CASES = {
    "all there": ([MKDIR, CREATE], tree({"/d"}, {"/d/f"}), []),
    "a directory is lost": ([MKDIR], tree(set(), set()), ["mkdirs /d"]),
    "a file where a directory should be": ([MKDIR], tree(set(), {"/d"}), ["mkdirs /d"]),
    "a file is lost": ([MKDIR, CREATE], tree({"/d"}, set()), ["create /d/f"]),
    "a renamed file is at its new name": ([CREATE, MOVE], tree({"/d"}, {"/d/g"}), []),
    "a rename came undone": (
        [CREATE, MOVE],
        tree({"/d"}, {"/d/f"}),
        ["create /d/f", "rename /d/f /d/g"],
    ),
    "a rename left both names": (
        [CREATE, MOVE],
        tree(set(), {"/d/f", "/d/g"}),
        ["rename /d/f /d/g"],
    ),
    "an unknown rename may have happened": ([CREATE, MOVE_UNKNOWN], tree(set(), {"/d/g"}), []),
    "an unknown rename may not have": ([CREATE, MOVE_UNKNOWN], tree(set(), {"/d/f"}), []),
    "what failed is not looked for": (
        [write(ClientCallKind.MKDIRS, "/x", error="no")],
        tree(set(), set()),
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_tree_is_held_against_the_acknowledged_writes(case: str) -> None:
    writes, there, missing = CASES[case]
    assert missing_from_tree(writes, there) == missing


def test_a_segment_that_is_finalized_between_look_and_read_is_read_by_its_new_name(
    tmp_path: Path,
) -> None:
    """Check what happened on a slow machine: the nodes live while the demo judges them."""
    layout = layouts.plan(tmp_path)
    store(layout, "jn1", "edits_0000000000000000001-0000000000000000001", segment(mkdir("/d")))
    current = layout.edits_dir("jn1") / "ns1" / "current"
    (current / "edits_inprogress_0000000000000000001").symlink_to("renamed")
    assert read_journal(layout).transactions == 1


def test_edits_of_all_nodes_are_merged_and_counted_once(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    name = "edits_0000000000000000001-0000000000000000002"
    for node in ("jn1", "jn2"):
        store(layout, node, name, segment(mkdir("/d"), add("/d/f")))
    rename = segment(RenameOld("/d/f", "/d/g", 1), first=3)
    store(layout, "jn3", "edits_inprogress_0000000000000000003", rename + b"\xff" * 4096)
    journal = read_journal(layout)
    assert (journal.transactions, journal.missing_txids, journal.diverging) == (3, [], [])
    verdict = judge([MKDIR, CREATE, MOVE], tree({"/d"}, {"/d/g"}), journal)
    assert verdict.clean
    assert verdict.acknowledged == 3


def test_an_edit_that_stands_twice_is_seen(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    store(layout, "jn1", "edits_0000000000000000001-0000000000000000002",
          segment(mkdir("/d"), mkdir("/d", 18)))  # fmt: skip
    verdict = judge([MKDIR], tree({"/d"}, set()), read_journal(layout))
    assert verdict.duplicated == ("mkdirs /d (2 times)",)
    assert not verdict.clean


def test_an_acknowledged_write_without_an_edit_is_missing_although_the_tree_has_it(
    tmp_path: Path,
) -> None:
    verdict = judge([MKDIR], tree({"/d"}, set()), read_journal(layouts.plan(tmp_path)))
    assert verdict.missing == ("mkdirs /d (not in the journal)",)


def test_finalized_copies_that_differ_are_seen_and_stale_open_ones_are_not_believed(
    tmp_path: Path,
) -> None:
    layout = layouts.plan(tmp_path)
    name = "edits_0000000000000000001-0000000000000000001"
    store(layout, "jn1", name, segment(mkdir("/a")))
    store(layout, "jn2", "edits_inprogress_0000000000000000001", segment(mkdir("/stale")))
    assert read_journal(layout).diverging == []
    assert [path for _, path, _ in read_journal(layout).deeds] == ["/a"]
    store(layout, "jn3", name, segment(mkdir("/b")))
    assert read_journal(layout).diverging == [1]


def test_a_hole_is_seen(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    store(layout, "jn1", "edits_0000000000000000003-0000000000000000003",
          segment(mkdir("/a"), first=3))  # fmt: skip
    assert read_journal(layout).missing_txids == [1, 2]


def test_a_damaged_finalized_segment_is_an_error_not_a_short_one(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    damaged = segment(mkdir("/a"))[:-1]
    store(layout, "jn1", "edits_0000000000000000001-0000000000000000001", damaged)
    with pytest.raises(LocalClusterError, match="finalized segment"):
        read_journal(layout)
