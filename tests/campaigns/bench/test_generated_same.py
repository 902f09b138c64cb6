"""The bench's own comparison of large images: what it forgives, and what it does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from journal.model import NamespaceInfo
from namenode_sim.edits.values import AclEntry, Block
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from tests.campaigns.bench import checkpoint_same
from tests.campaigns.bench.checkpoint_same import content_of
from tests.worlds.large.images import LAYOUT, NAMESPACE_ID, write_big_image
from tests.worlds.large.shape import Shape

SHAPE = Shape(9000)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_big_image(tmp_path_factory.mktemp("same"), SHAPE)


def saved_again(namespace: Namespace, out: Path) -> Path:
    """Save with another writer, which numbers strings and orders directories in its own way."""
    save_image(namespace, out, NamespaceInfo(LAYOUT, NAMESPACE_ID, "", 0), sub_sections=3)
    return out


def test_order_numbers_and_sections_do_not_count(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = saved_again(load_image(image), tmp_path / image.name)
    assert other.read_bytes() != image.read_bytes()
    assert content_of(image).differences(content_of(other)) == []
    monkeypatch.setattr(checkpoint_same, "CHUNK_BYTES", 5000)
    assert content_of(image).differences(content_of(other)) == []


def files(namespace: Namespace) -> list[INodeFile]:
    return [node for node in namespace.tree.inodes.values() if isinstance(node, INodeFile)]


def an_owner(namespace: Namespace) -> str:
    files(namespace)[100].user = "user01"
    return "inode_sums"


def two_owners_exchanged(namespace: Namespace) -> str:
    one = files(namespace)[100]
    other = next(node for node in files(namespace) if node.user != one.user)
    one.user, other.user = other.user, one.user
    return "inode_sums"


def a_block(namespace: Namespace) -> str:
    file = next(node for node in files(namespace) if node.blocks)
    first, *others = file.blocks
    file.blocks = (Block(first.block_id, first.num_bytes + 1, first.generation_stamp), *others)
    return "inode_sums"


def a_name_in_an_acl(namespace: Namespace) -> str:
    node = next(n for n in files(namespace) if n.acl and any(entry.name for entry in n.acl))
    assert node.acl is not None
    acl = list(node.acl)
    place = next(index for index, entry in enumerate(acl) if entry.name)
    acl[place] = AclEntry(acl[place].scope, acl[place].type, "user09", acl[place].permission)
    node.acl = tuple(acl)
    return "inode_sums"


def a_time(namespace: Namespace) -> str:
    nodes = namespace.tree.inodes.values()
    directory = next(n for n in nodes if isinstance(n, INodeDirectory) and n.parent)
    directory.mtime += 1
    return "inode_sums"


def a_move(namespace: Namespace) -> str:
    file = next(node for node in files(namespace) if node.parent is not namespace.tree.root)
    namespace.tree.unlink(file)
    namespace.tree.link(namespace.tree.root, file)
    return "entry_sums"


def a_lost_file(namespace: Namespace) -> str:
    file = files(namespace)[10]
    namespace.tree.unlink(file)
    namespace.tree.forget(file)
    return "inodes"


def a_stamp(namespace: Namespace) -> str:
    namespace.counters.generation_stamp_v2 += 1
    return "small"


def a_path(namespace: Namespace) -> str:
    file = next(node for node in files(namespace) if node.under_construction)
    assert file.parent is not None
    file.parent.name = b"renamed"
    return "open_files"


CHANGES = (an_owner, two_owners_exchanged, a_block, a_name_in_an_acl, a_time, a_move, a_lost_file,
           a_stamp, a_path)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_difference_is_seen(
    image: Path, tmp_path: Path, change: Callable[[Namespace], str]
) -> None:
    namespace = load_image(image)
    expected = change(namespace)
    other = saved_again(namespace, tmp_path / image.name)
    assert expected in content_of(image).differences(content_of(other))
