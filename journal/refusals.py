"""How each kind of refusal is sent to our client and Java, and shown to proxies and in metrics."""

import base64
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from ha.record import dataclass
from ha.rpc import java_names
from ha.rpc.errors import RemoteFault
from journal.errors import (
    AheadOfNode,
    BadRequest,
    CacheMiss,
    Fenced,
    InvariantBroken,
    JournalError,
    NotAdmitted,
    NotFormatted,
    OutOfSync,
    StorageFailed,
    Unavailable,
    WrongNamespace,
)
from journal.model import Epoch, TxId
from journal.proto import journal_pb2 as pb

REFUSAL_KEY: Final = "nnha-refusal-bin"
"""The trailing metadata of gRPC that holds a typed refusal."""
REFUSAL: Final = pb.Refusal.DESCRIPTOR.full_name
"""Stands where an answer of Hadoop RPC names a Java class; the message is a Refusal in base64."""
MAX_MESSAGE_CHARS: Final = 1000
"""gRPC carries a refusal in a header, and headers are small."""

_QJOURNAL: Final = "org.apache.hadoop.hdfs.qjournal"
NOT_FORMATTED: Final = f"{_QJOURNAL}.protocol.JournalNotFormattedException"
OUT_OF_SYNC: Final = f"{_QJOURNAL}.protocol.JournalOutOfSyncException"
CACHE_MISS: Final = f"{_QJOURNAL}.server.JournaledEditsCache$CacheMissException"
NEWER_TXID: Final = f"{_QJOURNAL}.server.NewerTxnIdException"
# Java's writer stops at once when any node reports this, as ours does.
ASSERTION: Final = "java.lang.AssertionError"

_Code = grpc.StatusCode
_Sent = pb.Refusal


@dataclass(frozen=True, slots=True)
class RefusalKind:
    """One kind of refusal: what is sent, and ``label``, its name in metrics and logs.

    Where Java has no class of its own, as for a fence, it gets an IOException with nothing but its
    text.
    """

    error: type[JournalError]
    number: pb.Refusal.Kind.ValueType
    status: grpc.StatusCode
    label: str
    java_class: str = java_names.IO_EXCEPTION


KINDS: Final = (
    RefusalKind(
        NotFormatted, _Sent.NOT_FORMATTED, _Code.FAILED_PRECONDITION, "not_formatted", NOT_FORMATTED
    ),
    RefusalKind(
        WrongNamespace, _Sent.WRONG_NAMESPACE, _Code.FAILED_PRECONDITION, "wrong_namespace"
    ),
    RefusalKind(Fenced, _Sent.FENCED, _Code.ABORTED, "fenced"),
    RefusalKind(
        OutOfSync, _Sent.OUT_OF_SYNC, _Code.FAILED_PRECONDITION, "out_of_order", OUT_OF_SYNC
    ),
    RefusalKind(NotAdmitted, _Sent.NOT_ADMITTED, _Code.FAILED_PRECONDITION, "not_admitted"),
    RefusalKind(CacheMiss, _Sent.CACHE_MISS, _Code.NOT_FOUND, "cache_miss", CACHE_MISS),
    RefusalKind(AheadOfNode, _Sent.AHEAD_OF_NODE, _Code.OUT_OF_RANGE, "ahead_of_node", NEWER_TXID),
    RefusalKind(
        BadRequest,
        _Sent.BAD_REQUEST,
        _Code.INVALID_ARGUMENT,
        "bad_request",
        java_names.ILLEGAL_ARGUMENT,
    ),
    RefusalKind(StorageFailed, _Sent.STORAGE_FAILED, _Code.INTERNAL, "storage_failed"),
    RefusalKind(
        InvariantBroken, _Sent.INVARIANT_BROKEN, _Code.DATA_LOSS, "invariant_broken", ASSERTION
    ),
    RefusalKind(Unavailable, _Sent.UNAVAILABLE, _Code.UNAVAILABLE, "other"),
)
_UNKNOWN: Final = RefusalKind(JournalError, _Sent.UNKNOWN, _Code.UNAVAILABLE, "other")
_BY_NUMBER: Final = {kind.number: kind for kind in KINDS}


def kind_of(error: JournalError) -> RefusalKind:
    return next((kind for kind in KINDS if isinstance(error, kind.error)), _UNKNOWN)


def refusal(error: JournalError) -> pb.Refusal:
    """Encode a refusal for our own client."""
    message = pb.Refusal(kind=kind_of(error).number, message=str(error)[:MAX_MESSAGE_CHARS])
    if isinstance(error, Fenced):
        message.promised_epoch = error.promised
    if isinstance(error, OutOfSync) and error.expected_txid is not None:
        message.expected_txid = error.expected_txid
    return message


def error_of(refusal: pb.Refusal) -> JournalError:
    """Decode a node's refusal into our error.  Decided by kind, never by the message."""
    text = refusal.message
    match refusal.kind:
        case pb.Refusal.FENCED:
            return Fenced(text, promised=Epoch(refusal.promised_epoch))
        case pb.Refusal.OUT_OF_SYNC:
            expected = TxId(refusal.expected_txid) if refusal.HasField("expected_txid") else None
            return OutOfSync(text, expected_txid=expected)
        case number if number in _BY_NUMBER:
            return _BY_NUMBER[number].error(text)
        case _:
            return Unavailable(f"refused for a reason that this version does not know: {text}")


def java_fault(error: JournalError) -> RemoteFault:
    """Encode a refusal as Hadoop's client knows it."""
    return RemoteFault(kind_of(error).java_class, str(error)[:MAX_MESSAGE_CHARS])


def own_fault(error: JournalError) -> RemoteFault:
    """Encode a refusal for our own client over Hadoop RPC."""
    return RemoteFault(REFUSAL, base64.b64encode(refusal(error).SerializeToString()).decode())


def error_of_fault(fault: RemoteFault) -> JournalError:
    """Decode a node's refusal over Hadoop RPC; any other error of a server is Unavailable."""
    if fault.java_class != REFUSAL:
        return Unavailable(str(fault))
    try:
        return error_of(pb.Refusal.FromString(base64.b64decode(fault.message)))
    except (ValueError, DecodeError) as failure:
        return Unavailable(f"a refusal that cannot be read: {failure}")
