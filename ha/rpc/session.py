"""The server's half of a connection: bytes in, events out; no sockets, no clock.

    PREAMBLE ──magic, version──► CONTEXT ──the user───► CALLS
        │                           │                      │
        └───────────── Hangup (with last bytes) ◄──────────┘

Events are pulled one at a time, so that a server that is busy leaves the rest unread. Answers to
hostile bytes are those of Java's Server.java: docs/reference/rpc.md#answers-and-refusals.

Pure.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from ha.record import record
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import FrameSplitter, take_delimited
from ha.rpc.java_names import ACCESS_CONTROL, IPC_EXCEPTION, RPC_SERVER, VERSION_MISMATCH
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import (
    AUTH_NONE,
    AUTH_SASL,
    CLIENT_ID_BYTES,
    CONTEXT_CALL_ID,
    INVALID_CALL_ID,
    MAGIC,
    NO_RETRY,
    PING_CALL_ID,
    PREAMBLE_BYTES,
    SASL_CALL_ID,
    VERSION,
    CallKey,
    Detail,
    encode_failure,
    encode_sasl_success,
    parse,
    text,
)
from ha.rpc.proto.rpc_header_pb2 import (
    IpcConnectionContextProto,
    RequestHeaderProto,
    RpcKindProto,
    RpcRequestHeaderProto,
    RpcSaslProto,
)

NO_KEY = CallKey(b"", INVALID_CALL_ID, NO_RETRY)

MAX_CONTEXT_CHARACTERS = 200
"""Hadoop allows 128 by default (hadoop.caller.context.max.size)."""

MAX_USER_CHARACTERS = 255
"""Of a name that a caller gives itself.  Linux allows 32; a Kerberos principal has a host in it."""

_MAX_KEPT_BYTES = 256

HTTP_MAGIC = b"GET "
HTTP_ANSWER = (
    b"HTTP/1.1 404 Not Found\r\n"
    b"Content-type: text/plain\r\n\r\n"
    b"It looks like you are making an HTTP request to a Hadoop IPC port. "
    b"This is not the correct port for the web interface on this daemon.\r\n"
)


@dataclass(frozen=True, slots=True)
class Greeted:
    """The peer has said who it is."""

    user: str
    real_user: str | None
    protocol: str


@record
class Asked:
    """The peer calls a method; ``request`` is the method's message, not yet parsed."""

    key: CallKey
    protocol: str
    method: str
    version: int
    request: bytes
    context: str = ""
    """What the caller says of why it calls (CallerContext), cut to MAX_CONTEXT_CHARACTERS."""


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes the peer must get now."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Hangup:
    """The conversation is over: send ``last`` and close."""

    last: bytes
    reason: str


Event = Greeted | Asked | Send | Hangup


class Phase(Enum):
    """The phase of the connection."""

    PREAMBLE = auto()
    CONTEXT = auto()
    CALLS = auto()
    OVER = auto()


