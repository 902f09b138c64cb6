"""The soak's comparison sees each difference that a wrong merge could make."""

from collections.abc import Callable
from pathlib import Path

import pytest

from journal.model import NamespaceInfo
from namenode_sim.edits.attributes import delimited
from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.files import digest_path, write_digest
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace
from tests.campaigns.soak.checkpoint_compare import problems
from tests.worlds.checkpoint import NAMESPACE_ID, make_world

SEED = 132
Sections = dict[str, list[bytes]]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a plain image of hundreds of inodes without sub-sections."""
    world = make_world(SEED, tmp_path_factory.mktemp("world"))
    assert (world.codec, world.parts, world.layout, world.snapshots.name) == ("", 0, -67, "NONE")
    return world.image


def taken_apart(image: Path) -> Sections:
    with image.open("rb") as file:
        sections = ImageSections(file)
        found: Sections = {}
        for section in sections.summary.sections:
            with sections.open(section.name) as messages:
                found[section.name] = list(messages)
    return found


def put_together(found: Sections, out: Path, layout: int = -67) -> Path:
    with out.open("wb") as file:
        writer = ImageWriter(file, layout=layout)
        for name, messages in found.items():
            with writer.section(name) as write:
                write(b"".join(map(delimited, messages)))
        digest = writer.finish()
    write_digest(out, digest)
    return out


def told(image: Path, other: Path, *, divided: bool = True) -> str:
    return "\n".join(problems(image, image, other, divided=divided))


def test_an_image_is_equal_to_itself_taken_apart_and_put_together(
    image: Path, tmp_path: Path
) -> None:
    assert told(image, put_together(taken_apart(image), tmp_path / image.name)) == ""
    assert told(image, put_together(taken_apart(image), tmp_path / "other")) != ""


def a_child_out_of_place(found: Sections) -> None:
    entries = [pb.DirEntry.FromString(raw) for raw in found["INODE_DIR"]]
    largest = max(entries, key=lambda entry: len(entry.children))
    assert len(largest.children) > 2
    children = list(largest.children)
    children[0], children[1] = children[1], children[0]
    del largest.children[:]
    largest.children.extend(children)
    found["INODE_DIR"] = [entry.SerializeToString() for entry in entries]


def an_empty_entry(found: Sections) -> None:
    directories = {pb.INode.FromString(raw).id for raw in found["INODE"][1:]
                   if pb.INode.FromString(raw).type == pb.INode.DIRECTORY}  # fmt: skip
    directories -= {pb.DirEntry.FromString(raw).parent for raw in found["INODE_DIR"]}
    found["INODE_DIR"].append(pb.DirEntry(parent=min(directories)).SerializeToString())


def a_path_of_before_a_rename(found: Sections) -> None:
    entry = pb.FileUnderConstructionEntry.FromString(found["FILES_UNDERCONSTRUCTION"][0])
    entry.fullPath += "-old"
    found["FILES_UNDERCONSTRUCTION"][0] = entry.SerializeToString()


def a_wrong_last_inode(found: Sections) -> None:
    header = pb.INodeSection.FromString(found["INODE"][0])
    header.lastInodeId -= 1
    found["INODE"][0] = header.SerializeToString()


def an_inode_that_is_nowhere(found: Sections) -> None:
    node = pb.INode.FromString(found["INODE"][5])
    node.id += 10**6
    found["INODE"].append(node.SerializeToString())
    header = pb.INodeSection.FromString(found["INODE"][0])
    header.numInodes += 1
    found["INODE"][0] = header.SerializeToString()


PLANTED: dict[Callable[[Sections], None], str] = {
    a_child_out_of_place: "are not in order",
    an_empty_entry: "has an empty entry",
    a_path_of_before_a_rename: "files under construction",
    a_wrong_last_inode: "its header says",
    an_inode_that_is_nowhere: "content: inodes",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_difference_is_seen(
    image: Path, tmp_path: Path, plant: Callable[[Sections], None]
) -> None:
    found = taken_apart(image)
    plant(found)
    assert PLANTED[plant] in told(image, put_together(found, tmp_path / image.name))


def test_what_should_have_been_copied_must_be_as_it_was(image: Path, tmp_path: Path) -> None:
    found = taken_apart(image)
    node = pb.INode.FromString(found["INODE"][2])
    fields = node.SerializeToString()
    # The type at the end instead of the beginning: it says the same in other bytes.
    found["INODE"][2] = fields[2:] + fields[:2]
    other = put_together(found, tmp_path / image.name)
    assert "though nothing in it changed" in told(image, other)
    assert told(image, other, divided=False) == ""
    again = tmp_path / "again"
    again.mkdir()
    namespace = load_image(image)
    info = NamespaceInfo(-67, NAMESPACE_ID, "", 0)
    save_image(namespace, again / image.name, info, codec=ZLIB_CODEC, sub_sections=3)
    text = told(image, again / image.name)
    assert "its codec is" in text
    assert "has parts, which the old image had not" in text
    assert told(image, again / image.name, divided=False) == ""


def a_lost_mtime(namespace: Namespace) -> str:
    root = namespace.tree.root
    root.mtime += 1
    return "content: / mtime"


def a_lost_child(namespace: Namespace) -> str:
    files = (node for node in namespace.tree.inodes.values() if isinstance(node, INodeFile))
    file = next(node for node in files if node.under_construction is None)
    namespace.tree.unlink(file)
    namespace.tree.forget(file)
    return "is only in the first"


def another_parent(namespace: Namespace) -> str:
    nodes = list(namespace.tree.inodes.values())
    file = next(
        n for n in nodes if isinstance(n, INodeFile) and n.parent is not namespace.tree.root
    )
    namespace.tree.unlink(file)
    file.name = b"moved"
    namespace.tree.link(namespace.tree.root, file)
    return "/moved is only in the second"


def a_counter(namespace: Namespace) -> str:
    namespace.counters.generation_stamp_v2 += 1
    return "counters"


def a_key(namespace: Namespace) -> str:
    namespace.secrets.current_key_id += 1
    return "current_key_id"


@pytest.mark.parametrize(
    "change",
    [a_lost_mtime, a_lost_child, another_parent, a_counter, a_key],
    ids=lambda change: change.__name__,
)
def test_another_namespace_is_seen(
    image: Path, tmp_path: Path, change: Callable[[Namespace], str]
) -> None:
    namespace = load_image(image)
    expected = change(namespace)
    other = tmp_path / image.name
    save_image(namespace, other, NamespaceInfo(-67, NAMESPACE_ID, "", 0))
    assert expected in told(image, other, divided=False)


def test_a_gap_between_sections_and_a_wrong_digest_are_seen(image: Path, tmp_path: Path) -> None:
    other = tmp_path / image.name
    found = taken_apart(image)
    with other.open("wb") as file:
        writer = ImageWriter(file, layout=-67)
        for name, messages in found.items():
            with writer.section(name) as write:
                write(b"".join(map(delimited, messages)))
            writer.put(b"\0" if name == "INODE" else b"")
        digest = writer.finish()
    write_digest(other, digest)
    assert "section INODE_DIR begins at" in told(image, other)
    digest_path(other).write_text(digest_path(image).read_text())
    assert "MD5 digest" in told(image, other)
