"""The images of the bench are such as a NameNode writes: whole, in order, and of the right make."""

from pathlib import Path

import pytest

from journal.model import NamespaceInfo
from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.container import read_summary
from namenode_sim.image.inodes_writer import inode_message
from namenode_sim.image.reader import load_image
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.inode import INodeDirectory, INodeFile, full_path, subtree
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.large.images import LAYOUT, path_of, write_big_image
from tests.worlds.large.inodes import Strings
from tests.worlds.large.shape import WINDOW, Shape

SHAPE = Shape(3 * WINDOW + 1000)


def section(image: Path, name: str) -> list[bytes]:
    with image.open("rb") as file, ImageSections(file).open(name) as messages:
        return list(messages)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_big_image(tmp_path_factory.mktemp("plain"), SHAPE)


def test_it_loads_and_has_what_a_namespace_has(image: Path) -> None:
    tree = load_image(image).tree
    assert len(tree.inodes) == len(list(subtree(tree.root))) == SHAPE.inodes
    directories = [node for node in tree.inodes.values() if isinstance(node, INodeDirectory)]
    files = [node for node in tree.inodes.values() if isinstance(node, INodeFile)]
    assert SHAPE.inodes * 0.099 < len(directories) < SHAPE.inodes * 0.101
    assert SHAPE.inodes * 0.02 < max(len(each.children) for each in directories) < 0.05 * len(files)
    assert max(full_path(each).count("/") for each in directories) == 16
    assert tree.leases
    assert {len(file.blocks) for file in files} == {0, 1, 2, 3}
    assert any(node.acl for node in files)
    assert any(node.xattrs for node in directories)
    assert any(not node.name.isascii() for node in files)
    assert sum(1 for node in files if node.name == b"_SUCCESS") > 100
    assert 75 < image.stat().st_size / SHAPE.inodes < 95


def test_its_messages_are_those_that_our_writer_would_write(image: Path, tmp_path: Path) -> None:
    namespace = load_image(image)
    again = tmp_path / image.name
    save_image(namespace, again, NamespaceInfo(LAYOUT, 4711, "", 0))
    for name in ("INODE_DIR", "FILES_UNDERCONSTRUCTION", "NS_INFO", "ERASURE_CODING", "SNAPSHOT"):
        assert sorted(section(image, name)) == sorted(section(again, name)), name
    numbers = Strings(LAYOUT).numbers
    header, *found = section(image, "INODE")
    assert header == section(again, "INODE")[0]
    expected = [
        inode_message(node, numbers, LAYOUT).SerializeToString()
        for node in namespace.tree.inodes.values()
    ]
    assert found == expected


def test_sub_sections_and_compression_change_nothing_else(image: Path, tmp_path: Path) -> None:
    plain = load_image(image)
    for parts, codec in ((3, ""), (3, ZLIB_CODEC), (0, ZLIB_CODEC)):
        other = write_big_image(tmp_path, SHAPE, parts=parts, codec=codec)
        assert differences(plain, load_image(other)) == []
        with other.open("rb") as file:
            summary = read_summary(file)
        assert summary.codec == codec
        for name in ("INODE", "INODE_DIR"):
            assert (2 < len(summary.parts(name)) < 6) == (parts > 0), name


def test_a_path_is_known_without_the_namespace(image: Path) -> None:
    namespace = load_image(image)
    for position in (1, 17, 4097, SHAPE.inodes - 1):
        path = path_of(SHAPE, position)
        node = namespace.tree.find(path)
        assert node is not None
        assert full_path(node) == path


def test_the_same_seed_gives_the_same_image(image: Path, tmp_path: Path) -> None:
    first = image.read_bytes()
    assert write_big_image(tmp_path, Shape(SHAPE.inodes, seed=2)).read_bytes() != first
    assert write_big_image(tmp_path, Shape(SHAPE.inodes)).read_bytes() == first
