"""Requests and answers as bytes: the envelope of Hadoop RPC, both ways.

See docs/reference/rpc.md#frames.
"""

from enum import IntEnum
from functools import cache, lru_cache
from typing import TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ha.record import dataclass, record
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import frame_of, take_delimited, varint
from ha.rpc.proto import rpc_header_pb2
from ha.security.sasl.mechanism import Layer

MAGIC = b"hrpc"
VERSION = 9
PREAMBLE_BYTES = 7
CLIENT_ID_BYTES = 16
AUTH_NONE = 0x00
AUTH_SASL = 0xDF

CONTEXT_CALL_ID = -3
PING_CALL_ID = -4
SASL_CALL_ID = -33
INVALID_CALL_ID = -1
NO_RETRY = -1

PREAMBLE = MAGIC + bytes((VERSION, 0, AUTH_NONE))
"""What a client without tokens opens with."""

SASL_PREAMBLE = MAGIC + bytes((VERSION, 0, AUTH_SASL))

_U32 = 1 << 32
_CLIENT_PROTOCOL_VERSION = 1
_WRAPPED = b"\x08" + varint(SASL_CALL_ID % _U32) + b"\x10\x00"
"""The header of a wrapped answer: Java writes the number and the status alone."""

M = TypeVar("M", bound=Message)


class Status(IntEnum):
    """How a call ended; after FATAL the server closes the connection."""

    SUCCESS = 0
    ERROR = 1
    FATAL = 2


class Detail(IntEnum):
    """RpcErrorCodeProto: where it went wrong."""

    ERROR_APPLICATION = 1
    ERROR_NO_SUCH_METHOD = 2
    ERROR_NO_SUCH_PROTOCOL = 3
    ERROR_RPC_SERVER = 4
    ERROR_SERIALIZING_RESPONSE = 5
    ERROR_RPC_VERSION_MISMATCH = 6
    FATAL_UNKNOWN = 10
    FATAL_UNSUPPORTED_SERIALIZATION = 11
    FATAL_INVALID_RPC_HEADER = 12
    FATAL_DESERIALIZING_REQUEST = 13
    FATAL_VERSION_MISMATCH = 14
    FATAL_UNAUTHORIZED = 15


@record
class CallKey:
    """What an answer repeats of its request.  Equal over all retries but for the count."""

    client_id: bytes
    call_id: int
    retry_count: int


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """A decoded answer: the response's bytes, or the error."""

    call_id: int
    client_id: bytes
    status: Status
    body: bytes = b""
    java_class: str = ""
    message: str = ""
    detail: int = 0


def parse(kind: type[M], data: bytes) -> M:
    """Parse a message from its bytes, with all its required fields.

    Raises:
        MalformedFrame: if they are not that message.
    """
    try:
        message = kind.FromString(data)
    except DecodeError as failure:
        raise MalformedFrame(f"not a {kind.DESCRIPTOR.name}: {failure}") from failure
    if not message.IsInitialized():
        raise MalformedFrame(f"a {kind.DESCRIPTOR.name} without one of its required fields")
    return message


def parse_request(kind: type[M], data: bytes) -> M:
    """Parse a caller's message, whose strings must be UTF-8.

    The bad schedule: protobuf hands out bytes where UTF-8 is broken; a handler finds out only where
    it uses such a name, perhaps after it has carried out half of the call.

    Raises:
        MalformedFrame: if it is not that message, or one of its strings is not UTF-8.
    """
    message = parse(kind, data)
    if not data.isascii():
        _require_text(message)
    return message


def _require_text(message: Message) -> None:
    for name, repeated, inside in _with_text(message.DESCRIPTOR):
        value = getattr(message, name)
        for one in value if repeated else (value,):
            if inside:
                _require_text(one)
            elif type(one) is bytes:
                raise MalformedFrame(f"{message.DESCRIPTOR.full_name}.{name} is not UTF-8")


@cache
def _with_text(kind: Descriptor) -> tuple[tuple[str, bool, bool], ...]:
    """Return the fields with text in them: name, whether repeated, whether messages.

    No message is recursive.
    """
    found = []
    for field in kind.fields:
        inside = field.message_type
        if field.type == FieldDescriptor.TYPE_STRING or (inside and _with_text(inside)):
            found.append((field.name, field.is_repeated, inside is not None))
    return tuple(found)


def text(value: str | bytes) -> str:
    """Return a string field's value; protobuf gives bytes where the peer's UTF-8 is broken."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def encode_call(
    key: CallKey, protocol: str, method: str, request: bytes, context: str = ""
) -> bytes:
    """Encode a client's call as a frame; ``context`` says why it calls, for logs."""
    header = _request_header(key, context)
    which = rpc_header_pb2.RequestHeaderProto(
        methodName=method,
        declaringClassProtocolName=protocol,
        clientProtocolVersion=_CLIENT_PROTOCOL_VERSION,
    )
    return frame_of(header, which.SerializeToString(), request)


