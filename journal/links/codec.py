"""The journal's words <-> protobuf, and gRPC's errors -> ours; the client's edge."""

from collections.abc import Iterable

import grpc

from journal.errors import JournalError, Unavailable
from journal.messages import segment_of
from journal.model import NO_EPOCH, Epoch, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.recovery import Answer, Copy, Empty, HeldSegment, Skip
from journal.refusals import REFUSAL_KEY, error_of


def answer_from_wire(reply: pb.PrepareRecoveryReply) -> Answer:
    """Return what one node answered when a recovery was prepared."""
    committed = TxId(reply.committed_txid) if reply.HasField("committed_txid") else None
    if not reply.HasField("segment"):
        return Empty(committed)
    return HeldSegment(
        segment=segment_of(reply.segment),
        accepted_in=Epoch(reply.accepted_in_epoch)
        if reply.HasField("accepted_in_epoch")
        else NO_EPOCH,
        committed=committed,
    )


def rpc_error(
    code: grpc.StatusCode, details: str | None, metadata: Iterable[tuple[str, str | bytes]] | None
) -> JournalError:
    """Return a failed call as our error: a typed refusal if it carries one, else Unavailable."""
    for key, value in metadata or ():
        if key == REFUSAL_KEY and isinstance(value, bytes):
            return error_of(pb.Refusal.FromString(value))
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unavailable("no answer in time")
    # gRPC wraps the cause of a failed connection in its own history; the end of it is the cause.
    cause = details or ""
    for history in ("last error: ", "remote host: ", "connect: "):
        cause = cause.rpartition(history)[2]
    if "timed out" in cause:  # a process that hangs while its kernel takes the connection
        return Unavailable("no answer in time")
    return Unavailable(f"{cause} [{code.name}]" if cause else code.name)


def brief(told: Answer | Copy | Skip) -> str:
    """Return a node's answer, or the decision, of a recovery in a few words for a log line."""
    match told:
        case Skip() | Empty():
            return "none"
        case Copy():
            return f"{_name(told.segment)} from {', '.join(told.sources)}"
        case HeldSegment():
            return f"{_name(told.segment)} writer {told.segment.writer} accepted {told.accepted_in}"


def _name(segment: Segment) -> str:
    state = "finalized" if segment.finalized else "in progress"
    return f"{segment.first}-{segment.last} {state} {segment.digest.hex()[:16]}"
