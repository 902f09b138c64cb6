"""A server's half of a conversation: Java's answers to odd bytes, and no trouble from any bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ha.rpc import call_header
from ha.rpc import session as rpc_session
from ha.rpc.frames import frame_of, take_delimited
from ha.rpc.java_names import ACCESS_CONTROL, IPC_EXCEPTION, RPC_SERVER, VERSION_MISMATCH
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import PREAMBLE, CallKey, Status, encode_context, encode_sasl_success
from ha.rpc.proto import rpc_header_pb2
from tests.ha.rpc.wire import CLIENT, ECHO, GREETING, Echo, answers, cut, echo_call, header

LIMITS = RpcLimits(max_frame_bytes=4096, max_handshake_frame_bytes=1024)
SASL_PREAMBLE = bytes.fromhex("68727063 09 00 df")
NEGOTIATE = bytes.fromhex("0000000e 0a 0802 1000 1841 2200 2801 02 1001")
INITIATE = bytes.fromhex("0000000e 0a 0802 1000 1841 2200 2801 02 1002")
CONTEXT = GREETING[7:]
USER = encode_context(CLIENT, ECHO, "alice", None)
NAMELESS = frame_of(
    header(-3), rpc_header_pb2.IpcConnectionContextProto(protocol=ECHO).SerializeToString()
)

GREETED = rpc_session.Greeted("alice", None, ECHO)
ASKED = call_header.Asked(
    CallKey(CLIENT, 0, 0), ECHO, "echo", 1, Echo(context="hello").SerializeToString()
)


def events_of(*pieces: bytes) -> list[rpc_session.Event]:
    session = rpc_session.ServerSession(LIMITS)
    seen: list[rpc_session.Event] = []
    for piece in pieces:
        session.receive(piece)
        while (event := session.next_event()) is not None:
            seen.append(event)
    return seen


def test_a_client_greets_and_calls() -> None:
    assert events_of(GREETING + echo_call(0)) == [GREETED, ASKED]


def test_a_proxy_user_is_told_from_who_stands_behind_it() -> None:
    context = encode_context(CLIENT, ECHO, "alice", "oozie")
    assert events_of(PREAMBLE, context) == [rpc_session.Greeted("alice", "oozie", ECHO)]


def test_pings_are_welcome_at_any_time_and_unanswered() -> None:
    ping = bytes.fromhex("0000001b 1a 0802 1000 1807 2210") + CLIENT + bytes.fromhex("2801")
    assert events_of(PREAMBLE, ping, CONTEXT, ping, echo_call(0), ping) == [GREETED, ASKED]


def test_a_client_with_tokens_is_sent_back_to_simple() -> None:
    assert events_of(SASL_PREAMBLE + NEGOTIATE, CONTEXT) == [
        rpc_session.Send(encode_sasl_success()),
        GREETED,
    ]


@pytest.mark.parametrize("call_id", [0, 1, 7, 2**31 - 1])
def test_a_call_may_say_at_length_why_it_is_made(call_id: int) -> None:
    """Read a header that is longer than most calls' as well, and then cut it."""
    why = "why " * 100
    head = rpc_header_pb2.RpcRequestHeaderProto(
        rpcKind=rpc_header_pb2.RpcKindProto.RPC_PROTOCOL_BUFFER,
        rpcOp=rpc_header_pb2.RpcRequestHeaderProto.RPC_FINAL_PACKET,
        callId=call_id,
        clientId=CLIENT,
        retryCount=2,
        callerContext=rpc_header_pb2.RPCCallerContextProto(context=why),
    )
    method = rpc_header_pb2.RequestHeaderProto(
        methodName="echo", declaringClassProtocolName=ECHO, clientProtocolVersion=1
    )
    request = Echo(context="hello").SerializeToString()
    call = frame_of(head.SerializeToString(), method.SerializeToString(), request)
    key = CallKey(CLIENT, call_id, 2)
    asked = call_header.Asked(
        key, ECHO, "echo", 1, request, why[: call_header.MAX_CONTEXT_CHARACTERS]
    )
    assert events_of(GREETING, call) == [GREETED, asked]
    assert len(asked.context) == 200


