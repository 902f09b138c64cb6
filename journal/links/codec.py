"""The journal's words <-> protobuf, and gRPC's errors -> ours; the client's edge."""

from collections.abc import Iterable, Mapping
from typing import Final

import grpc

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
from journal.messages import REFUSAL_KEY, segment_of
from journal.model import NO_EPOCH, Epoch, TxId
from journal.proto import journal_pb2 as pb
from journal.recovery import Answer, Empty, Held


def answer_from_wire(reply: pb.PrepareRecoveryReply) -> Answer:
    """What one node said when a recovery was prepared."""
    committed = TxId(reply.committed_txid) if reply.HasField("committed_txid") else None
    if not reply.HasField("segment"):
        return Empty(committed)
    return Held(
        segment=segment_of(reply.segment),
        accepted_in=Epoch(reply.accepted_in_epoch)
        if reply.HasField("accepted_in_epoch")
        else NO_EPOCH,
        committed=committed,
    )


_PLAIN: Final[Mapping[int, type[JournalError]]] = {
    pb.Refusal.NOT_FORMATTED: NotFormatted,
    pb.Refusal.WRONG_NAMESPACE: WrongNamespace,
    pb.Refusal.BAD_REQUEST: BadRequest,
    pb.Refusal.STORAGE_FAILED: StorageFailed,
    pb.Refusal.INVARIANT_BROKEN: InvariantBroken,
    pb.Refusal.NOT_ADMITTED: NotAdmitted,
    pb.Refusal.CACHE_MISS: CacheMiss,
    pb.Refusal.AHEAD_OF_NODE: AheadOfNode,
    pb.Refusal.UNAVAILABLE: Unavailable,
}
"""The refusals that carry no fact but their kind."""


def refusal_to_error(refusal: pb.Refusal) -> JournalError:
    """A node's no, as the error that it means.  Decided by kind, never by the message."""
    text = refusal.message
    match refusal.kind:
        case pb.Refusal.FENCED:
            return Fenced(text, promised=Epoch(refusal.promised_epoch))
        case pb.Refusal.OUT_OF_SYNC:
            expected = TxId(refusal.expected_txid) if refusal.HasField("expected_txid") else None
            return OutOfSync(text, expected_txid=expected)
        case kind if kind in _PLAIN:
            return _PLAIN[kind](text)
        case _:
            return Unavailable(f"refused for a reason that this version does not know: {text}")


def rpc_error(
    code: grpc.StatusCode, details: str | None, metadata: Iterable[tuple[str, str | bytes]] | None
) -> JournalError:
    """A failed call as our error: a typed refusal if it carries one, else a silence."""
    for key, value in metadata or ():
        if key == REFUSAL_KEY and isinstance(value, bytes):
            return refusal_to_error(pb.Refusal.FromString(value))
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unavailable("no answer in time")
    # gRPC wraps the cause of a failed connection in its own history; the end of it is the cause.
    cause = details or ""
    for history in ("last error: ", "remote host: ", "connect: "):
        cause = cause.rpartition(history)[2]
    return Unavailable(f"{cause} [{code.name}]" if cause else code.name)