class ServerSession:
    """Turns one peer's bytes into events.  Never raises for what a peer sends."""

    __slots__ = ("_limits", "_phase", "_sasl", "_splitter")

    def __init__(self, limits: RpcLimits) -> None:
        self._limits = limits
        self._phase = Phase.PREAMBLE
        self._sasl = False
        self._splitter = FrameSplitter()

    @property
    def phase(self) -> Phase:
        """Where the conversation stands."""
        return self._phase

    @property
    def buffered_bytes(self) -> int:
        """What was received and not yet turned into an event."""
        return self._splitter.buffered_bytes

    def receive(self, data: bytes) -> None:
        """Take in bytes, in any split."""
        if self._phase is not Phase.OVER:
            self._splitter.feed(data)

    def next_event(self) -> Event | None:
        """Return the next thing that the peer wants, or None until more bytes come."""
        event: Event | None
        while self._phase is not Phase.OVER:
            if self._phase is Phase.PREAMBLE:
                event = self._read_preamble()
                if event is None and self._phase is Phase.PREAMBLE:
                    return None
            else:
                frame = self._take_frame()
                if frame is None:
                    return None
                event = frame if isinstance(frame, Hangup) else self._read_frame(frame)
            if isinstance(event, Hangup):
                self._phase = Phase.OVER
            if event is not None:
                return event
        return None

    def _take_frame(self) -> bytes | Hangup | None:
        handshake = self._phase is Phase.CONTEXT
        limits = self._limits
        try:
            return self._splitter.take_frame(
                limits.max_handshake_frame_bytes if handshake else limits.max_frame_bytes
            )
        except MalformedFrame as failure:
            # Java closes such a connection without a word, too: the stream is out of step.
            return Hangup(b"", str(failure))

    def _read_preamble(self) -> Hangup | None:
        start = self._splitter.peek(PREAMBLE_BYTES)
        if start[:4] == HTTP_MAGIC:
            return Hangup(HTTP_ANSWER, "an HTTP request on the RPC port")
        if not (MAGIC.startswith(start[:4]) or HTTP_MAGIC.startswith(start[:4])):
            return Hangup(b"", "not Hadoop RPC")
        if len(start) < PREAMBLE_BYTES:
            return None
        self._splitter.skip(PREAMBLE_BYTES)
        version, auth = start[4], start[6]
        if version != VERSION:
            message = (
                f"Server IPC version {VERSION} cannot communicate with client version {version}"
            )
            last = encode_failure(
                NO_KEY, VERSION_MISMATCH, message, Detail.FATAL_VERSION_MISMATCH, fatal=True
            )
            return Hangup(last, message)
        if auth not in (AUTH_NONE, AUTH_SASL):
            return _fatal(
                NO_KEY, f"Unknown auth protocol:{auth}", Detail.FATAL_UNAUTHORIZED, IPC_EXCEPTION
            )
        self._sasl = auth == AUTH_SASL
        self._phase = Phase.CONTEXT
        return None

    def _read_frame(self, frame: bytes) -> Event | None:
        key = NO_KEY
        try:
            data, end = take_delimited(frame, 0)
            usual = usual_call(data) if self._phase is Phase.CALLS else None
            if usual is not None:
                key, why = usual
                return _read_call(key, why, frame, end)
            header = parse(RpcRequestHeaderProto, data)
            key = CallKey(header.clientId, header.callId, header.retryCount)
            because = objection(header)
            if because is not None:
                return _fatal(key, because, Detail.FATAL_INVALID_RPC_HEADER)
            if key.call_id < 0:
                return self._read_out_of_band(key, frame, end)
            if self._phase is not Phase.CALLS:
                return _fatal(
                    key, "Connection context not established", Detail.FATAL_INVALID_RPC_HEADER
                )
            return _read_call(key, text(header.callerContext.context), frame, end)
        except MalformedFrame as failure:
            return _fatal(key, str(failure), Detail.FATAL_DESERIALIZING_REQUEST)

    def _read_out_of_band(self, key: CallKey, frame: bytes, offset: int) -> Event | None:
        if key.call_id == PING_CALL_ID:
            return None
        if key.call_id == SASL_CALL_ID:
            return self._read_sasl(key, frame, offset)
        if key.call_id == CONTEXT_CALL_ID:
            return self._read_context(key, frame, offset)
        message = f"Unknown out of band call #{key.call_id}"
        return _fatal(key, message, Detail.FATAL_INVALID_RPC_HEADER)

    def _read_sasl(self, key: CallKey, frame: bytes, offset: int) -> Event:
        if not self._sasl:
            return _fatal(
                key, "SASL protocol not requested by client", Detail.FATAL_INVALID_RPC_HEADER
            )
        data, _ = take_delimited(frame, offset)
        if parse(RpcSaslProto, data).state != RpcSaslProto.NEGOTIATE:
            message = "only SIMPLE authentication is served here"
            return _fatal(key, message, Detail.FATAL_UNAUTHORIZED, ACCESS_CONTROL)
        self._sasl = False
        return Send(encode_sasl_success())

    def _read_context(self, key: CallKey, frame: bytes, offset: int) -> Event:
        if self._phase is Phase.CALLS:
            return _fatal(
                key, "Connection context already processed", Detail.FATAL_INVALID_RPC_HEADER
            )
        if self._sasl:
            message = "Connection header sent during SASL negotiation"
            return _fatal(key, message, Detail.FATAL_INVALID_RPC_HEADER)
        data, _ = take_delimited(frame, offset)
        context = parse(IpcConnectionContextProto, data)
        user = context.userInfo
        if not user.effectiveUser:
            message = "the connection context names no user"
            return _fatal(key, message, Detail.FATAL_UNAUTHORIZED, ACCESS_CONTROL)
        if max(len(user.effectiveUser), len(user.realUser)) > MAX_USER_CHARACTERS:
            message = f"a user's name has at most {MAX_USER_CHARACTERS} characters"
            return _fatal(key, message, Detail.FATAL_UNAUTHORIZED, ACCESS_CONTROL)
        self._phase = Phase.CALLS
        real_user = text(user.realUser) if user.HasField("realUser") else None
        return Greeted(text(user.effectiveUser), real_user, text(context.protocol))


