"""Random histories: our snapshot diff reports are Hadoop's, line by line and page by page."""

import os
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import NEWEST_LAYOUT
from namenode_sim.namespace.inode import full_path
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import Hadoop, JavaObject
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.namespace.given_edits import go_on
from tests.namenode_sim.namespace.snapshots.recount import Path as Names
from tests.namenode_sim.namespace.snapshots.test_difference import paged, reported
from tests.worlds.files import write_log
from tests.worlds.name_dirs import format_name_dirs
from tests.worlds.scribe import Scribe
from tests.worlds.scribe_actions import act

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

INFO = NamespaceInfo(NEWEST_LAYOUT, 4711, "CID-ours", 0, "BP-1-127.0.0.1-2")
STEPS = 150
SEEDS = range(int(os.environ.get("NNHA_SNAPSHOT_DIFF_SEEDS", "3")))


def history(seed: int) -> list[ops.Op]:
    """Return the edits of a random history, at whose end some directory has two snapshots."""
    chance, scribe, steps = Random(seed), Scribe(for_hadoop=True), 0
    while steps < STEPS or max(map(len, scribe.model.snapshots.values()), default=0) < 2:
        act(scribe, chance.randrange)
        steps += 1
    return [ops.StartLogSegment(), *scribe.take_written(), ops.EndLogSegment()]


def shown(path: Names) -> str:
    """Return a path as SnapshotDiffReport prints it."""
    return b"/".join((b".", *path)).decode()


def ours(served: Served, root: str, old: str, new: str) -> list[str]:
    return [
        f"{label}\t{shown(path)}" + ("" if target is None else f" -> {shown(target)}")
        for label, path, target in reported(served, root, old, new)
    ]


def theirs(rpc: JavaObject, root: str, old: str, new: str) -> list[str]:
    return str(rpc.getSnapshotDiffReport(root, old, new)).splitlines()[1:]


def listed(rpc: JavaObject, root: str, old: str, new: str) -> list[int]:
    """Return how many entries Hadoop's first page has in each of its lists."""
    page = rpc.getSnapshotDiffReportListing(root, old, new, b"", -1)
    return [page.getModifyList().size(), page.getCreateList().size(), page.getDeleteList().size()]


def twins(namespace: Namespace) -> bool:
    """Return whether two inodes have the same last path, one of them in snapshots only.

    Hadoop sorts its report by that path, takes the two for one, and shows the changes of one under
    the path of the other.
    """
    places = [(node.parent, node.name) for node in namespace.tree.inodes.values()]
    return len(places) != len(set(places))


@pytest.mark.parametrize("seed", SEEDS)
def test_reports_are_hadoops(hadoop: Hadoop, tmp_path: Path, seed: int) -> None:
    edits, name_dir = history(seed), tmp_path / "name"
    format_name_dirs([name_dir], INFO, Namespace.empty("hdfs"))
    write_log(name_dir / "current", [(TxId(n), op) for n, op in enumerate(edits, 1)])
    namespace = go_on(Namespace.empty("hdfs"), edits)
    served, lines = serve(namespace=namespace), 0
    with hadoop.name_node(name_dir) as node:
        rpc = node.getRpcServer()
        for number, taken in namespace.snapshots.snapshottable.items():
            root = full_path(namespace.tree.inodes[number])
            for old, new in permutations([*(one.name for one in taken), ""], 2):
                wanted, mine = theirs(rpc, root, old, new), ours(served, root, old, new)
                assert mine == wanted or twins(namespace), (root, old, new)
                page = paged(served, root, old, new, 1000)
                sizes = [page.modifiedEntries, page.createdEntries, page.deletedEntries]
                assert list(map(len, sizes)) == listed(rpc, root, old, new)
                lines += len(wanted)
    assert lines or seed > 2  # some end with two snapshots between which nothing changed
