"""A merge of no edits copies an image: plain and compressed, with and without sub-sections."""

from pathlib import Path

import pytest

from namenode_sim.image.codecs import LZ4_CODEC, ZLIB_CODEC
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image
from spark.engine.outcome import InlineEngine
from spark.image.opened import open_image
from tests import TESTDATA
from tests.namenode_sim.namespace.dump import dump_tree
from tests.needs import FILES_OF_HADOOP
from tests.spark.merge import image_world
from tests.worlds.files import save


@pytest.mark.parametrize("parts", [0, 5])
@pytest.mark.parametrize("codec", ["", ZLIB_CODEC, LZ4_CODEC])
def test_no_edits_copy_the_image(tmp_path: Path, codec: str, parts: int) -> None:
    path = save(image_world.grown(1, 500), tmp_path / "old", codec=codec, parts=parts)
    found = image_world.opened(path, tmp_path / "work")
    assert len(found.index.inodes) > 8, "there are boundaries to get wrong"
    assert len(found.index.directories) > 1
    out, written = image_world.merged(found, image_world.nothing_changes(found), tmp_path / "new")
    assert image_world.sections(out) == image_world.sections(path)
    assert written.inodes == 501
    assert list(dump_tree(load_image(out).tree.root)) == list(dump_tree(load_image(path).tree.root))
    ours, theirs = image_world.summary(out), image_world.summary(path)
    assert (ours.layout, ours.codec) == (theirs.layout, theirs.codec)
    subs = [section for section in ours.sections if section.name == "INODE_SUB"]
    assert len(subs) == (len(found.index.inodes) if parts else 0)
    if not codec and not parts:
        assert out.read_bytes() == path.read_bytes()


def test_the_header_is_in_the_first_sub_section_of_each_part_list(tmp_path: Path) -> None:
    path = save(image_world.grown(2, 300), tmp_path / "old", codec=ZLIB_CODEC, parts=4)
    found = image_world.opened(path, tmp_path / "work")
    out, _ = image_world.merged(found, image_world.nothing_changes(found), tmp_path / "new")
    for name in ("INODE", "INODE_DIR"):
        parts = image_world.summary(out).parts(name)  # raises unless they are together the section
        assert len(parts) > 1
        order = [s.name for s in image_world.summary(out).sections]
        assert order.index(name) > max(i for i, n in enumerate(order) if n == name + "_SUB")


def test_fields_that_we_do_not_know_stay(tmp_path: Path) -> None:
    namespace = image_world.grown(3, 50)
    number = next(n for n in namespace.tree.inodes if n != 16385)
    namespace.unknown_fields["SUMMARY", ""] = b"\x9a\x06\x03new"
    namespace.unknown_fields["INODE", number] = (
        pb.INode(type=pb.INode.FILE, id=number).SerializeToString() + b"\x9a\x06\x03new"
    )
    path = save(namespace, tmp_path / "old")
    found = image_world.opened(path, tmp_path / "work")
    out, _ = image_world.merged(found, image_world.nothing_changes(found), tmp_path / "new")
    assert out.read_bytes() == path.read_bytes()
    assert out.read_bytes().count(b"\x9a\x06\x03new") == 2


@pytest.mark.parametrize("size", [None, 300])
@pytest.mark.parametrize(
    "name",
    [
        "fsimage/fsi_small_h3_2.img",
        "fsimage/fsimage_0000000000000061740",
        "name-dir/fsimage_0000000000000000000",
        "name-dir/fsimage_0000000000000000026",
    ],
)
def test_images_of_hadoop_come_out_byte_for_byte(
    tmp_path: Path, name: str, size: int | None
) -> None:
    path = TESTDATA / name
    if not path.exists():
        FILES_OF_HADOOP.skip(f"{path} is not there")
    found = image_world.opened(path, tmp_path / "work", size=size or 10**7)
    out, _ = image_world.merged(found, image_world.nothing_changes(found), tmp_path / "new")
    assert image_world.sections(out) == image_world.sections(path)
    if not image_world.summary(path).codec:
        # Behind the last section Hadoop leaves nothing, so that even the summary is the same.
        assert out.read_bytes() == path.read_bytes()


def test_parts_are_gone_when_they_are_in_the_image(tmp_path: Path) -> None:
    path = save(image_world.grown(4, 400), tmp_path / "old", codec=ZLIB_CODEC)
    found = image_world.opened(path, tmp_path / "work")
    image_world.merged(found, image_world.nothing_changes(found), tmp_path / "new", InlineEngine())
    assert not [entry for entry in (tmp_path / "work").iterdir() if entry.name.startswith("part-")]


def test_a_broken_inode_is_told_with_file_and_place(tmp_path: Path) -> None:
    path = save(image_world.grown(5, 400), tmp_path / "old")
    section = image_world.summary(path).find("INODE")
    assert section is not None
    data = bytearray(path.read_bytes())
    middle = section.offset + section.length // 2
    data[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(ImageError, match=rf"{path}: section INODE, byte \d+ of the file") as told:
        image_world.opened(path, tmp_path / "work")
    assert abs(int(str(told.value).split("byte ")[1].split()[0]) - middle) < 400


def test_a_missing_inode_is_told(tmp_path: Path) -> None:
    path = save(image_world.grown(6, 400), tmp_path / "old")
    at = image_world.opened(path, tmp_path / "work").index.image.inodes[0].offset
    data = bytearray(path.read_bytes())
    length = data[at]
    filler = b"\x08\x01\x10\x00\x1a"  # the first inode and the second become one
    data[at] = length + data[at + 1 + length] + 1
    assert data[at] < 0x80
    assert filler
    path.write_bytes(data)
    with pytest.raises(ImageError, match="says that it holds 401 inodes, but 400 are"):
        image_world.opened(path, tmp_path / "work")


def test_broken_compression_is_told(tmp_path: Path) -> None:
    path = save(image_world.grown(7, 400), tmp_path / "old", codec=ZLIB_CODEC)
    section = image_world.summary(path).find("INODE_DIR")
    assert section is not None
    data = bytearray(path.read_bytes())
    data[section.offset + 20] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ImageError, match=rf"{path}: section INODE_DIR at byte {section.offset}"):
        open_image(InlineEngine(), path, tmp_path, size=image_world.RANGE_BYTES)
