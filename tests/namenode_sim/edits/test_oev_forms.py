"""Any op in Hadoop's XML and in JSON lines, and back."""

from io import BytesIO
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal.frame import HEADER_BYTES
from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import encode
from namenode_sim.edits.values import StorageType
from namenode_sim.oev.events import Edit, Sink, Source
from namenode_sim.oev.json_lines import JsonLinesSink, JsonLinesSource
from namenode_sim.oev.sinks import BinarySink, XmlSink
from namenode_sim.oev.sources import BinarySource
from namenode_sim.oev.xml_fields import FIELDS
from namenode_sim.oev.xml_reader import XmlSource
from namenode_sim.oev.xml_text import escape, unmangle
from tests.namenode_sim.edits.segments import IDS, segment_bytes
from tests.worlds.any_op import any_op


def _ops(source: Source) -> list[ops.Op]:
    return [event.op for event in source.events() if isinstance(event, Edit)]


def _pass(source: Source, sink: Sink) -> None:
    for event in source.events():
        sink.take(event)
    sink.finish()


def test_every_op_has_its_xml() -> None:
    assert set(FIELDS) == set(ops.OP_CLASSES)


@settings(max_examples=300)
@given(
    written=st.lists(any_op(), max_size=4),
    layout=st.sampled_from([-64, -65, -66, -67]),
    tail=st.sampled_from([b"", b"\xff", b"\xff\x00\xff\x00", b"\xff" * 300]),
)
def test_json_lines_give_back_the_same_bytes(
    written: list[ops.Op], layout: int, tail: bytes
) -> None:
    fitting = [op for op in written if layout == -67 or not _needs_newest(op)]
    data = segment_bytes(fitting, layout=layout) + tail
    lines, back = BytesIO(), BytesIO()
    _pass(BinarySource(BytesIO(data), "in", recover=False), JsonLinesSink(lines))
    _pass(JsonLinesSource(lines, "lines"), BinarySink(back, exact=True))
    assert back.getvalue() == data
    assert _ops(JsonLinesSource(BytesIO(lines.getvalue()), "lines")) == _ops(
        BinarySource(BytesIO(data), "in", recover=False)
    )


def _needs_newest(op: ops.Op) -> bool:
    return isinstance(op, ops.SetQuotaByStorageType) and op.storage_type is StorageType.NVDIMM


@settings(max_examples=200)
@given(op=any_op(), body=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_bytes_that_we_would_not_write_come_back_too(op: ops.Op, body: int, bit: int) -> None:
    """Take other writers' bytes, or damage that recovery keeps."""
    data = bytearray(segment_bytes([op, ops.EndLogSegment()], layout=-67))
    data[HEADER_BYTES + body % (len(data) - HEADER_BYTES)] ^= 1 << bit
    lines, back = BytesIO(), BytesIO()
    _pass(BinarySource(BytesIO(bytes(data)), "in", recover=True), JsonLinesSink(lines))
    _pass(JsonLinesSource(lines, "lines"), BinarySink(back, exact=True))
    assert back.getvalue() == data


def _resealed(op: ops.Op, before: bytes, after: bytes) -> bytes:
    """Return a sound segment with one op, some bytes of which are others of the same length."""
    frame = segment_bytes([op])[HEADER_BYTES:-4]
    assert frame.count(before) == 1
    changed = frame.replace(before, after)
    return segment_bytes([]) + changed + crc32(changed).to_bytes(4, "big")


ODD_FRAMES = {
    "a character in four bytes": _resealed(
        ops.AllowSnapshot("/xxxx"), b"xxxx", "\U0001f600".encode()
    ),
    "a true that is not one": _resealed(ops.Append("/f", "c", "m", True, IDS), b"m\x01", b"m\x02"),
}


@pytest.mark.parametrize("case", ODD_FRAMES)
def test_a_frame_that_another_writer_made_comes_back_as_it_was(case: str) -> None:
    data, lines, back = ODD_FRAMES[case], BytesIO(), BytesIO()
    _pass(BinarySource(BytesIO(data), "in", recover=False), JsonLinesSink(lines))
    _pass(JsonLinesSource(lines, "lines"), BinarySink(back, exact=True))
    assert back.getvalue() == data


@settings(max_examples=300)
@given(op=any_op())
def test_what_xml_tells_is_read_back(op: ops.Op) -> None:
    first, second = BytesIO(), BytesIO()
    data = segment_bytes([op], layout=-67)
    _pass(BinarySource(BytesIO(data), "in", recover=False), XmlSink(first))
    (read,) = _ops(XmlSource(first, "xml"))
    assert encode(read, TxId(1), -67)
    _pass(XmlSource(BytesIO(first.getvalue()), "xml"), XmlSink(second))
    (again,) = _ops(XmlSource(second, "xml"))
    assert again == read


@given(text=st.text())
def test_mangled_text_is_read_back(text: str) -> None:
    shown = escape(text)
    for reference in ("&lt;", "&gt;", "&amp;"):
        shown = shown.replace(reference, "")
    assert not set(shown) & set("<>\x00\x1f\ufffe")
    plain = text.replace("&", "").replace("<", "").replace(">", "")
    mangled = "".join(f"\\{ord(char):04x};" if char in "\\\ud800" else char for char in plain)
    assert unmangle(mangled) == plain