@pytest.mark.parametrize(("size", "kept"), [(256, 1), (257, 0)], ids=["kept", "not kept"])
def test_a_method_is_remembered_by_no_more_than_256_bytes(size: int, kept: int) -> None:
    method = rpc_header_pb2.RequestHeaderProto(
        declaringClassProtocolName=ECHO, clientProtocolVersion=1
    )
    method.methodName = "m" * 200
    method.methodName = "m" * (200 + size - method.ByteSize())
    data = method.SerializeToString()
    assert len(data) == size
    before, (name, call) = (
        call_header.method_named.cache_info().misses,
        (method.methodName, header(1)),
    )
    for _ in range(2):
        asked = events_of(GREETING, frame_of(call, data, b""))[-1]
        assert isinstance(asked, call_header.Asked)
        assert (asked.protocol, asked.method, asked.version) == (ECHO, name, 1)
    assert call_header.method_named.cache_info().misses - before == kept


def test_events_wait_until_they_are_asked_for() -> None:
    session = rpc_session.ServerSession(LIMITS)
    session.receive(GREETING + echo_call(0) + echo_call(1))
    assert session.next_event() == GREETED
    assert session.next_event() == ASKED
    assert session.buffered_bytes == len(echo_call(1))


OBJECTIONS = {
    "an older or newer version": (b"hrpc\x0a\x00\x00", -1, VERSION_MISMATCH, 14),
    "an unknown kind of authentication": (b"hrpc\x09\x00\x01", -1, IPC_EXCEPTION, 15),
    "a call before the context": (PREAMBLE + echo_call(7), 7, RPC_SERVER, 12),
    "a second context": (GREETING + CONTEXT, -3, RPC_SERVER, 12),
    "a context during negotiation": (SASL_PREAMBLE + CONTEXT, -3, RPC_SERVER, 12),
    "a context without a user": (PREAMBLE + NAMELESS, -3, ACCESS_CONTROL, 15),
    "uninvited SASL": (PREAMBLE + NEGOTIATE, -33, RPC_SERVER, 12),
    "real SASL": (SASL_PREAMBLE + INITIATE, -33, ACCESS_CONTROL, 15),
    "an unknown call below zero": (GREETING + frame_of(header(-9)), -9, RPC_SERVER, 12),
    "an unknown one that greets": (PREAMBLE + frame_of(header(-9), USER), -9, RPC_SERVER, 12),
    "no operation": (GREETING + frame_of(header(3, op=None)), 3, RPC_SERVER, 12),
    "a continuation": (GREETING + frame_of(header(3, op=1)), 3, RPC_SERVER, 12),
    "no kind": (GREETING + frame_of(header(3, kind=None)), 3, RPC_SERVER, 12),
    "Java's Writables": (GREETING + frame_of(header(3, kind=1)), 3, RPC_SERVER, 12),
    "a call without a method": (GREETING + frame_of(header(3)), 3, RPC_SERVER, 13),
    "a call without a request": (
        GREETING + frame_of(header(3), bytes.fromhex("0a0165 120165 1801")),
        3,
        RPC_SERVER,
        13,
    ),
    "an empty frame": (GREETING + bytes(4), -1, RPC_SERVER, 13),
    "a header cut short": (GREETING + frame_of(b"\x08"), -1, RPC_SERVER, 13),
    "a header without a call id": (GREETING + frame_of(b"\x08\x02"), -1, RPC_SERVER, 13),
    "a client id of two bytes": (
        GREETING + frame_of(bytes.fromhex("0802 1000 1806 2202 6162")),
        3,
        RPC_SERVER,
        12,
    ),
}


@pytest.mark.parametrize(("sent", "call_id", "java_class", "detail"), OBJECTIONS.values(),
                         ids=OBJECTIONS.keys())  # fmt: skip
def test_a_fatal_answer_and_the_end(
    sent: bytes, call_id: int, java_class: str, detail: int
) -> None:
    last = events_of(sent, echo_call(0))[-1]
    assert isinstance(last, rpc_session.Hangup)
    (answer,) = answers(last.last)
    assert answer.status is Status.FATAL
    assert (answer.call_id, answer.java_class, answer.detail) == (call_id, java_class, detail)
    assert answer.client_id == b""
    assert answer.message == last.reason


@pytest.mark.parametrize("retry", [-1, 0, 3])
def test_a_fatal_answer_repeats_the_retry_of_a_call(retry: int) -> None:
    head = rpc_header_pb2.RpcRequestHeaderProto.FromString(header(7))
    head.retryCount = retry
    last = events_of(PREAMBLE, frame_of(head.SerializeToString()))[-1]
    assert isinstance(last, rpc_session.Hangup)
    answer, _ = take_delimited(last.last, 4)
    assert rpc_header_pb2.RpcResponseHeaderProto.FromString(answer).retryCount == retry


