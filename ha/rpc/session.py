"""The server's half of a connection: bytes in, events out; no sockets, no clock.

    PREAMBLE ──magic, version──► CONTEXT ──the user───► CALLS
        │                           │                      │
        └───────────── Hangup (with last bytes) ◄──────────┘

A caller that has to prove itself does so before its context (``ha.rpc.sasl.negotiation``).  From
then on all frames may come in pieces that a layer protects.

Events are pulled one at a time, so that a server that is busy leaves the rest unread. Answers to
hostile bytes are those of Java's Server.java: docs/reference/rpc.md#answers-and-refusals.

Pure.
"""

from collections.abc import Sequence
from enum import Enum, auto

from ha.record import dataclass
from ha.rpc.call_header import Asked, objection, read_call, usual_call
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import FrameSplitter, take_delimited
from ha.rpc.java_names import ACCESS_CONTROL, IPC_EXCEPTION, RPC_SERVER, VERSION_MISMATCH
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import (
    AUTH_NONE,
    AUTH_SASL,
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
    RpcRequestHeaderProto,
    RpcSaslProto,
)
from ha.rpc.sasl.negotiation import (
    MAX_TOKEN_BYTES,
    Negotiation,
    Proved,
    Refused,
    available,
    wrapped_token,
)
from ha.security.sasl.mechanism import Challenge, Layer, Proven, SaslFailure
from ha.security.sasl.way import Step, Way

NO_KEY = CallKey(b"", INVALID_CALL_ID, NO_RETRY)

MAX_USER_CHARACTERS = 255
"""Of a name that a caller gives itself.  Linux allows 32; a Kerberos principal has a host in it."""

_MAX_WRAPPED_BYTES = MAX_TOKEN_BYTES + 4096

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


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes the peer must get now."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Hangup:
    """The conversation is over: send ``last`` and close."""

    last: bytes
    reason: str


Event = Greeted | Asked | Send | Hangup | Step | Proved


class Phase(Enum):
    """The phase of the connection."""

    PREAMBLE = auto()
    CONTEXT = auto()
    CALLS = auto()
    OVER = auto()


