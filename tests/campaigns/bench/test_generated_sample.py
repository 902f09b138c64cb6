"""A sample of a merged image shows what is wrong in it; an image that is right shows nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.image.files import image_name
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.local_edits import edits_of, finalized_in
from tests.campaigns.bench.checkpoint_sample import compare
from tests.worlds.large import edits as large_edits
from tests.worlds.large.images import LAST_TXID, LAYOUT, NAMESPACE_ID, write_big_image
from tests.worlds.large.shape import Shape

SHAPE = Shape(20_000)
COUNT = 3000
SAMPLE = 40_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sample")
    write_big_image(made, SHAPE)
    edits = large_edits.edits_on(SHAPE, COUNT)
    large_edits.write_segments(made, edits, first=TxId(LAST_TXID + 1), segments=2, count=COUNT)
    return made


def merged(folder: Path, left_out: Callable[[ops.Op], bool]) -> Namespace:
    namespace = load_image(folder / image_name(LAST_TXID))
    for segment in finalized_in(folder):
        for located in edits_of(segment):
            if left_out(located.op):
                namespace.last_applied = located.txid
                continue
            namespace.apply(located.txid, located.op)
    return namespace


def sampled(folder: Path, namespace: Namespace, out: Path) -> list[str]:
    path = out / image_name(namespace.last_applied)
    save_image(namespace, path, NamespaceInfo(LAYOUT, NAMESPACE_ID, "", 0))
    found = compare(path, folder, SHAPE, COUNT, out, SAMPLE)
    assert found.compared > 10_000
    assert found.touched > 2000
    assert found.removed > 500
    return found.wrong


def test_what_was_merged_rightly_is_equal(folder: Path, tmp_path: Path) -> None:
    assert sampled(folder, merged(folder, lambda _: False), tmp_path) == []


@pytest.mark.parametrize("kind", [ops.SetOwner, ops.SetAcl, ops.SetQuota])
def test_edits_that_were_left_out_are_seen(
    folder: Path, tmp_path: Path, kind: type[ops.Op]
) -> None:
    namespace = merged(folder, lambda op: isinstance(op, kind))
    assert sampled(folder, namespace, tmp_path)


def files(namespace: Namespace) -> list[INodeFile]:
    return [node for node in namespace.tree.inodes.values() if isinstance(node, INodeFile)]


def a_file_in_the_root(namespace: Namespace) -> None:
    file = next(node for node in files(namespace) if node.parent is not namespace.tree.root)
    namespace.tree.unlink(file)
    namespace.tree.link(namespace.tree.root, file)


def files_that_edits_left_alone(namespace: Namespace) -> None:
    for file in files(namespace)[::50]:
        file.mtime += 1


def a_directory_that_came_back(namespace: Namespace) -> None:
    """Its number is that of one that the large delete has removed."""
    left = Namespace.empty("hdfs").tree.root
    kept = {SHAPE.id_of(SHAPE.place[[one]])[0] for one in range(len(SHAPE.parent))}
    left.id = int(next(one for one in kept if one not in namespace.tree.inodes))
    left.name = b"back"
    namespace.tree.link(namespace.tree.root, left)


@pytest.mark.parametrize(
    "change", [a_file_in_the_root, files_that_edits_left_alone, a_directory_that_came_back]
)
def test_a_difference_is_seen(
    folder: Path, tmp_path: Path, change: Callable[[Namespace], None]
) -> None:
    namespace = merged(folder, lambda _: False)
    change(namespace)
    assert sampled(folder, namespace, tmp_path)