def test_a_browser_gets_a_sentence_it_can_show() -> None:
    assert events_of(b"GET / HTTP/1.1\r\n\r\n") == [
        rpc_session.Hangup(rpc_session.HTTP_ANSWER, "an HTTP request on the RPC port")
    ]


@pytest.mark.parametrize("start", [b"h\x00", b"GEX", b"GETX", b"\x16\x03\x01", b"hrpd\x09\x00\x00"])
def test_another_protocol_is_closed_without_a_word(start: bytes) -> None:
    (event,) = events_of(start)
    assert isinstance(event, rpc_session.Hangup)
    assert event.last == b""


@pytest.mark.parametrize("piece", [b"", b"h", b"hrpc", b"hrpc\x09\x00", b"G", b"GET"])
def test_half_a_greeting_is_waited_for(piece: bytes) -> None:
    assert events_of(piece) == []


@pytest.mark.parametrize(
    ("greeting", "limit"), [(PREAMBLE, 1024), (GREETING, 4096)], ids=["before", "after"]
)
def test_a_stranger_may_send_smaller_frames_than_a_caller(greeting: bytes, limit: int) -> None:
    assert not any(
        isinstance(e, rpc_session.Hangup) for e in events_of(greeting, limit.to_bytes(4, "big"))
    )
    last = events_of(greeting, (limit + 1).to_bytes(4, "big"))[-1]
    assert last == rpc_session.Hangup(b"", f"a frame of {limit + 1} bytes; the limit is {limit}")


def test_nothing_is_kept_after_the_end() -> None:
    session = rpc_session.ServerSession(LIMITS)
    session.receive(b"nonsense")
    assert isinstance(session.next_event(), rpc_session.Hangup)
    before = session.buffered_bytes
    session.receive(bytes(1_000_000))
    assert session.phase is rpc_session.Phase.OVER
    assert session.buffered_bytes == before
    assert session.next_event() is None


CONVERSATION = SASL_PREAMBLE + NEGOTIATE + CONTEXT + echo_call(0) + echo_call(1) + echo_call(2)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Change, cut out or put in some bytes of a good conversation."""
    data = bytearray(CONVERSATION)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 6))
        data[place : place + size] = draw(st.binary(max_size=6))
    return bytes(data)


HOSTILE = st.one_of(
    st.binary(max_size=300),
    spoiled(),
    st.binary(max_size=200).map(lambda tail: GREETING + tail),
    st.binary(max_size=200).map(lambda body: GREETING + len(body).to_bytes(4, "big") + body),
    st.binary(max_size=60).map(lambda body: GREETING + frame_of(header(0), body, body)),
)


@example(CONVERSATION, [3, 8, 40])
@given(HOSTILE, st.lists(st.integers(0, 400), max_size=20))
def test_any_bytes_in_any_split_give_the_same_events(data: bytes, cuts: list[int]) -> None:
    assert events_of(*cut(data, cuts)) == events_of(data)


@given(HOSTILE)
def test_any_bytes_end_in_calls_answers_or_one_hangup(data: bytes) -> None:
    seen = events_of(data, bytes(100))
    hangups = [event for event in seen if isinstance(event, rpc_session.Hangup)]
    assert hangups == seen[-1:] or not hangups
    for hangup in hangups:
        if hangup.last not in (b"", rpc_session.HTTP_ANSWER):
            assert [answer.status for answer in answers(hangup.last)] == [Status.FATAL]
    for event in seen:
        if isinstance(event, call_header.Asked):
            assert GREETED in seen or any(isinstance(e, rpc_session.Greeted) for e in seen)
            assert isinstance(event.method, str)
            assert isinstance(event.protocol, str)


@given(st.lists(st.binary(min_size=1, max_size=2000), max_size=20))
def test_the_buffer_stays_bounded_by_the_limit_and_one_read(pieces: list[bytes]) -> None:
    session = rpc_session.ServerSession(LIMITS)
    session.receive(GREETING)
    for piece in pieces:
        session.receive(piece)
        while session.next_event() is not None:
            pass
        assert session.buffered_bytes < LIMITS.max_frame_bytes + 4 + len(piece)