class ServerSession:
    """Turns one peer's bytes into events.  Never raises for what a peer sends."""

    __slots__ = (
        "_inner",
        "_limits",
        "_negotiation",
        "_phase",
        "_sasl",
        "_simple",
        "_splitter",
        "_ways",
        "layer",
    )  # fmt: skip

    def __init__(self, limits: RpcLimits, ways: Sequence[Way] = (), *, simple: bool = True) -> None:
        """Offer these ways to prove who calls; ``simple``: a caller need not."""
        self._limits = limits
        self._ways = ways
        self._simple = simple
        self._phase = Phase.PREAMBLE
        self._sasl = False
        self._splitter = FrameSplitter()
        self._inner = FrameSplitter()
        self._negotiation: Negotiation | None = None
        self.layer: Layer | None = None
        """What protects all that follows SUCCESS, in both directions."""

    @property
    def phase(self) -> Phase:
        """Where the conversation stands."""
        return self._phase

    @property
    def buffered_bytes(self) -> int:
        """What was received and not yet turned into an event."""
        return self._splitter.buffered_bytes + self._inner.buffered_bytes

    def receive(self, data: bytes) -> None:
        """Take in bytes, in any split."""
        if self._phase is not Phase.OVER:
            self._splitter.feed(data)

    def next_event(self) -> Event | None:
        """Return the next thing that the peer wants, or None until more bytes come."""
        event: Event | None
        while self._phase is not Phase.OVER:
            if self._negotiation is not None and self._negotiation.stepping:
                return None
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

    def answered(self, outcome: Challenge | Proven | SaslFailure) -> Event:
        """Take the outcome of a ``Step``; return what follows from it."""
        assert self._negotiation is not None
        event = self._negotiation.answered(outcome)
        if isinstance(event, Proved) and self._negotiation.proven is not None:
            self.layer = self._negotiation.proven.layer
        return self._event_of(event)

    def _take_frame(self) -> bytes | Hangup | None:
        handshake = self._phase is Phase.CONTEXT
        limits = self._limits
        most = limits.max_handshake_frame_bytes if handshake else limits.max_frame_bytes
        try:
            if self.layer is None:
                return self._splitter.take_frame(most)
            while (frame := self._inner.take_frame(most)) is None:
                piece = self._splitter.take_frame(_MAX_WRAPPED_BYTES)
                text = None if piece is None else self._unwrap(piece, self.layer)
                if not isinstance(text, bytes):
                    return text
                self._inner.feed(text)
        except MalformedFrame as failure:
            # Java closes such a connection without a word, too: the stream is out of step.
            return Hangup(b"", str(failure))
        return frame

    def _unwrap(self, piece: bytes, layer: Layer) -> bytes | Hangup:
        data, end = take_delimited(piece, 0)
        if parse(RpcRequestHeaderProto, data).callId != SASL_CALL_ID:
            message = "Unwrapped message on a connection that wraps"
            return _fatal(NO_KEY, message, Detail.FATAL_INVALID_RPC_HEADER)
        token = wrapped_token(take_delimited(piece, end)[0])
        try:
            return layer.unwrap(token) if isinstance(token, bytes) else _hang_up(token)
        except SaslFailure as failure:
            self.layer = None  # nothing of this stream can be trusted, nor answered
            return Hangup(b"", f"integrity: {failure}")

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
        if not self._sasl and not self._simple:
            message = f"SIMPLE authentication is not enabled.  Available:{available(self._ways)}"
            return _fatal(NO_KEY, message, Detail.FATAL_UNAUTHORIZED, ACCESS_CONTROL)
        if self._sasl and self._ways:
            self._negotiation = Negotiation(self._ways)
        self._phase = Phase.CONTEXT
        return None

    def _read_frame(self, frame: bytes) -> Event | None:
        key = NO_KEY
        try:
            data, end = take_delimited(frame, 0)
            usual = usual_call(data) if self._phase is Phase.CALLS else None
            if usual is not None:
                key, why = usual
                return read_call(key, why, frame, end)
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
            return read_call(key, text(header.callerContext.context), frame, end)
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

    def _read_sasl(self, key: CallKey, frame: bytes, offset: int) -> Event | None:
        if self._negotiation is not None:
            data, _ = take_delimited(frame, offset)
            taken = self._negotiation.take(parse(RpcSaslProto, data))
            if taken is not None:
                return self._event_of(taken)
            self._sasl, self._negotiation = False, None
            return None
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

    def _event_of(self, event: bytes | Step | Proved | Refused) -> Event:
        match event:
            case bytes():
                return Send(event)
            case Refused():
                self._phase = Phase.OVER
                return _hang_up(event)
            case Step() | Proved():
                return event

    def _read_context(self, key: CallKey, frame: bytes, offset: int) -> Event:
        if self._phase is Phase.CALLS:
            return _fatal(
                key, "Connection context already processed", Detail.FATAL_INVALID_RPC_HEADER
            )
        proven = self._negotiation is not None and self._negotiation.proven is not None
        if self._sasl and not proven:
            message = "Connection header sent during SASL negotiation"
            return _fatal(key, message, Detail.FATAL_INVALID_RPC_HEADER)
        data, _ = take_delimited(frame, offset)
        context = parse(IpcConnectionContextProto, data)
        user = context.userInfo
        if not user.effectiveUser and not proven:
            message = "the connection context names no user"
            return _fatal(key, message, Detail.FATAL_UNAUTHORIZED, ACCESS_CONTROL)
        if max(len(user.effectiveUser), len(user.realUser)) > MAX_USER_CHARACTERS:
            message = f"a user's name has at most {MAX_USER_CHARACTERS} characters"
            return _fatal(key, message, Detail.FATAL_UNAUTHORIZED, ACCESS_CONTROL)
        self._phase = Phase.CALLS
        real_user = text(user.realUser) if user.HasField("realUser") else None
        return Greeted(text(user.effectiveUser), real_user, text(context.protocol))


def _fatal(key: CallKey, reason: str, detail: Detail, java_class: str = RPC_SERVER) -> Hangup:
    # Java repeats the call's id, but not the client's.
    key = CallKey(b"", key.call_id, key.retry_count)
    return Hangup(encode_failure(key, java_class, reason, detail, fatal=True), reason)


def _hang_up(refused: Refused) -> Hangup:
    key = CallKey(b"", SASL_CALL_ID, NO_RETRY)
    last = encode_failure(key, refused.java_class, refused.public, refused.detail, fatal=True)
    return Hangup(last, refused.reason or refused.public)
