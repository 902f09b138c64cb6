"""What fuzzing feeds: every decoder of bytes that others may have written.

A target returns, or raises one of its own errors; anything else is a finding.
"""

import tempfile
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Final
from zlib import crc32

from ha.conf.errors import ConfigurationError
from ha.conf.reader import read_settings
from ha.rpc import packets
from ha.rpc.errors import MalformedFrame
from ha.rpc.limits import RpcLimits
from ha.rpc.session import ServerSession
from journal.frame import file_header, scan
from journal.model import TxId
from journal.reader.frame_stream import FrameReader
from namenode_sim.edits.codec import NEWEST_LAYOUT, OLDEST_LAYOUT, decode, encode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.recovery import salvage_ops
from namenode_sim.edits.segment_file import SegmentFile
from namenode_sim.image.errors import ImageError
from namenode_sim.image.reader import read_namespace
from namenode_sim.oev.events import Source
from namenode_sim.oev.json_lines import JsonLinesSink, JsonLinesSource
from namenode_sim.oev.sinks import BinarySink, XmlSink
from namenode_sim.oev.sources import BinarySource
from namenode_sim.oev.xml_reader import XmlSource
from tests import TESTDATA
from tests.campaigns.soak.fuzz_target import Target
from tests.campaigns.soak.fuzz_wire_targets import WIRE_TARGETS
from tests.hostile.shapes import Shape
from tests.hostile.strokes import MAX_INPUT_BYTES, pieces
from tests.namenode_sim.edits.segments import SMALL, frames, segment_bytes


def _segment(data: bytes) -> None:
    for _ in salvage_ops(SegmentFile(BytesIO(data), "fuzz")):
        pass
    for _ in SegmentFile(BytesIO(data), "fuzz").ops():
        pass


def _op(data: bytes) -> None:
    """Decode a sound frame around any body: checksums would shield most of the decoder."""
    layout = OLDEST_LAYOUT - data[0] % (OLDEST_LAYOUT - NEWEST_LAYOUT + 1) if data else 0
    head = data[1:2] + (12 + len(data[2:])).to_bytes(4, "big") + bytes(7) + b"\x01" + data[2:]
    if layout > -56:
        head = data[1:2] + bytes(7) + b"\x01" + data[2:]
    txid, op, end = decode(head + crc32(head).to_bytes(4, "big"), 0, layout)
    again = encode(op, txid, layout, unversioned_mtime=getattr(op, "mtime", None) is not None)
    if decode(again, 0, layout)[:2] != (txid, op) or end != len(head) + 4:
        raise AssertionError("an op does not read back as it was written")


def _journal_frames(data: bytes) -> None:
    found = scan(data)
    if found.end > len(data):
        raise AssertionError("the scan went beyond the data")
    reader = FrameReader(TxId(1), wanted=TxId(1), last=None)
    reader.feed(file_header())
    for start in range(0, len(data), 1000):
        reader.feed(data[start : start + 1000])


def _converted(source: Source) -> None:
    sinks = (XmlSink(BytesIO()), BinarySink(BytesIO(), exact=True), JsonLinesSink(BytesIO()))
    for event in source.events():
        for sink in sinks:
            with suppress(EditsError):  # what another form or layout cannot hold
                sink.take(event)
    for sink in sinks:
        sink.finish()


def _xml(data: bytes) -> None:
    _converted(XmlSource(BytesIO(data), "fuzz"))


def _json_lines(data: bytes) -> None:
    # A few bytes may stand for a terabyte of padding; that is written, not held.
    if b"padding" not in data:
        _converted(JsonLinesSource(BytesIO(data), "fuzz"))


def _image(data: bytes) -> None:
    read_namespace(BytesIO(data))


def _rpc(data: bytes) -> None:
    session = ServerSession(RpcLimits())
    for piece in pieces(data, Random(len(data))):
        session.receive(piece)
        while session.next_event() is not None:
            pass
    with suppress(MalformedFrame):
        packets.decode_answer(data)


@cache
def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def _conf(data: bytes) -> None:
    path = _scratch() / "hdfs-site.xml"
    path.write_bytes(data)
    read_settings(path)


def _real(*names: str) -> list[bytes]:
    paths = [TESTDATA / name for name in names]
    return [path.read_bytes()[: MAX_INPUT_BYTES // 4] for path in paths if path.exists()]


def _segments() -> list[bytes]:
    made = [segment_bytes(layout=layout) + b"\xff" * 20 for layout in (-65, -67, -60, -55, -47)]
    return made + _real("edits/editsStored")


def _ops() -> list[bytes]:
    """Return layout, opcode and body of each op of a real log."""
    found = [bytes((18,)) + frame[:1] + frame[13:-4] for frame in frames(SMALL)]
    for data in _real("edits/editsStored"):
        segment = SegmentFile(BytesIO(data), "seed")
        start = segment.offset
        while segment.next() is not None:
            frame = segment.frame(start)
            found.append(bytes((17,)) + frame[:1] + frame[13:-4])
            start = segment.offset
    return found


def _texts(sink: type[XmlSink | JsonLinesSink]) -> list[bytes]:
    texts = []
    for data in _segments():
        out = BytesIO()
        writer = sink(out)
        for event in BinarySource(BytesIO(data), "seed", recover=False).events():
            writer.take(event)
        writer.finish()
        texts.append(out.getvalue())
    return texts


def _images() -> list[bytes]:
    return _real("fsimage/fsi_small_h3_2.img", "name-dir/fsimage_0000000000000000026")


def _conversations() -> list[bytes]:
    client, protocol = bytes(range(16)), "org.apache.hadoop.hdfs.protocol.ClientProtocol"
    key = packets.CallKey(client, 3, 0)
    call = packets.encode_call(key, protocol, "mkdirs", b"\x0a\x01/")
    failure = packets.encode_failure(
        key, "java.io.IOException", "no", packets.Detail.ERROR_APPLICATION
    )
    greeting = b"hrpc\x09\x00\x00" + packets.encode_context(client, protocol, "u", None)
    return [greeting + call, packets.encode_success(key, b"\x08\x01")[4:], failure[4:]]


def _sites() -> list[bytes]:
    return [
        b"<?xml version='1.0'?><configuration><property><name>a</name><value>1</value>"
        b"<final>true</final></property><!-- x --></configuration>",
        b"<configuration xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='o.xml'>"
        b"<xi:fallback/></xi:include><property name='b' value='2'/></configuration>",
    ]


TARGETS: Final = (
    Target("edits", _segment, (EditsError,), _segments),
    Target("op", _op, (EditsError,), _ops),
    Target("journal-frames", _journal_frames, (ValueError,), lambda: [b"".join(frames(SMALL))]),
    Target("edits-xml", _xml, (EditsError,), lambda: _texts(XmlSink)),
    Target("edits-jsonl", _json_lines, (EditsError,), lambda: _texts(JsonLinesSink)),
    Target("image", _image, (ImageError,), _images),
    Target("rpc", _rpc, (), _conversations, Shape.CONVERSATION),
    Target("conf", _conf, (ConfigurationError,), _sites),
    *WIRE_TARGETS,
)
