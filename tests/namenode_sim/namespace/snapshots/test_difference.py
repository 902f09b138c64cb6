"""Random histories: the snapshot diff report is what two plain listings differ in."""

import os
import random
from collections.abc import Iterator
from itertools import permutations

import pytest

from hadoop.proto import client_snapshots_pb2 as pb
from namenode_sim.client_protocol.tree.snapshot_diffs import listing as page_of
from namenode_sim.client_protocol.tree.snapshot_diffs import report as report_of
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, full_path
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import CURRENT
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.namespace.given_edits import go_on
from tests.namenode_sim.namespace.snapshots.recount import (
    Line,
    Listing,
    Path,
    Recount,
    differs_from_now,
    listing,
)
from tests.worlds.scribe import Scribe
from tests.worlds.scribe_actions import act

SEEDS = int(os.environ.get("NNHA_SNAPSHOT_DIFF_SEEDS", "40"))
STEPS, EACH = 100, 10


def split(path: bytes) -> Path:
    return tuple(filter(None, path.split(b"/")))


def answered(steps: Iterator[None]) -> object:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def reported(served: Served, root: str, old: str, new: str) -> list[Line]:
    request = pb.GetSnapshotDiffReportRequestProto(
        snapshotRoot=root, fromSnapshot=old, toSnapshot=new
    )
    answer = answered(report_of(served.scene("hdfs"), request))
    assert isinstance(answer, pb.GetSnapshotDiffReportResponseProto)
    return [
        (
            one.modificationLabel,
            split(one.fullpath),
            split(one.targetPath) if one.HasField("targetPath") else None,
        )
        for one in answer.diffReport.diffReportEntries
    ]


def paged(
    served: Served, root: str, old: str, new: str, room: int
) -> pb.SnapshotDiffReportListingProto:
    """Return all pages as one, as a client puts them together."""
    whole = pb.SnapshotDiffReportListingProto(isFromEarlier=False)
    request = pb.GetSnapshotDiffReportListingRequestProto(
        snapshotRoot=root, fromSnapshot=old, toSnapshot=new
    )
    for _ in range(10_000):
        answer = answered(page_of(served.scene("hdfs"), request, room))
        assert isinstance(answer, pb.GetSnapshotDiffReportListingResponseProto)
        page, cursor = answer.diffReport, answer.diffReport.cursor
        lists = (page.modifiedEntries, page.createdEntries, page.deletedEntries)
        assert sum(map(len, lists)) <= room
        whole.MergeFrom(page)
        if not cursor.startPath and cursor.index == -1:
            whole.ClearField("cursor")
            return whole
        request.cursor.CopyFrom(cursor)
    raise AssertionError("the pages do not end")


def returned(node: INode | None, after: Listing) -> bool:
    """Return whether an inode that the later state lacks came to a directory of it afterwards.

    Hadoop takes it for renamed to there, and so do we.
    """
    step = None if node is None else node.parent
    while step is not None and step.id not in after.nodes:
        step = step.parent
    return step is not None


def was_cut(node: INode) -> bool:
    """Return whether a file was saved while it was open, and its blocks have been cut since."""
    diffs = node.history.diffs if isinstance(node, INodeFile) and node.history is not None else []
    return any(
        diff.size > sum(size for _, size, _ in PACKED_BLOCK.iter_unpack(node.packed_blocks))
        for diff in diffs
        if isinstance(node, INodeFile)
    )


def compare(served: Served, root: INodeDirectory, names: dict[str, int]) -> int:
    """Compare all pairs of states of a directory; return how many lines were reported.

    Like Hadoop we compare a directory's own attributes with those of now, not of the later state.
    """
    count, inodes = 0, served.namespace.tree.inodes
    for old, new in permutations(names, 2):
        if names[old] > names[new]:
            continue
        before, after = listing(root, names[old]), listing(root, names[new])
        if any(returned(inodes.get(number), after) for number in before.nodes.keys() - after.nodes):
            continue
        wanted = Recount(before, after).run(root)
        found = reported(served, full_path(root), old, new)
        back = {line[1] for line in found if line[0] == "R" and line[1] == line[2]}
        lines = {line for line in found if line[0] != "R" or line[1] != line[2]}
        extra = {
            ("M", path, None)
            for label, path, _ in lines - wanted
            if label == "M"
            and (
                any(one[:-1] == path for one in back)
                or differs_from_now(root, before, path)
                or was_cut(inodes[before.numbers[path]])
            )
        }
        back_again = {
            line
            for line in wanted - lines
            if line[0] == "M" and not differs_from_now(root, before, line[1])
        }
        assert lines - extra == wanted - extra - back_again, (full_path(root), old, new)
        assert len(found) == len(set(found))
        check_pages(served, full_path(root), old, new, found)
        check_reverse(served, full_path(root), (old, new), found)
        count += len(found)
    return count


def check_pages(served: Served, root: str, old: str, new: str, found: list[Line]) -> None:
    whole = paged(served, root, old, new, 1000)
    assert whole == paged(served, root, old, new, 3) == paged(served, root, old, new, 1)
    modified = [path for label, path, _ in found if label == "M"]
    assert sorted(modified) == sorted(split(one.fullpath) for one in whole.modifiedEntries)
    gone = {path for label, path, _ in found if label in "-R"}
    assert gone == {split(one.fullpath) for one in whole.deletedEntries}
    came = {path for label, path, _ in found if label == "+"}
    assert came <= {split(one.fullpath) for one in whole.createdEntries}


def check_reverse(served: Served, root: str, names: tuple[str, str], found: list[Line]) -> None:
    """Check that from the later to the earlier state all is the other way round."""
    labels = {"+": "-", "-": "+", "M": "M", "R": "R"}
    turned = [
        (labels[label], path, None) if target is None else (label, target, path)
        for label, path, target in found
    ]
    assert reported(served, root, names[1], names[0]) == turned


def run(seed: int) -> int:
    chance, scribe, lines = random.Random(seed), Scribe(), 0
    namespace = Namespace.empty("hdfs")
    served = serve(namespace=namespace)
    for step in range(STEPS):
        act(scribe, chance.randrange)
        go_on(namespace, scribe.take_written())
        if step % EACH:
            continue
        for number, taken in namespace.snapshots.snapshottable.items():
            root = namespace.tree.inodes[number]
            assert isinstance(root, INodeDirectory)
            lines += compare(served, root, {**{one.name: one.id for one in taken}, "": CURRENT})
    return lines


def tried(seeds: range) -> int:
    lines = 0
    for seed in seeds:
        try:
            lines += run(seed)
        except Exception as failure:
            raise AssertionError(f"seed {seed}") from failure
    return lines


def test_reports_are_what_two_listings_differ_in() -> None:
    assert tried(range(SEEDS)) > 10 * SEEDS


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_thousand_histories() -> None:
    assert tried(range(10_000, 12_000)) > 20_000
