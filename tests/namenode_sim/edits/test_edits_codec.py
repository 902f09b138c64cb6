"""Ops to bytes and back: real Hadoop files, every op at random, every layout's differences."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal.frame import HEADER_BYTES, read_header
from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import NEWEST_LAYOUT, OLDEST_LAYOUT, decode, decode_all, encode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.values import Block, Permission
from tests import TESTDATA
from tests.namenode_sim.edits.framed_bytes import TXID, framed
from tests.needs import FILES_OF_HADOOP
from tests.worlds.any_op import any_op, instances

PERMISSION = Permission("hdfs", "supergroup", 0o644)

REAL_FILES = {
    # file: (layout, ops, distinct opcodes)
    "edits/editsStored": (-64, 121, 45),
    "name-dir/edits_0000000000000000001-0000000000000000026": (-60, 26, 8),
    "name-dir/edits_inprogress_0000000000000000027": (-60, 1, 1),
}


@pytest.mark.parametrize("name", REAL_FILES)
def test_a_file_written_by_hadoop_reads_fully_and_writes_the_same_bytes(name: str) -> None:
    path = TESTDATA / name
    if not path.exists():
        FILES_OF_HADOOP.skip(f"{path} is not there")
    data = path.read_bytes()
    layout = read_header(data)
    found = list(decode_all(data, layout, start=HEADER_BYTES))
    assert (layout, len(found), len({op.opcode for _, op in found})) == REAL_FILES[name]
    assert [txid for txid, _ in found] == list(range(found[0][0], found[0][0] + len(found)))
    written = b"".join(encode(op, txid, layout) for txid, op in found)
    assert written == data[HEADER_BYTES : HEADER_BYTES + len(written)]
    assert not data[HEADER_BYTES + len(written) :].strip(b"\xff")


def test_every_op_that_hadoop_reads_has_a_class() -> None:
    assert {op.opcode for op in ops.OP_CLASSES} == set(range(53)) - {5, 6}


@pytest.mark.parametrize("op_class", ops.OP_CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=40)
@given(data=st.data(), txid=st.integers(0, 2**63 - 1))
def test_any_op_reads_back_as_it_was_written(
    op_class: type[ops.Op], data: st.DataObject, txid: int
) -> None:
    op = data.draw(instances(op_class))
    frame = encode(op, TxId(txid), NEWEST_LAYOUT)
    found_txid, found, end = decode(b"before" + frame + b"after", 6, NEWEST_LAYOUT)
    assert (found_txid, found, end) == (txid, _as_read(op, NEWEST_LAYOUT), 6 + len(frame))
    assert encode(found, found_txid, NEWEST_LAYOUT) == frame


def _as_read(op: ops.Op, layout: int) -> ops.Op:
    """Return the op as read: a snapshot's time is always in new layouts and never in old ones."""
    if isinstance(op, ops.CreateSnapshot | ops.DeleteSnapshot | ops.RenameSnapshot):
        return replace(op, mtime=(op.mtime or 0) if layout <= -66 else None)
    return op


@settings(max_examples=500)
@given(any_op(), st.integers(NEWEST_LAYOUT, OLDEST_LAYOUT))
def test_at_any_layout_an_op_is_written_whole_or_refused(op: ops.Op, layout: int) -> None:
    try:
        frame = encode(op, TXID, layout)
    except EditsError as problem:
        refusal = str(problem)
    else:
        _, found, end = decode(frame, 0, layout)
        assert (found, end) == (_as_read(op, layout), len(frame))
        return
    assert "no field" in refusal or "NVDIMM" in refusal


MODIFIED_UTF8 = {
    # Seen from Hadoop's own class.
    "/a😀b": "00092f61eda0bdedb88062",
    "\0": "000100",
    "é": "0002c3a9",
    "€": "0003e282ac",
    "\ud83d": "0003eda0bd",
}


@pytest.mark.parametrize("text", MODIFIED_UTF8, ids=ascii)
def test_strings_are_in_modified_utf8(text: str) -> None:
    frame = encode(ops.AllowSnapshot(text), TXID)
    assert frame[13:-4].hex() == MODIFIED_UTF8[text]
    assert decode(frame, 0, -65)[1] == ops.AllowSnapshot(text)


def test_a_four_byte_character_is_read_too() -> None:
    frame = framed(ops.AllowSnapshot.opcode, b"\x00\x04" + "😀".encode())
    assert decode(frame, 0, -65)[1] == ops.AllowSnapshot("😀")


def test_a_string_too_long_for_its_length_field_is_refused_not_cut() -> None:
    with pytest.raises(EditsError, match="65536 bytes"):
        encode(ops.AllowSnapshot("x" * 65536), TXID)


def test_a_bad_op_among_others_is_refused_with_its_place() -> None:
    good = encode(ops.StartLogSegment(), TxId(1))
    with pytest.raises(EditsError, match="opcode 60 is unknown") as refusal:
        list(decode_all(good + framed(60, b""), -65))
    assert (refusal.value.offset, refusal.value.txid) == (len(good), TXID)


def test_padding_ends_the_ops_and_other_bytes_behind_it_do_not_pass() -> None:
    good = encode(ops.StartLogSegment(), TxId(1))
    assert len(list(decode_all(good + b"\xff\x00\xff", -65))) == 1
    with pytest.raises(EditsError, match="padding"):
        list(decode_all(good + b"\xff\x01", -65))


def test_a_flip_of_any_bit_of_a_segment_is_detected() -> None:
    written: list[ops.Op] = [
        ops.StartLogSegment(),
        ops.Mkdir(16386, "/d", 1, 1, PERMISSION),
        ops.Add(16387, "/d/f", 3, 1, 1, 128, (), PERMISSION, client_name="c", client_machine="m"),
        ops.Close(0, "/d/f", 3, 1, 1, 128, (Block(1, 2, 3),), PERMISSION),
        ops.EndLogSegment(),
    ]
    data = b"".join(encode(op, TxId(n)) for n, op in enumerate(written, start=1))
    assert [op for _, op in decode_all(data, -65)] == written
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(EditsError):
                list(decode_all(bytes(damaged), -65))


@settings(max_examples=500)
@given(st.binary(max_size=200), st.integers(NEWEST_LAYOUT, OLDEST_LAYOUT))
def test_any_bytes_are_ops_or_a_typed_error(data: bytes, layout: int) -> None:
    with suppress(EditsError):
        list(decode_all(data, layout))


@settings(max_examples=1000)
@given(st.sampled_from(sorted(op.opcode for op in ops.OP_CLASSES)), st.binary(max_size=120),
       st.integers(NEWEST_LAYOUT, -56))  # fmt: skip
def test_any_body_in_a_sound_frame_is_an_op_or_a_typed_error(
    opcode: int, body: bytes, layout: int
) -> None:
    frame = framed(opcode, body, layout)
    with suppress(EditsError):
        _, op, end = decode(frame, 0, layout)
        assert (op.opcode, end) == (opcode, len(frame))
