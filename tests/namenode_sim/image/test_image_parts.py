"""Codecs, sub-sections and unknown fields: what a foreign image may have on top."""

import io

import pytest
from google.protobuf.message import Message

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import Block
from namenode_sim.image import codecs as image_codecs
from namenode_sim.image.container import read_summary, section_messages
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import read_namespace
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import PERMISSION, rich_namespace, saved
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info

PACKAGES = {
    image_codecs.LZ4_CODEC: "cramjam",
    image_codecs.SNAPPY_CODEC: "cramjam",
    image_codecs.ZSTD_CODEC: "zstandard",
}
CODECS = ["", image_codecs.ZLIB_CODEC, image_codecs.GZIP_CODEC, image_codecs.BZIP2_CODEC, *PACKAGES]


def _divided(namespace: Namespace, codec: str, sub_sections: int) -> bytes:
    file = io.BytesIO()
    write_namespace(namespace, file, info(-66), codec=codec, sub_sections=sub_sections)
    return file.getvalue()


def _big() -> Namespace:
    namespace = rich_namespace()
    for number in range(300):
        op = ops.Mkdir(20000 + number, f"/d/n{number % 7}-{number}", 1, 1, PERMISSION)
        namespace.apply(TxId(namespace.last_applied + 1), op)
    return namespace


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("sub_sections", [0, 1, 4])
def test_every_codec_and_division_loads_back_equal(codec: str, sub_sections: int) -> None:
    namespace = _big()
    data = _divided(namespace, codec, sub_sections)
    assert differences(namespace, read_namespace(io.BytesIO(data))) == []
    summary = read_summary(io.BytesIO(data))
    parts = summary.parts("INODE")
    assert len(parts) == max(1, sub_sections)
    assert {part.name for part in parts} == {"INODE_SUB" if sub_sections else "INODE"}
    names = [section.name for section in summary.sections]
    if sub_sections:
        assert names.index("INODE_SUB") < names.index("INODE")
        heads = [next(section_messages(io.BytesIO(data), part, codec)) for part in parts]
        assert pb.INodeSection.FromString(heads[0]).numInodes == len(namespace.tree.inodes)
        assert all(pb.INode.FromString(head).id for head in heads[1:])


@pytest.mark.parametrize("codec", CODECS)
def test_a_serial_reader_may_take_the_whole_section(codec: str) -> None:
    """Hadoop without parallel loading reads the parent, a row of compressed streams."""
    data = _divided(_big(), codec, 4)
    summary = read_summary(io.BytesIO(data))
    whole = summary.find("INODE")
    assert whole is not None
    by_parts = [
        raw
        for part in summary.parts("INODE")
        for raw in section_messages(io.BytesIO(data), part, codec)
    ]
    assert list(section_messages(io.BytesIO(data), whole, codec)) == by_parts


def test_sub_sections_that_are_not_the_section_are_refused() -> None:
    data = _divided(_big(), "", 4)
    first = read_summary(io.BytesIO(data)).parts("INODE")[0]
    entry = pb.FileSummary.Section(name=first.name, length=first.length, offset=first.offset)
    raw = delimited(entry.SerializeToString())
    entry.length -= 1
    damaged = data.replace(raw, delimited(entry.SerializeToString()))
    assert damaged != data
    with pytest.raises(ImageError, match="INODE_SUB are together not its section INODE"):
        read_namespace(io.BytesIO(damaged))


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec])
def test_a_compressed_stream_cut_anywhere_is_refused(codec: str) -> None:
    plain = bytes(range(256)) * 1500
    stream = image_codecs.compressor(codec)
    data = stream.compress(plain) + stream.flush()
    assert b"".join(image_codecs.decompressed(iter([data[:7], data[7:]]), codec)) == plain
    for size in range(1, len(data), max(1, len(data) // 50)):
        with pytest.raises(ImageError):
            assert b"".join(image_codecs.decompressed(iter([data[:size]]), codec)) != plain


@pytest.mark.parametrize(("codec", "package"), PACKAGES.items())
def test_a_missing_package_is_named_with_its_extra(
    codec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImageError, match=rf"package {package}: install nnha\[codecs\]"):
        saved(rich_namespace(), codec=codec)


NEW_FIELD = b"\xfa\x3e\x03new"
"""Field 1007, which no Hadoop has: bytes."""


def _with_new_fields(image: bytes) -> bytes:
    """Return the image with an unknown field in every message that is rewritten on saving."""
    kinds: dict[str, type[Message]] = {
        "NS_INFO": pb.NameSystemSection,
        "INODE": pb.INode,
        "INODE_DIR": pb.DirEntry,
        "FILES_UNDERCONSTRUCTION": pb.FileUnderConstructionEntry,
        "ERASURE_CODING": pb.ErasureCodingSection,
    }
    out = bytearray(b"HDFSIMG1")
    sections = ImageSections(io.BytesIO(image))
    summary = pb.FileSummary.FromString(sections.summary.raw + NEW_FIELD)
    for entry in summary.sections:
        with sections.open(entry.name) as found:
            headless = entry.name != "INODE"
            raws = [
                _renewed(raw, kinds.get(entry.name) if number or headless else None)
                for number, raw in enumerate(found)
            ]
        entry.offset = len(out)
        out += b"".join(delimited(raw) for raw in raws)
        entry.length = len(out) - entry.offset
    end = delimited(summary.SerializeToString())
    return bytes(out + end + len(end).to_bytes(4, "big"))


def _renewed(raw: bytes, kind: type[Message] | None) -> bytes:
    if kind is None:
        return raw + NEW_FIELD
    message = kind.FromString(raw)
    _renew(message)
    return message.SerializeToString()


def _renew(message: Message) -> None:
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                _renew(inner)
    message.MergeFromString(NEW_FIELD)


@pytest.mark.parametrize("sub_sections", [0, 3])
def test_unknown_fields_survive_loading_and_saving(sub_sections: int) -> None:
    foreign = _with_new_fields(saved(_big(), -66))
    loaded = read_namespace(io.BytesIO(foreign))
    assert differences(loaded, _big()) == []
    again = _divided(loaded, "", sub_sections)
    # All but the entries of the string table (written anew with new ids) and the summary's own.
    lost = foreign.count(NEW_FIELD) - again.count(NEW_FIELD)
    with_strings = ImageSections(io.BytesIO(foreign))
    with with_strings.open("STRING_TABLE") as section:
        entries = len(list(section)) - 1
    assert lost == entries


def test_unknown_fields_of_a_part_that_changed_go_and_the_rest_stays() -> None:
    loaded = read_namespace(io.BytesIO(_with_new_fields(saved(rich_namespace(), -66))))
    file = loaded.tree.file("/d/closed")
    before = saved(loaded, -66).count(NEW_FIELD)
    file.blocks = (*file.blocks[:-1], Block(77, 7, 7))
    assert saved(loaded, -66).count(NEW_FIELD) == before - 1
    loaded.apply(TxId(loaded.last_applied + 1), ops.Delete("/d/closed", 9))
    assert saved(loaded, -66).count(NEW_FIELD) == before - 5


def test_an_image_without_unknown_fields_keeps_nothing() -> None:
    assert read_namespace(io.BytesIO(saved(_big()))).unknown_fields == {}
