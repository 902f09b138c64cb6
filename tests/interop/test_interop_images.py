"""Images that we save: a real NameNode starts from them, and saves what was in them."""

from pathlib import Path

import pytest

from journal.model import NamespaceInfo
from namenode_sim.image.reader import load_image
from namenode_sim.namespace import Namespace
from namenode_sim.storage_format import format_name_dirs
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import edits, images, replayed
from tests.interop.printed_image import printed_counters, printed_tree, told_counters, told_tree

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

NAMESPACE_ID = 4711
NEWEST = NamespaceInfo(-67, NAMESPACE_ID, "CID-ours", 0, "BP-1-127.0.0.1-2")


def everything(worked_in: Path) -> Namespace:
    """The whole workload, replayed by us."""
    *_, (last, _op) = edits(worked_in)
    return replayed(worked_in, images(worked_in)[0], last)


def test_its_viewer_prints_the_tree_that_we_hold(hadoop: Hadoop, worked_in: Path) -> None:
    for image in images(worked_in):
        namespace = load_image(image)
        printed = hadoop.print_image(image)
        assert printed_tree(printed) == told_tree(namespace)


def test_a_name_node_starts_from_a_directory_of_ours(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path
) -> None:
    name_dir = tmp_path / "name"
    format_name_dirs([name_dir], NEWEST, everything(worked_in))
    ours = load_image(images(name_dir)[0])
    printed = hadoop.print_image(images(name_dir)[0])
    assert printed_tree(printed) == told_tree(ours)
    assert printed_counters(printed) == told_counters(ours, NAMESPACE_ID)
    hadoop.save_again(name_dir)
    theirs = load_image(images(name_dir)[-1])
    assert theirs.last_applied > ours.last_applied
    assert content_differences(ours, theirs) == []