def _read_call(key: CallKey, context: str, frame: bytes, offset: int) -> Asked:
    data, offset = take_delimited(frame, offset)
    # A longer one is the name of no method, and must not be kept.
    named = method_named if len(data) <= _MAX_KEPT_BYTES else method_named.__wrapped__
    request, _ = take_delimited(frame, offset)
    return Asked(key, *named(data), request, context[:MAX_CONTEXT_CHARACTERS])


@lru_cache(maxsize=1000)
def method_named(data: bytes) -> tuple[str, str, int]:
    """Return a call's protocol, method and version; they are the same bytes for each call.

    Raises:
        MalformedFrame: if they are no RequestHeaderProto.
    """
    which = parse(RequestHeaderProto, data)
    return (
        text(which.declaringClassProtocolName),
        text(which.methodName),
        which.clientProtocolVersion,
    )


def _fatal(key: CallKey, reason: str, detail: Detail, java_class: str = RPC_SERVER) -> Hangup:
    # Java repeats the call's id, but not the client's.
    key = CallKey(b"", key.call_id, key.retry_count)
    return Hangup(encode_failure(key, java_class, reason, detail, fatal=True), reason)


_START: Final = b"\x08\x02\x10\x00\x18"
"""A call in protobuf, whole; its number follows."""
_NUMBER_BYTES: Final = 5
_MOST_BYTES: Final = 256
"""A longer one is not cached."""


def objection(header: RpcRequestHeaderProto) -> str | None:
    """Return why Java's server would refuse a frame with this header, in its words, or None."""
    if not header.HasField("rpcOp"):
        return "IPC Server: No rpc op in rpcRequestHeader"
    if header.rpcOp != RpcRequestHeaderProto.RPC_FINAL_PACKET:
        return f"IPC Server does not implement rpc header operation {header.rpcOp}"
    if not header.HasField("rpcKind"):
        return "IPC Server: No rpc kind in rpcRequestHeader"
    if header.callId >= 0 and header.rpcKind != RpcKindProto.RPC_PROTOCOL_BUFFER:
        return f"Unknown rpc kind in rpc header {header.rpcKind}"
    if len(header.clientId) not in (0, CLIENT_ID_BYTES):
        # Java notices only in its retry cache; the id is journaled, so it must not be just any.
        return f"a client id of {len(header.clientId)} bytes"
    return None


def usual_call(data: bytes) -> tuple[CallKey, str] | None:
    """Return a call's key and its CallerContext, or None where the header has to be parsed.

    The calls of a client differ in the call's number alone, so what follows that is parsed once.
    """
    if data[:5] != _START or len(data) > _MOST_BYTES:
        return None
    number = shift = 0
    for at in range(5, min(5 + _NUMBER_BYTES, len(data))):
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    else:
        return None
    if number & 1 or number >> 32:
        return None  # out of band, or no number
    known = _behind_number(data[at + 1 :])
    if known is None:
        return None
    client_id, retry_count, context = known
    return CallKey(client_id, number >> 1, retry_count), context


@lru_cache(maxsize=1000)
def _behind_number(rest: bytes) -> tuple[bytes, int, str] | None:
    """Return client id, retry count and CallerContext; None if the header is not a usual one."""
    try:
        header = parse(RpcRequestHeaderProto, _START + b"\0" + rest)
    except MalformedFrame:
        return None
    if header.callId != 0 or objection(header) is not None:
        return None
    return header.clientId, header.retryCount, text(header.callerContext.context)