def encode_context(client_id: bytes, protocol: str, user: str, real_user: str | None) -> bytes:
    """Encode the frame that names the caller; it follows the preamble and has no answer."""
    context = rpc_header_pb2.IpcConnectionContextProto(protocol=protocol)
    context.userInfo.effectiveUser = user
    if real_user is not None:
        context.userInfo.realUser = real_user
    header = _request_header(CallKey(client_id, CONTEXT_CALL_ID, NO_RETRY))
    return frame_of(header, context.SerializeToString())


def _request_header(key: CallKey, context: str = "") -> bytes:
    header = rpc_header_pb2.RpcRequestHeaderProto(
        rpcKind=rpc_header_pb2.RpcKindProto.RPC_PROTOCOL_BUFFER,
        rpcOp=rpc_header_pb2.RpcRequestHeaderProto.RPC_FINAL_PACKET,
        callId=key.call_id,
        clientId=key.client_id,
        retryCount=key.retry_count,
    )
    if context:
        header.callerContext.context = context
    return header.SerializeToString()


SASL_HEADER = _request_header(CallKey(b"", SASL_CALL_ID, NO_RETRY))


def encode_success(key: CallKey, response: bytes) -> bytes:
    """Encode a server's answer with the method's response."""
    header = b"\x08" + varint(key.call_id % _U32) + _success(key.client_id, key.retry_count)
    return frame_of(header, response)


@lru_cache(maxsize=1000)
def _success(client_id: bytes, retry_count: int) -> bytes:
    """Encode an answer's header after the call's number, in which alone a client's calls vary."""
    header = rpc_header_pb2.RpcResponseHeaderProto(
        callId=0,
        status=rpc_header_pb2.RpcResponseHeaderProto.SUCCESS,
        serverIpcVersionNum=VERSION,
        clientId=client_id,
        retryCount=retry_count,
    )
    return header.SerializeToString().removeprefix(b"\x08\x00")


def encode_failure(
    key: CallKey, java_class: str, message: str, detail: Detail, *, fatal: bool = False
) -> bytes:
    """Encode a server's answer with an error; nothing follows its header."""
    header = rpc_header_pb2.RpcResponseHeaderProto(
        callId=key.call_id % _U32,
        status=rpc_header_pb2.RpcResponseHeaderProto.FATAL
        if fatal
        else rpc_header_pb2.RpcResponseHeaderProto.ERROR,
        serverIpcVersionNum=VERSION,
        exceptionClassName=java_class,
        errorMsg=message.encode("utf-8", "replace").decode(),
        errorDetail=rpc_header_pb2.RpcResponseHeaderProto.RpcErrorCodeProto.ValueType(detail),
        clientId=key.client_id,
        retryCount=key.retry_count,
    )
    return frame_of(header.SerializeToString())


def encode_sasl(message: rpc_header_pb2.RpcSaslProto) -> bytes:
    """Encode a server's part of a negotiation."""
    return encode_success(CallKey(b"", SASL_CALL_ID, NO_RETRY), message.SerializeToString())


def encode_sasl_success() -> bytes:
    """Encode the answer that sends a client with tokens back to SIMPLE.

    See docs/reference/rpc.md#sasl.
    """
    return encode_sasl(rpc_header_pb2.RpcSaslProto(state=rpc_header_pb2.RpcSaslProto.SUCCESS))


def encode_wrapped(data: bytes, layer: Layer, header: bytes | None = None) -> bytes:
    """Encode answers, or under another header calls, in pieces; send them in the order of calls."""
    size, wrap = layer.max_plain_bytes, rpc_header_pb2.RpcSaslProto.WRAP
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    said = [rpc_header_pb2.RpcSaslProto(state=wrap, token=layer.wrap(one)) for one in pieces]
    return b"".join([frame_of(header or _WRAPPED, one.SerializeToString()) for one in said])


def encode_sasl_request(message: rpc_header_pb2.RpcSaslProto) -> bytes:
    """Encode a client's part of a negotiation."""
    return frame_of(SASL_HEADER, message.SerializeToString())


def decode_answer(frame: bytes) -> CallAnswer:
    """Decode a server's frame for the client.

    Raises:
        MalformedFrame: if it is not an answer.
    """
    data, end = take_delimited(frame, 0)
    header = parse(rpc_header_pb2.RpcResponseHeaderProto, data)
    if not header.HasField("status"):
        raise MalformedFrame("an answer with an unknown status")
    status = Status(header.status)
    call_id = header.callId if header.callId < _U32 // 2 else header.callId - _U32
    if status is Status.SUCCESS:
        body, _ = take_delimited(frame, end)
        return CallAnswer(call_id, header.clientId, status, body)
    return CallAnswer(
        call_id,
        header.clientId,
        status,
        java_class=text(header.exceptionClassName),
        message=text(header.errorMsg),
        detail=header.errorDetail,
    )
