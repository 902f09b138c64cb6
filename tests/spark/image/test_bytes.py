"""Bytes of INODE and INODE_DIR seen by numpy: varints, index, heads, entries, names, ids."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namenode_sim.edits.attributes import delimited
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.image import directories
from spark.image.directories import entries
from spark.image.ids import IdSet
from spark.image.inodes import BadMessage, heads
from spark.image.messages import BadPrefix, Chunk, chunks
from spark.image.names import HashSet, hashes_of, name_hashes
from spark.image.varints import packed_numbers, window_of

KINDS = {1: pb.INode.FILE, 2: pb.INode.DIRECTORY, 3: pb.INode.SYMLINK}


def inode(number: int, name: bytes, kind: int = 1, *, size: int = 0) -> bytes:
    """Make an INode message without its length, ``size`` bytes longer than need be."""
    message = pb.INode(type=KINDS[kind], id=number, name=name)
    message.file.replication = 3
    message.file.modificationTime = 1_700_000_000_000
    if size:
        message.file.fileUC.clientName = "c" * size
    return message.SerializeToString()


def whole(data: bytes) -> Chunk:
    found = list(chunks(window_of(data), 0, len(data)))
    return Chunk(
        0,
        np.concatenate([chunk.starts for chunk in found]),
        np.concatenate([chunk.ends for chunk in found]),
    )


def encode_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**56 - 1)))
def test_numbers_come_back(numbers: list[int]) -> None:
    assert packed_numbers(b"".join(map(encode_varint, numbers))).tolist() == numbers


@pytest.mark.parametrize("data", [b"\x80", b"\x05\xff", b"\xff" * 8 + b"\x01"])
def test_a_broken_list_of_numbers_is_told(data: bytes) -> None:
    with pytest.raises(ImageError, match="list of"):
        packed_numbers(data)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 127, 128, 129, 16383, 16384, 70_000, 2_100_000]), max_size=9)
)
def test_messages_of_every_length_are_indexed(sizes: list[int]) -> None:
    data = b"".join(delimited(bytes(size)) for size in sizes)
    found = list(chunks(window_of(data), 0, len(data)))
    assert [e - s for c in found for s, e in zip(c.starts, c.ends, strict=True)] == sizes
    assert not found or found[-1].ends[-1] == len(data)


def test_a_length_of_six_bytes_is_told() -> None:
    with pytest.raises(BadPrefix):
        list(chunks(window_of(b"\xff" * 9), 0, 9))


NAMES = [b"", b"a", b"seven77", b"eight888", b"nine99999", b"n" * 127, b"n" * 128, b"x" * 300]


def test_heads_of_inodes_with_all_kinds_of_ids_and_names() -> None:
    ids = [0, 1, 127, 128, 16385, 2**21, 2**35, 2**56 - 1]
    raws = [inode(n, name, kind) for n in ids for name in NAMES for kind in (1, 2, 3)]
    data = b"".join(map(delimited, raws))
    found = heads(window_of(data), whole(data))
    messages = [pb.INode.FromString(raw) for raw in raws]
    assert found.ids.tolist() == [message.id for message in messages]
    assert found.types.tolist() == [message.type for message in messages]
    assert [found.name(row) for row in range(len(raws))] == [m.name for m in messages]
    assert len(found.names.data) > len(data), "the usual heads need no parsing"


def test_a_chunk_with_an_unusual_head_is_parsed() -> None:
    usual = pb.INode.FromString(inode(7, b"seven"))
    turned = b"\x10\x09\x08\x01" + b"\x1a\x04nine" + b"\x9a\x06\x03new"  # an unknown field, too
    data = delimited(usual.SerializeToString()) + delimited(turned)
    found = heads(window_of(data), whole(data))
    assert found.ids.tolist() == [7, 9]
    assert [found.name(0), found.name(1)] == [b"seven", b"nine"]


@pytest.mark.parametrize("raw", [b"\x08\x01", b"\x08\x01\x10" + b"\xff" * 9 + b"\x01", b"\x0f"])
def test_what_is_no_inode_is_told_with_its_place(raw: bytes) -> None:
    first = delimited(inode(7, b"seven"))
    with pytest.raises(BadMessage, match="no INode") as problem:
        heads(window_of(first + delimited(raw)), whole(first + delimited(raw)))
    assert problem.value.position == len(first) + 1


def test_entries_of_directories() -> None:
    rng = random.Random(3)
    messages = [
        pb.DirEntry(
            parent=rng.choice([16385, 2**30, 5]),
            children=[rng.randrange(2**40) for _ in range(count)],
            refChildren=[1, 2] if count % 3 == 0 else [],
        )
        for count in (0, 1, 2, 3, 40, 300, 9000)
    ]
    odd = b"\x08\x07\x10\x08\x10\x09"  # children one by one, not packed
    raws = [message.SerializeToString() for message in messages]
    data = b"".join(map(delimited, [*raws, b"\x08\x05", b"\x08\x06\x12\x01\x09\x12\x01\x0a"]))
    window, chunk = window_of(data), whole(data)
    found = entries(window, chunk)
    assert found.parents.tolist() == [*(m.parent for m in messages), 5, 6]
    for row, message in enumerate(messages):
        span = data[found.child_starts[row] : found.child_ends[row]]
        assert packed_numbers(span).tolist() == list(message.children)
        assert bool(message.refChildren) == (found.child_ends[row] != chunk.ends[row])
    assert found.child_starts[-1] == directories.ODD
    assert directories.parsed(odd, 0).children == [8, 9]


@pytest.mark.parametrize(
    "raw", [b"", b"\x12\x01\x05", b"\x08\x05\x12\x05\x01", b"\x08" + b"\xff" * 9]
)
def test_what_is_no_entry_is_told(raw: bytes) -> None:
    data = delimited(raw)
    with pytest.raises(BadMessage, match="no DirEntry"):
        entries(window_of(data), whole(data))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), unique=True, max_size=30))
def test_names_are_known_by_their_numbers_wherever_they_lie(names: list[bytes]) -> None:
    data = b"some bytes" + b"".join(names)
    lengths = np.array([len(name) for name in names], np.int64)
    starts = np.cumsum(lengths) - lengths + len(b"some bytes")
    if names:
        hashes = name_hashes(window_of(data), starts, lengths)
        assert hashes.tolist() == hashes_of(names).tolist()
        assert len(set(hashes.tolist())) == len(names)
        wanted = HashSet(hashes_of(names[::2]))
        assert wanted.rows_in(hashes).tolist() == list(range(0, len(names), 2))


def test_long_names_that_differ_in_the_middle_only() -> None:
    names = [b"part-00000-%032d.snappy.parquet" % n for n in range(5000)]
    assert len(set(hashes_of(names).tolist())) == len(names)


@pytest.mark.parametrize("high", [0, 2**40])
@settings(deadline=None)
@given(st.sets(st.integers(0, 5000)), st.sets(st.integers(0, 6000)))
def test_membership_of_ids(high: int, members: set[int], asked: set[int]) -> None:
    ids = IdSet(np.array(sorted(high + n for n in members), np.int64))
    asking = sorted(high + n for n in asked)
    rows = ids.rows_in(np.array(asking, np.int64))
    assert [asking[row] - high for row in rows.tolist()] == sorted(asked & members)
