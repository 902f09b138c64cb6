"""The short way to read and write headers against protobuf's."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ha.rpc.call_header import objection, usual_call
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import take_delimited
from ha.rpc.packets import VERSION, CallKey, encode_success, parse, text
from ha.rpc.proto import rpc_header_pb2

CLIENTS = st.sampled_from([b"", b"c" * 16, b"d" * 16, b"short"])
NUMBERS = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, 63, 64, 2**31 - 1, -3, -33])
HEADERS = st.builds(
    rpc_header_pb2.RpcRequestHeaderProto,
    rpcKind=st.sampled_from([None, *rpc_header_pb2.RpcKindProto.values()]),
    rpcOp=st.sampled_from([None, *rpc_header_pb2.RpcRequestHeaderProto.OperationProto.values()]),
    callId=NUMBERS,
    clientId=CLIENTS,
    retryCount=st.none() | st.integers(-1, 3),
    callerContext=st.none()
    | st.builds(rpc_header_pb2.RPCCallerContextProto, context=st.text(max_size=300)),
)
TAILS = st.binary(max_size=3) | st.sampled_from(
    # What comes later holds: another number, another kind, another operation.
    [b"\x18\x04", b"\x08\x01", b"\x10\x01", b"\x22\x01x", b"\x28\x06"]
)
USUAL = rpc_header_pb2.RpcRequestHeaderProto(
    rpcKind=rpc_header_pb2.RpcKindProto.RPC_PROTOCOL_BUFFER,
    rpcOp=rpc_header_pb2.RpcRequestHeaderProto.RPC_FINAL_PACKET,
    callId=7,
    clientId=b"c" * 16,
    retryCount=0,
).SerializeToString()


def parsed(data: bytes) -> tuple[CallKey, str] | None:
    """Parse the header; return None where it is none of a call that would be taken."""
    try:
        header = parse(rpc_header_pb2.RpcRequestHeaderProto, data)
    except MalformedFrame:
        return None
    if objection(header) is not None or header.callId < 0:
        return None
    key = CallKey(header.clientId, header.callId, header.retryCount)
    return key, text(header.callerContext.context)


@given(
    data=st.builds(
        lambda header, tail, flip: _flipped(header.SerializeToString() + tail, flip),
        HEADERS, TAILS, st.none() | st.tuples(st.integers(0, 40), st.integers(1, 255)),
    )
)  # fmt: skip
@example(data=USUAL)
@example(data=USUAL[:5] + b"\x8e\x80\x00" + USUAL[6:])
@example(data=USUAL[:5] + b"\x80\x80\x80\x80\x10" + USUAL[6:])
@example(data=USUAL[:5] + b"\xff")
def test_the_short_way_reads_what_protobuf_reads_or_leaves_it_to_it(data: bytes) -> None:
    found = usual_call(data)
    assert found is None or found == parsed(data)


@given(number=st.integers(0, 2**31 - 1), retry=st.integers(-1, 3))
def test_the_short_way_reads_every_usual_call(number: int, retry: int) -> None:
    header = rpc_header_pb2.RpcRequestHeaderProto.FromString(USUAL)
    header.callId, header.retryCount = number, retry
    assert usual_call(header.SerializeToString()) == (CallKey(b"c" * 16, number, retry), "")


@pytest.mark.parametrize("number", [0, 1, 63, 64, 8191, 8192, 2**20, 2**28, 2**31 - 1])
def test_the_short_way_reads_numbers_of_any_length(number: int) -> None:
    header = rpc_header_pb2.RpcRequestHeaderProto.FromString(USUAL)
    header.callId = number
    assert usual_call(header.SerializeToString()) == (CallKey(b"c" * 16, number, 0), "")


def explained(size: int) -> bytes:
    """Make a header of ``size`` bytes, with a reason that fills them."""
    header = rpc_header_pb2.RpcRequestHeaderProto.FromString(USUAL)
    header.callerContext.context = "w" * 200
    header.callerContext.context = "w" * (200 + size - header.ByteSize())
    assert header.ByteSize() == size
    return header.SerializeToString()


def test_the_short_way_reads_headers_up_to_a_length() -> None:
    assert usual_call(explained(256)) == parsed(explained(256))
    assert usual_call(explained(257)) is None


LEFT_TO_PROTOBUF = {
    "a number of six bytes": USUAL[:5] + b"\x8e\x80\x80\x80\x80\x00" + USUAL[6:],
    "another number behind the first": USUAL + b"\x18\x04",
    "another kind behind the first": USUAL + b"\x08\x01",
    "another operation behind the first": USUAL + b"\x10\x01",
    "a number below zero": USUAL[:5] + b"\x05" + USUAL[6:],
    "more than 32 bits": USUAL[:5] + b"\x80\x80\x80\x80\x10" + USUAL[6:],
    "no end of the number": USUAL[:5] + b"\x8e",
    "no number": USUAL[:5],
}


@pytest.mark.parametrize("data", LEFT_TO_PROTOBUF.values(), ids=LEFT_TO_PROTOBUF.keys())
def test_what_the_short_way_leaves_to_protobuf(data: bytes) -> None:
    assert usual_call(data) is None


PROTOBUF, BUILTIN = (
    rpc_header_pb2.RpcKindProto.RPC_PROTOCOL_BUFFER,
    rpc_header_pb2.RpcKindProto.RPC_BUILTIN,
)
FINAL, GOES_ON = (
    rpc_header_pb2.RpcRequestHeaderProto.RPC_FINAL_PACKET,
    rpc_header_pb2.RpcRequestHeaderProto.RPC_CONTINUATION_PACKET,
)


@pytest.mark.parametrize(
    ("call_id", "kind", "operation", "client", "because"),
    [
        (0, PROTOBUF, FINAL, 16, None),
        (7, PROTOBUF, FINAL, 0, None),
        (-3, PROTOBUF, FINAL, 16, None),
        (-3, BUILTIN, FINAL, 16, None),
        (-1, BUILTIN, FINAL, 16, None),
        (0, BUILTIN, FINAL, 16, "kind"),
        (7, BUILTIN, FINAL, 16, "kind"),
        (7, None, FINAL, 16, "kind"),
        (-3, None, FINAL, 16, "kind"),
        (7, PROTOBUF, None, 16, "rpc op"),
        (7, PROTOBUF, GOES_ON, 16, "operation"),
        (7, PROTOBUF, FINAL, 1, "1 bytes"),
        (7, PROTOBUF, FINAL, 15, "15 bytes"),
        (-3, PROTOBUF, FINAL, 17, "17 bytes"),
    ],
)
def test_which_headers_are_taken(
    call_id: int,
    kind: rpc_header_pb2.RpcKindProto.ValueType | None,
    operation: rpc_header_pb2.RpcRequestHeaderProto.OperationProto.ValueType | None,
    client: int,
    because: str | None,
) -> None:
    """Below zero, where no method is called, any kind is."""
    header = rpc_header_pb2.RpcRequestHeaderProto(
        rpcKind=kind, rpcOp=operation, callId=call_id, clientId=b"c" * client
    )
    found = objection(header)
    assert found is None if because is None else because in (found or "")


@given(NUMBERS, CLIENTS, st.integers(-1, 3), st.binary(max_size=200))
def test_an_answer_begins_as_protobuf_would_write_it(
    number: int, client: bytes, retry: int, body: bytes
) -> None:
    header = rpc_header_pb2.RpcResponseHeaderProto(
        callId=number % (1 << 32),
        status=rpc_header_pb2.RpcResponseHeaderProto.SUCCESS,
        serverIpcVersionNum=VERSION,
        clientId=client,
        retryCount=retry,
    )
    data, end = take_delimited(encode_success(CallKey(client, number, retry), body), 4)
    assert data == header.SerializeToString()
    assert take_delimited(encode_success(CallKey(client, number, retry), body), end)[0] == body


def _flipped(data: bytes, flip: tuple[int, int] | None) -> bytes:
    if flip is None or flip[0] >= len(data):
        return data
    at, mask = flip
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
