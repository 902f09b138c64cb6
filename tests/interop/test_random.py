"""Random logs of ours: Hadoop's NameNode starts from them and comes to the same namespace."""

import shutil
from pathlib import Path
from random import Random

import pytest

from journal.model import NamespaceInfo
from namenode_sim.edits import ops
from namenode_sim.edits.codec import NEWEST_LAYOUT, encode
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import images
from tests.interop.our_viewers import our_oev
from tests.journal.writer.journal_cluster import formatted_nodes
from tests.worlds.attribute_deeds import ADMIN_DEEDS, ATTRIBUTE_DEEDS
from tests.worlds.author import FILE_DEEDS, Author
from tests.worlds.files import write_log
from tests.worlds.name_dirs import format_name_dirs

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

INFO = NamespaceInfo(NEWEST_LAYOUT, 4711, "CID-ours", 0, "BP-1-127.0.0.1-2")


def random_author(seed: int, steps: int) -> Author:
    """Somebody who has written a whole segment."""
    author = Author(Random(seed), Namespace.empty("hdfs"))
    author.write(ops.StartLogSegment())
    for _ in range(steps):
        author.step(FILE_DEEDS + ATTRIBUTE_DEEDS + ADMIN_DEEDS)
    author.write(ops.EndLogSegment())
    return author


@pytest.mark.parametrize("seed", range(3))
def test_hadoop_replays_a_random_log_to_the_same_namespace(
    hadoop: Hadoop, tmp_path: Path, seed: int
) -> None:
    author, name_dir = random_author(seed, 1000), tmp_path / "name"
    format_name_dirs([name_dir], INFO, Namespace.empty("hdfs"))
    write_log(name_dir / "current", author.log)
    hadoop.save_again(name_dir)
    theirs = load_image(images(name_dir)[-1])
    assert content_differences(author.namespace, theirs) == []


async def test_hadoop_reads_what_our_journal_nodes_keep(hadoop: Hadoop, tmp_path: Path) -> None:
    author, name_dir = random_author(99, 300), tmp_path / "name"
    first, last = author.log[0][0], author.log[-1][0]
    async with formatted_nodes(tmp_path / "journal") as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await writer.start_segment(first)
        for txid, op in author.log:
            await writer.write(txid, 1, encode(op, txid))
        await writer.finalize_segment(last)
        await writer.settle(timeout_seconds=30)  # or the first node may still hold it open
        await writer.close()
        [segment] = nodes.current(0).glob("edits_*-*")
    ours, theirs = tmp_path / "ours.xml", tmp_path / "theirs.xml"
    our_oev(segment, ours, "xml")
    hadoop.print_edits(segment, theirs)
    assert ours.read_bytes() == theirs.read_bytes()
    format_name_dirs([name_dir], INFO, Namespace.empty("hdfs"))
    shutil.copy(segment, name_dir / "current")
    hadoop.save_again(name_dir)
    assert content_differences(author.namespace, load_image(images(name_dir)[-1])) == []
