"""Decoding inodes and children by columns says what the reader of whole namespaces says."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from journal.model import NamespaceInfo
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import XAttrNamespace
from namenode_sim.image.codecs import BZIP2_CODEC, ZLIB_CODEC
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import read_namespace
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.strings import Strings
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace
from spark.tables import images
from spark.tables.arrow import InodeBatches
from spark.tables.cursors import SLACK_BYTES, Ints
from spark.tables.entry_columns import decode_entries
from spark.tables.images import Piece, open_tables, read_piece, split
from spark.tables.inode_columns import decode_blocks, decode_inodes
from spark.tables.message_stream import BadMessage, Chunk, chunks_of
from tests.namenode_sim.image.test_image_random import namespaces
from tests.needs import FILES_OF_HADOOP
from tests.spark.tables.tables_world import Row, inode_row, random_namespace, real_images
from tests.worlds.files import save

STRINGS = {1: "hdfs"}


def framed(*messages: bytes) -> Chunk:
    (chunk,) = chunks_of(iter([b"".join(map(delimited, messages))]), limit=1 << 20)
    return chunk


def check_image(path: Path) -> None:
    """Check every column of every inode, and every child of every directory."""
    with path.open("rb") as file:
        loaded = read_namespace(file)
    image = open_tables(str(path))
    assert (image.txid, image.inodes) == (loaded.last_applied, len(loaded.tree.inodes))
    batches = InodeBatches(image.strings)
    rows: list[Row] = []
    blocks: list[tuple[int, ...]] = []
    for piece in image.inode_pieces:
        for batch in read_piece(piece, batches.batch):
            rows += batch.to_pylist()
        for found in read_piece(piece, lambda c: decode_blocks(c.data, c.starts, c.ends)):
            columns = (found.inode_id, found.number, found.block_id, found.length,
                       found.generation_stamp)  # fmt: skip
            blocks += zip(*(column.tolist() for column in columns), strict=True)
    inodes = list(loaded.tree.inodes.values())
    assert rows == [inode_row(node) for node in inodes]
    assert blocks == [
        (node.id, number, block.block_id, block.num_bytes, block.generation_stamp)
        for node in inodes
        if isinstance(node, INodeFile)
        for number, block in enumerate(node.blocks)
    ]
    assert sorted(edges_of(path)) == sorted(
        (node.parent.id, node.id)
        for node in inodes
        if node.parent is not None and node.parent.children.get(node.name) is node
    )


def edges_of(path: Path) -> Iterator[tuple[int, int]]:
    image = open_tables(str(path))
    for piece in image.entry_pieces:
        for found in read_piece(piece, lambda c: decode_entries(c.data, c.starts, c.ends)):
            found.child[found.by_reference] = image.references[found.child[found.by_reference]]
            yield from zip(found.parent.tolist(), found.child.tolist(), strict=True)


@settings(
    max_examples=40,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
)
@given(
    namespaces(),
    st.sampled_from(["", "", ZLIB_CODEC, BZIP2_CODEC]),
    st.sampled_from([-64, -65, -67]),
    st.sampled_from([0, 3]),
    st.sampled_from([7, 100, 1 << 20]),
)
def test_any_namespace(
    namespace: Namespace, codec: str, layout: int, parts: int, chunk_bytes: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "CHUNK_BYTES", chunk_bytes)
        path = Path(folder) / "fsimage_1"
        info = NamespaceInfo(layout, 7, "CID-test", 0, "BP-1-127.0.0.1-2")
        save_image(namespace, path, info, codec=codec, sub_sections=parts)
        check_image(path)


def test_real_images() -> None:
    found = real_images()
    if not found:
        FILES_OF_HADOOP.skip()
    for path in found:
        check_image(path)


def a_file(blocks: int = 2, xattrs: int = 1) -> pb.INode:
    inode = pb.INode(type=pb.INode.FILE, id=2**34, name="é".encode())
    file = inode.file
    file.replication, file.modificationTime, file.accessTime = 3, 2**41, 2**41 + 1
    file.preferredBlockSize, file.permission = 2**27, 1 << 40 | 1 << 16 | 0o644
    for number in range(blocks):
        file.blocks.add(blockId=2**64 - 16 * (number + 1), genStamp=1000 + number, numBytes=number)
    file.fileUC.clientName = "x" * 300
    file.acl.entries.append(77)
    for number in range(xattrs):
        file.xAttrs.xAttrs.add(name=64, value=b"v" * number)
    file.storagePolicyID, file.blockType, file.erasureCodingPolicyID = 12, 1, 3
    return inode


def columns_of(chunk: Chunk) -> list[dict[str, object]]:
    found = decode_inodes(chunk.data, chunk.starts, chunk.ends)
    rows = []
    for row in range(len(found)):
        loose = found.loose_xattrs.get(row)
        plain = chunk.data[found.xattrs_at[row] : found.xattrs_end[row]]
        values: dict[str, object] = {
            "name": chunk.data[found.name_at[row] : found.name_end[row]],
            "raw xattrs": plain if loose is None else loose,
        }
        for name in ("id", "type", "permission", "mtime", "atime", "replication", "length",
                     "preferred_block_size", "blocks", "under_construction", "acl", "xattrs",
                     "storage_policy_id", "ec_policy_id", "ns_quota", "ds_quota"):  # fmt: skip
            values[name] = getattr(found, name)[row].item()
        rows.append(values)
    return rows


UNKNOWN = delimited(b"of a newer Hadoop")
UNUSUAL = {
    "a field behind all others": lambda raw: raw + b"\x7a" + UNKNOWN,
    "a field before all others": lambda raw: b"\x7a" + UNKNOWN + raw,
    "the type twice": lambda raw: b"\x08\x02" + raw,
    "the id in more bytes than it needs": lambda raw: raw + b"\x10\x81\x80\x80\x80\x80\x01",
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_unusual_messages_are_read_by_protobuf(case: str) -> None:
    usual = a_file().SerializeToString()
    odd = UNUSUAL[case](usual)
    parsed = pb.INode.FromString(odd)
    parsed.DiscardUnknownFields()
    plain = columns_of(framed(usual, parsed.SerializeToString(), usual))
    assert columns_of(framed(usual, odd, usual)) == plain


@pytest.mark.parametrize(("blocks", "xattrs"), [(0, 0), (48, 16), (49, 1), (200, 17), (5000, 40)])
def test_many_blocks_and_attributes(blocks: int, xattrs: int) -> None:
    inode = a_file(blocks, xattrs)
    chunk = framed(a_file().SerializeToString(), inode.SerializeToString())
    row = columns_of(chunk)[1]
    assert (row["blocks"], row["xattrs"]) == (blocks, xattrs)
    assert row["length"] == sum(range(blocks))
    assert row["raw xattrs"] == (inode.file.xAttrs.SerializeToString() if xattrs else b"")
    found = decode_blocks(chunk.data, chunk.starts, chunk.ends)
    assert found.number.tolist() == [0, 1, *range(blocks)]
    assert found.block_id.tolist()[2:] == [-16 * (number + 1) for number in range(blocks)]


def holding(body: bytes) -> bytes:
    return b"\x08\x01\x10\x07\x1a\x01n\x22" + delimited(body)


def test_a_malformed_message_is_told_by_its_place() -> None:
    good = a_file().SerializeToString()
    assert columns_of(framed(holding(b"\x08\x03")))[0]["replication"] == 3
    claims = (b"\x08\x03\x3a\x7fa", b"\x08\x80", b"\x29\x01", b"\x32\x09\x08\x01\x10\x01")
    for bad in (b"", b"\x08\x01", good[:-1], b"\x08\x04" + good[2:], b"\xff" * 40,
                *map(holding, claims)):  # fmt: skip
        chunk = framed(good, bad)
        with pytest.raises(BadMessage) as caught:
            decode_inodes(chunk.data, chunk.starts, chunk.ends)
        assert caught.value.at == chunk.starts[1]


POLICY = XAttrNamespace.SYSTEM << 30 | 9 << 6
"""hsm.block.storage.policy.id, where the string table has it as 9."""


@pytest.mark.parametrize("odd", [b"", b"\x7a" + delimited(b"of a newer Hadoop")])
def test_large_serials_and_a_directorys_policy(odd: bytes) -> None:
    inode = pb.INode(type=pb.INode.DIRECTORY, id=7, name=b"d")
    inode.directory.permission = 2**24 - 1 << 40 | 70000 << 16 | 0o1777
    inode.directory.xAttrs.xAttrs.add(name=64, value=b"x")
    inode.directory.xAttrs.xAttrs.add(name=POLICY, value=b"\x0c")
    names = {1: "x", 9: "hsm.block.storage.policy.id"}
    strings = Strings(users={2**24 - 1: "far"}, groups={70000: "out"}, xattrs=names)
    (row,) = InodeBatches(strings).batch(framed(inode.SerializeToString() + odd)).to_pylist()
    found = [row[name] for name in ("user", "group", "mode", "storage_policy_id", "xattrs")]
    assert found == ["far", "out", 0o1777, 12, 2]


def test_a_user_that_the_string_table_lacks() -> None:
    chunk = framed(a_file().SerializeToString())
    for users, groups in (({}, STRINGS), (STRINGS, {}), ({2: "b"}, STRINGS)):
        strings = Strings(users=dict(users), groups=dict(groups))
        with pytest.raises(BadMessage, match="1 is not in the string table"):
            InodeBatches(strings).batch(chunk)


@pytest.mark.parametrize("size", [1, 3, 64, 1 << 20])
def test_messages_of_any_length_in_pieces_of_any_size(size: int) -> None:
    messages = [bytes([at % 251]) * at for at in (0, 1, 127, 128, 129, 16383, 16384, 70000, 5, 0)]
    stream = b"".join(map(delimited, messages))
    pieces: Iterator[bytes] = (stream[at : at + size] for at in range(0, len(stream), size))
    if size == 1:
        pieces = iter([stream[:20000], *(stream[at : at + 1] for at in range(20000, 20010)),
                       stream[20010:]])  # fmt: skip
    found: list[bytes] = []
    for chunk in chunks_of(pieces, limit=1 << 17):
        assert len(chunk.data) >= int(chunk.ends[-1]) + SLACK_BYTES
        found += (
            chunk.data[a:b] for a, b in zip(chunk.starts.tolist(), chunk.ends.tolist(), strict=True)
        )
    assert found == messages


def test_a_stream_that_is_no_run_of_messages() -> None:
    for stream, at in ((b"\x02ab\x05a", 3), (b"\x02ab\xff", 3), (b"\x01a" + b"\xff" * 9, 2),
                       (b"\x01a\xff\xff\xff\x7f" + b"x" * 9, 2)):  # fmt: skip
        with pytest.raises(BadMessage) as caught:
            list(chunks_of(iter([stream]), limit=1000))
        assert caught.value.at == at


def entries(chunk: Chunk) -> list[tuple[int, int]]:
    found = decode_entries(chunk.data, chunk.starts, chunk.ends)
    moved = set(found.by_reference.tolist())
    return [
        (parent, -child - 1 if row in moved else child)
        for row, (parent, child) in enumerate(
            zip(found.parent.tolist(), found.child.tolist(), strict=True)
        )
    ]


def test_children_of_all_sizes_and_moved_ones() -> None:
    random = np.random.default_rng(1)
    ids: Ints = random.integers(1, 2**50, 5000) >> random.integers(0, 44, 5000)
    directories = [(16385, ids[:3].tolist(), []), (2**40, ids[3:].tolist(), [0, 300]),
                   (7, [], [2**31])]  # fmt: skip
    messages = [pb.DirEntry(parent=parent, children=plain, refChildren=moved)
                for parent, plain, moved in directories]  # fmt: skip
    expected = sorted(
        (parent, child)
        for parent, plain, moved in directories
        for child in [*plain, *(-number - 1 for number in moved)]
    )
    usual = framed(*(message.SerializeToString() for message in messages))
    assert sorted(entries(usual)) == expected
    odd = [message.SerializeToString() + b"\x7a" + UNKNOWN for message in messages]
    assert sorted(entries(framed(*odd))) == expected
    large = pb.DirEntry(parent=2**40, children=[5, 2**60, 6]).SerializeToString()
    assert entries(framed(large)) == [(2**40, 5), (2**40, 2**60), (2**40, 6)]
    assert (16385, 5) in entries(framed(messages[0].SerializeToString() + b"\x10\x05"))
    with pytest.raises(BadMessage):
        entries(framed(b"\x08\x07\x12\x02\x01\x80"))


@pytest.mark.parametrize("size", [1, 20, 70])
def test_an_image_in_pieces_is_the_image(tmp_path: Path, size: int) -> None:
    image = open_tables(str(save(random_namespace(31, 800)[0], tmp_path, parts=2)))
    for whole in (image.inode_pieces, image.entry_pieces):
        pieces = list(split(whole, size))
        assert len(pieces) > len(whole)
        messages = [piece_messages(part) for part in (whole, pieces)]
        assert messages[0] == messages[1]
        moved = replace(pieces[1], offset=pieces[1].offset + 1, length=pieces[1].length - 1)
        before = replace(pieces[0], length=pieces[0].length + 1)
        with pytest.raises(ImageError, match="byte"):
            piece_messages([before, moved])


def piece_messages(pieces: Sequence[Piece]) -> list[bytes]:
    def messages(chunk: Chunk) -> list[bytes]:
        places = zip(chunk.starts.tolist(), chunk.ends.tolist(), strict=True)
        return [chunk.data[start:end] for start, end in places]

    return [one for piece in pieces for found in read_piece(piece, messages) for one in found]


def test_an_error_names_file_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "fsimage_1"
    info = NamespaceInfo(-65, 7, "CID-test", 0, "BP-1-127.0.0.1-2")
    save_image(Namespace.empty("hdfs"), path, info)
    raw = bytearray(path.read_bytes())
    with path.open("rb") as file:
        section = ImageSections(file).summary.find("INODE")
    assert section is not None
    header = raw[section.offset]
    raw[section.offset + 1 + header] += 9  # the length of the first inode
    path.write_bytes(raw)
    image = open_tables(str(path))
    with pytest.raises(ImageError, match=f"fsimage_1.* byte {section.offset + 1 + header} of"):
        list(read_piece(image.inode_pieces[0], len))
