"""The header of a call: which method is asked for, and why; parsed once for calls that are alike.

Pure.
"""

from functools import lru_cache
from typing import Final

from ha.record import record
from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import take_delimited
from ha.rpc.packets import CLIENT_ID_BYTES, CallKey, parse, text
from ha.rpc.proto.rpc_header_pb2 import RequestHeaderProto, RpcKindProto, RpcRequestHeaderProto

MAX_CONTEXT_CHARACTERS = 200
"""Hadoop allows 128 by default (hadoop.caller.context.max.size)."""

_MAX_KEPT_BYTES: Final = 256
_START: Final = b"\x08\x02\x10\x00\x18"
"""A call in protobuf, whole; its number follows."""
_NUMBER_BYTES: Final = 5
_MOST_BYTES: Final = 256
"""A longer one is not cached."""


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


def read_call(key: CallKey, context: str, frame: bytes, offset: int) -> Asked:
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
