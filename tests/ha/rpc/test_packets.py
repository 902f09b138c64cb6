"""The envelope against bytes captured between Hadoop 3.5.0's own client and server.

Frames come out whole however the bytes came in, and nothing oversized is stored.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.rpc import packets
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import FrameSplitter, frame_of, take_delimited, varint
from ha.rpc.java_names import CLIENT_PROTOCOL, STANDBY_EXCEPTION, VERSION_MISMATCH
from ha.rpc.proto.ha_service_pb2 import GetServiceStatusResponseProto, HAServiceStateProto
from ha.rpc.proto.rpc_header_pb2 import RpcRequestHeaderProto
from ha.rpc.session import NO_KEY
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import AclEntryProto
from tests.ha.rpc.wire import cut

CLIENT = bytes(range(16))
PROTOCOL_BYTES = CLIENT_PROTOCOL.encode()


def hexed(*pieces: str | bytes) -> bytes:
    return b"".join(p if isinstance(p, bytes) else bytes.fromhex(p) for p in pieces)


def test_the_preamble_is_that_of_a_client_without_tokens() -> None:
    assert hexed("68727063 09 00 00") == packets.PREAMBLE


def test_a_context_is_written_as_java_writes_it() -> None:
    # The capture has the shell's caller context as well (7 bytes more, "CLI").
    captured = hexed(
        "00000054 1a 0802 1000 1805 2210", CLIENT, "2801",
        "38 1206 0a04", b"root", "1a2e", PROTOCOL_BYTES,
    )  # fmt: skip
    assert packets.encode_context(CLIENT, CLIENT_PROTOCOL, "root", None) == captured


def test_a_proxy_user_is_written_as_java_writes_it() -> None:
    context = packets.encode_context(CLIENT, CLIENT_PROTOCOL, "alice", "root")
    assert hexed("120d 0a05", b"alice", "1204", b"root") in context


def test_a_call_is_written_as_java_writes_it() -> None:
    # The capture has the caller context in its header, which makes it 33 long instead of 26.
    captured = hexed(
        "00000064 1a 0802 1000 1800 2210", CLIENT, "2800",
        "3f 0a0b", b"getFileInfo", "122e", PROTOCOL_BYTES, "1801",
        "08 0a06", b"/a/b/c",
    )  # fmt: skip
    key = packets.CallKey(CLIENT, 0, 0)
    request = hexed("0a06", b"/a/b/c")
    assert packets.encode_call(key, CLIENT_PROTOCOL, "getFileInfo", request) == captured


def test_the_shells_own_context_packet_is_understood() -> None:
    captured = hexed("21 0802 1000 1805 2210", CLIENT, "2801 3a050a03", b"CLI", "38")
    data, _ = take_delimited(captured + bytes(56), 0)
    parsed = packets.parse(RpcRequestHeaderProto, data)
    assert (parsed.callId, parsed.clientId, parsed.retryCount) == (-3, CLIENT, -1)
    assert parsed.callerContext.context == "CLI"


def test_an_answer_is_written_as_java_writes_it() -> None:
    captured = hexed("00000020 1a 0800 1000 1809 3a10", CLIENT, "4000 04 0802 1001")
    response = GetServiceStatusResponseProto(
        state=HAServiceStateProto.STANDBY, readyToBecomeActive=True
    )
    assert (
        packets.encode_success(packets.CallKey(CLIENT, 0, 0), response.SerializeToString())
        == captured
    )
    assert packets.decode_answer(captured[4:]) == packets.CallAnswer(
        0, CLIENT, packets.Status.SUCCESS, hexed("08021001")
    )


def test_the_shortest_answer_is_understood() -> None:
    assert packets.decode_answer(hexed("04 0803 1000 00")) == packets.CallAnswer(
        3, b"", packets.Status.SUCCESS
    )


def test_sasl_is_answered_as_java_answers_it() -> None:
    captured = hexed("00000012 0e 08dfffffff0f 1000 1809 3a00 4001 02 1000")
    assert packets.encode_sasl_success() == captured


def test_a_version_mismatch_names_no_call() -> None:
    frame = packets.encode_failure(
        NO_KEY, VERSION_MISMATCH, "no", packets.Detail.FATAL_VERSION_MISMATCH, fatal=True
    )
    assert hexed("08ffffffff0f 1002 1809") in frame
    answer = packets.decode_answer(frame[4:])
    assert (answer.call_id, answer.status, answer.detail) == (-1, packets.Status.FATAL, 14)


def test_an_error_has_nothing_after_its_header() -> None:
    frame = packets.encode_failure(
        packets.CallKey(CLIENT, 7, 1),
        STANDBY_EXCEPTION,
        "not here",
        packets.Detail.ERROR_APPLICATION,
    )
    _, end = take_delimited(frame, 4)
    assert end == len(frame)
    assert packets.decode_answer(frame[4:]) == packets.CallAnswer(
        7, CLIENT, packets.Status.ERROR, b"", STANDBY_EXCEPTION, "not here", 1
    )


def test_half_a_character_in_a_message_does_not_break_the_answer() -> None:
    frame = packets.encode_failure(
        packets.CallKey(b"", 0, 0), "X", "caf\udce9", packets.Detail.ERROR_APPLICATION
    )
    assert packets.decode_answer(frame[4:]).message == "caf?"


@pytest.mark.parametrize(
    "frame",
    {
        "nothing": "",
        "no status": "02 0800",
        "unknown status": "04 0800 1007",
        "success without a response": "04 0800 1000",
        "a response cut short": "04 0800 1000 05 08",
    }.values(),
)
def test_what_is_no_answer_is_malformed(frame: str) -> None:
    with pytest.raises(MalformedFrame):
        packets.decode_answer(bytes.fromhex(frame))


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_malformed(frame: bytes) -> None:
    try:
        answer = packets.decode_answer(frame)
    except MalformedFrame:
        return
    assert isinstance(answer.java_class, str)
    assert isinstance(answer.message, str)


@given(
    st.integers(0, 0x7FFFFFFF), st.integers(-1, 1000), st.binary(max_size=400), st.text(), st.text()
)
def test_answers_come_back(
    call_id: int, retry: int, body: bytes, java_class: str, message: str
) -> None:
    key = packets.CallKey(CLIENT, call_id, retry)
    assert packets.decode_answer(packets.encode_success(key, body)[4:]).body == body
    failed = packets.decode_answer(
        packets.encode_failure(
            key, java_class, message, packets.Detail.ERROR_APPLICATION, fatal=True
        )[4:]
    )
    assert (failed.call_id, failed.java_class, failed.message) == (call_id, java_class, message)


BROKEN_TEXT = {
    "a string": (calls.RenewLeaseRequestProto(clientName="XX"), "clientName"),
    "one of several": (calls.ConcatRequestProto(trg="/ä", srcs=["/a", "/ö", "/XX"]), "srcs"),
    "a string in a message": (
        calls.RemoveAclEntriesRequestProto(
            src="/ä",
            aclSpec=[
                AclEntryProto(
                    type=AclEntryProto.USER,
                    scope=AclEntryProto.ACCESS,
                    permissions=AclEntryProto.READ,
                    name="XX",
                )
            ],
        ),
        "name",
    ),
}


@pytest.mark.parametrize("case", BROKEN_TEXT)
def test_a_request_whose_text_is_no_text_is_refused_before_anybody_acts_on_it(case: str) -> None:
    message, field = BROKEN_TEXT[case]
    data = message.SerializeToString()
    assert packets.parse_request(type(message), data) == message
    with pytest.raises(MalformedFrame, match=rf"\.{field} is not UTF-8"):
        packets.parse_request(type(message), data.replace(b"XX", b"\xff\xfe"))


@given(st.lists(st.binary(max_size=300), max_size=12), st.lists(st.integers(0, 10_000)))
def test_any_split_gives_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    splitter = FrameSplitter()
    got = []
    for piece in cut(stream, cuts):
        splitter.feed(piece)
        while (frame := splitter.take_frame(300)) is not None:
            got.append(frame)
    assert got == frames
    assert splitter.buffered_bytes == 0


def test_many_frames_in_one_segment_are_compacted() -> None:
    frame = (1000).to_bytes(4, "big") + bytes(1000)
    splitter = FrameSplitter()
    splitter.feed(frame * 500 + b"\0")
    assert sum(splitter.take_frame(1000) is not None for _ in range(500)) == 500
    assert splitter.take_frame(1000) is None
    assert splitter.buffered_bytes == 1


@pytest.mark.parametrize("length", [101, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_frame_is_refused_by_its_length_alone(length: int) -> None:
    splitter = FrameSplitter()
    splitter.feed(length.to_bytes(4, "big"))
    with pytest.raises(MalformedFrame, match="the limit is 100"):
        splitter.take_frame(100)


@given(st.lists(st.binary(max_size=200), max_size=6))
def test_delimited_messages_come_back(messages: list[bytes]) -> None:
    frame = frame_of(*messages)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    offset, got = 0, []
    for _ in messages:
        message, offset = take_delimited(frame[4:], offset)
        got.append(message)
    assert got == messages
    assert offset == len(frame) - 4


@given(st.binary(max_size=64), st.integers(0, 80))
def test_any_bytes_are_a_message_or_malformed(frame: bytes, offset: int) -> None:
    try:
        message, end = take_delimited(frame, offset)
    except MalformedFrame:
        return
    assert frame[:end].endswith(message)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (0xFFFFFFFF, "ffffffff0f")],
)
def test_lengths_are_protobuf_varints(number: int, encoded: str) -> None:
    assert varint(number) == bytes.fromhex(encoded)


def test_an_endless_varint_is_malformed() -> None:
    with pytest.raises(MalformedFrame, match="no message length"):
        take_delimited(b"\xff" * 100, 0)
