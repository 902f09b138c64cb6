"""The messages at the paths of a trie: found in ranges, compared with the whole namespace."""

import random
from pathlib import Path

import numpy as np
import pytest

from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.namespace.inode import INode, INodeDirectory
from namenode_sim.namespace.namespace import Namespace
from spark.image.directories import PARENT_TAG
from spark.merge.errors import NeedsWholeNamespace
from spark.merge.trie import NEED, BaseTrie
from tests.spark.merge.image_world import POPULAR, grown, opened, summary
from tests.worlds.files import save


def at(namespace: Namespace, trie: BaseTrie, node: int) -> INode | None:
    found: INode | None = namespace.tree.root
    for name in trie.path(node).split(b"/")[1:] if node else []:
        found = found.children.get(name) if isinstance(found, INodeDirectory) else None
    return found


def asked(namespace: Namespace, rng: random.Random, count: int) -> BaseTrie:
    """Places that are there, and places that are not: below files, too."""
    trie = BaseTrie()
    inodes = list(namespace.tree.inodes.values())
    for _ in range(count):
        path, node = [], rng.choice(inodes)
        while node.parent is not None:
            path.append(node.name)
            node = node.parent
        path.reverse()
        if path and rng.random() < 0.3:
            path[rng.randrange(len(path))] = rng.choice(POPULAR).encode()
        if rng.random() < 0.3:
            path.append(rng.choice([*POPULAR, "absent"]).encode())
        place = 0
        for name in path:
            place = trie.child(place, name)
        if rng.random() < 0.8:
            trie.flags[place] |= NEED
    return trie


@pytest.mark.parametrize("codec", ["", ZLIB_CODEC])
@pytest.mark.parametrize("seed", range(3))
def test_all_that_was_asked_about_is_found_and_nothing_else(
    tmp_path: Path, seed: int, codec: str
) -> None:
    rng = random.Random(seed)
    namespace = grown(seed, 350)
    trie = asked(namespace, rng, 120)
    path = save(namespace, tmp_path / "old", codec=codec, parts=seed % 2 * 3)
    looked = opened(path, tmp_path / "work", trie).looked
    wanted = set()
    for node in range(len(trie)):
        there = at(namespace, trie, node)
        assert looked.ids[node] == (-1 if there is None else there.id), trie.path(node)
        if there is not None and trie.flags[node] & NEED:
            wanted.add(there.id)
            message = pb.INode.FromString(looked.messages[there.id])
            assert (message.id, message.name) == (there.id, there.name)
    assert set(looked.messages) == wanted
    assert 16385 in wanted


def test_nothing_but_the_root_is_asked(tmp_path: Path) -> None:
    looked = opened(save(grown(9, 30), tmp_path / "old"), tmp_path / "work").looked
    assert looked.ids.tolist() == [16385]
    assert list(looked.messages) == [16385]


def test_a_directory_with_references_cannot_be_looked_into(tmp_path: Path) -> None:
    namespace = grown(10, 60)
    directory = next(
        d for d in namespace.tree.inodes.values()
        if isinstance(d, INodeDirectory) and d.parent and d.children
    )  # fmt: skip
    path = save(namespace, tmp_path / "old")
    _turn_children_into_references(path, directory.id)
    trie = BaseTrie()
    node = 0
    for name in [*_path(directory), b"whatever"]:
        node = trie.child(node, name)
    opened(path, tmp_path / "work")  # it is not looked into
    with pytest.raises(NeedsWholeNamespace, match="that a snapshot holds"):
        opened(path, tmp_path / "again", trie)


def _path(node: INode) -> list[bytes]:
    names = []
    while node.parent is not None:
        names.append(node.name)
        node = node.parent
    return names[::-1]


def _turn_children_into_references(path: Path, directory: int) -> None:
    """Give the list of children the tag of the other list; the lengths stay."""
    data = bytearray(path.read_bytes())
    section = summary(path).find("INODE_DIR")
    assert section is not None
    head = pb.DirEntry(parent=directory).SerializeToString()
    found = data.index(head + b"\x12", section.offset)
    assert data[found] == PARENT_TAG
    data[found + len(head)] = 0x1A
    path.write_bytes(data)


def test_a_file_where_a_directory_was_expected(tmp_path: Path) -> None:
    namespace = grown(11, 80)
    file = next(n for n in namespace.tree.inodes.values() if not isinstance(n, INodeDirectory))
    trie, node = BaseTrie(), 0
    for name in _path(file):
        node = trie.child(node, name)
    below = trie.child(node, b"below")
    trie.flags[node] |= NEED
    trie.flags[below] |= NEED
    looked = opened(save(namespace, tmp_path / "old"), tmp_path / "work", trie).looked
    assert looked.ids[node] == file.id
    assert looked.ids[below] == -1
    assert np.count_nonzero(looked.ids == file.id) == 1
