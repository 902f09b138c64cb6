"""Protobuf messages <-> the journal's words; the node's edge.  Sizes and signs are checked here."""

from typing import Final

import grpc

from journal.core import replies, requests
from journal.core.state import JournalState
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
from journal.messages import namespace_message, namespace_of, segment_message
from journal.model import LAYOUT_VERSION, NO_TXID, Epoch, NamespaceInfo, Segment, TxId
from journal.node.edits_cache import Retrieved
from journal.proto import journal_pb2 as pb

MAX_MESSAGE_CHARS: Final = 1000
"""gRPC carries a refusal in a header, and headers are small."""
MAX_TXID: Final = 2**62
MAX_ID_CHARS: Final = 500
MAX_READ_LEASE_MICROS: Final = 86_400 * 1_000_000
"""Each new writer may have to wait so long."""


def namespace(message: pb.NamespaceInfo) -> NamespaceInfo:
    """A namespace as it was received."""
    return of_bounded_size(namespace_of(message))


def of_bounded_size(info: NamespaceInfo) -> NamespaceInfo:
    """What a peer gave, if its ids are no longer than any that we keep."""
    if max(len(info.cluster_id), len(info.block_pool_id)) > MAX_ID_CHARS:
        raise BadRequest(f"a cluster id or block pool id of more than {MAX_ID_CHARS} characters")
    return info


def seen_promised(message: pb.FormatRequest) -> Epoch | None:
    """The promise that whoever formats by force has seen."""
    seen = message.HasField("seen_promised_epoch")
    return epoch(message.seen_promised_epoch) if seen else None


def stamp(message: pb.RequestInfo) -> requests.Stamp:
    """Who asks."""
    committed = txid(message.committed_txid) if message.HasField("committed_txid") else None
    writer = _writers_epoch(message.epoch)
    if message.read_lease_micros > MAX_READ_LEASE_MICROS:
        raise BadRequest(f"a read lease of {message.read_lease_micros} microseconds")
    return requests.Stamp(writer, message.serial, committed, message.read_lease_micros)


def new_epoch(message: pb.NewEpochRequest) -> requests.NewEpoch:
    """A proposed writer."""
    writer = _writers_epoch(message.epoch)
    return requests.NewEpoch(namespace(message.namespace_info), writer)


def start_segment(message: pb.StartLogSegmentRequest) -> requests.StartLogSegment:
    """The beginning of a segment; no layout means ours."""
    layout = message.layout_version or LAYOUT_VERSION
    return requests.StartLogSegment(stamp(message.info), txid(message.first_txid), layout)


def write(message: pb.WriteRequest) -> requests.Journal | requests.Heartbeat:
    """A batch or a heartbeat of the write stream."""
    if message.WhichOneof("body") == "batch":
        batch = message.batch
        return requests.Journal(
            stamp(message.info),
            txid(batch.segment_first_txid),
            txid(batch.first_txid),
            batch.count,
            batch.records,
        )
    return requests.Heartbeat(stamp(message.info))


def finalize(message: pb.FinalizeLogSegmentRequest) -> requests.FinalizeLogSegment:
    """The end of a segment."""
    return requests.FinalizeLogSegment(
        stamp(message.info), txid(message.first_txid), txid(message.last_txid), message.digest
    )


def prepare(message: pb.PrepareRecoveryRequest) -> requests.PrepareRecovery:
    """The first round of a recovery."""
    return requests.PrepareRecovery(stamp(message.info), txid(message.segment_first_txid))


def accept(message: pb.AcceptRecoveryRequest) -> requests.AcceptRecovery:
    """The second round of a recovery."""
    return requests.AcceptRecovery(stamp(message.info), segment(message.segment))


def pre_upgrade(message: pb.WriterRequest) -> requests.PreUpgrade:
    """The beginning of an upgrade."""
    return requests.PreUpgrade(stamp(message.info))


def upgrade(message: pb.UpgradeRequest) -> requests.Upgrade:
    """The upgrade itself."""
    return requests.Upgrade(stamp(message.info), namespace(message.namespace_info))


def finalize_upgrade(message: pb.WriterRequest) -> requests.FinalizeUpgrade:
    """Its end."""
    return requests.FinalizeUpgrade(stamp(message.info))


def roll_back(message: pb.WriterRequest) -> requests.RollBack:
    """The way back."""
    return requests.RollBack(stamp(message.info))


def discard(message: pb.DiscardSegmentsRequest) -> requests.DiscardSegments:
    """The edits behind a marker."""
    return requests.DiscardSegments(stamp(message.info), txid(message.first_txid))


def can_roll_back(message: pb.CanRollBackRequest) -> requests.CanRollBack:
    """Whether there is a way back."""
    return requests.CanRollBack(namespace(message.namespace_info), message.target_layout_version)


def purge(message: pb.PurgeLogsRequest) -> requests.PurgeLogs:
    """The edits that nobody needs any more."""
    return requests.PurgeLogs(stamp(message.info), txid(message.min_txid_to_keep))


def resume(message: pb.ResumeSegmentRequest) -> requests.ResumeSegment:
    """The way back into a segment."""
    layout = message.layout_version or LAYOUT_VERSION
    return requests.ResumeSegment(stamp(message.info), txid(message.first_txid), layout)


def resumed(next_txid: TxId, state: JournalState) -> pb.ResumeSegmentReply:
    """Where a node goes on, and whether it counts."""
    return pb.ResumeSegmentReply(
        next_txid=next_txid, is_learner=state.learner, incarnation=state.incarnation
    )


def catch_up(message: pb.CatchUpRequest) -> requests.CatchUp:
    """The longer way back."""
    layout = message.layout_version or LAYOUT_VERSION
    return requests.CatchUp(stamp(message.info), segment(message.segment), layout)


def admit(message: pb.AdmitRequest) -> requests.Admit | requests.AdmitFounding:
    """A vote for a learner, by a writer's word or by an operator's."""
    if message.founding:
        return requests.AdmitFounding(message.incarnation)
    return requests.Admit(
        stamp(message.info),
        message.incarnation,
        tuple(segment(required) for required in message.required),
        txid(message.committed_txid),
        txid(message.purged_txid) if message.HasField("purged_txid") else NO_TXID,
    )


def segment(message: pb.SegmentState) -> Segment:
    """A segment as it was received."""
    return Segment(
        txid(message.first_txid),
        txid(message.last_txid),
        finalized=not message.is_in_progress,
        digest=message.digest,
        writer=epoch(message.writer_epoch),
        layout_version=message.layout_version,
    )


def prepared(reply: replies.Prepared, http_port: int) -> pb.PrepareRecoveryReply:
    """What is here of a segment."""
    message = pb.PrepareRecoveryReply(last_writer_epoch=reply.writer, http_port=http_port)
    if reply.segment is not None:
        message.segment.CopyFrom(segment_message(reply.segment))
    if reply.decision is not None:
        message.accepted_in_epoch = reply.decision.epoch
    if reply.committed != NO_TXID:
        message.committed_txid = reply.committed
    return message


def manifest(reply: replies.Manifest, http_port: int) -> pb.GetEditLogManifestReply:
    """What can be read."""
    message = pb.GetEditLogManifestReply(
        segments=[segment_message(held) for held in reply.segments], http_port=http_port
    )
    if reply.committed != NO_TXID:
        message.committed_txid = reply.committed
    if reply.purged != NO_TXID:
        message.purged_txid = reply.purged
    return message


def journaled_edits(found: Retrieved, committed: TxId) -> pb.GetJournaledEditsReply:
    """Edits from memory."""
    message = pb.GetJournaledEditsReply(
        count=found.count,
        layout_version=found.layout_version,
        records=found.records,
        writers=[pb.WriterRun(last_txid=last, writer_epoch=epoch) for last, epoch in found.writers],
    )
    if committed != NO_TXID:
        message.committed_txid = committed
    return message


def status(
    state: JournalState,
    *,
    http_port: int,
    disk: tuple[int, int],
    failed_because: str | None,
    disk_warning: str | None = None,
) -> pb.JournalStatus:
    """All that a person may want to know; ``disk`` is free and total bytes."""
    message = pb.JournalStatus(
        is_formatted=state.namespace is not None,
        last_promised_epoch=state.promised,
        last_writer_epoch=state.writer,
        http_port=http_port,
        disk_free_bytes=disk[0],
        disk_total_bytes=disk[1],
        incarnation=state.incarnation,
        is_learner=state.learner,
        damaged_segments=sorted(state.damaged),
    )
    if state.namespace is not None:
        message.namespace_info.CopyFrom(namespace_message(state.namespace))
    if state.committed != NO_TXID:
        message.committed_txid = state.committed
    if state.last_written != NO_TXID:
        message.last_written_txid = state.last_written
    if state.open is not None:
        message.open_segment_first_txid = state.open.first
    if failed_because is not None:
        message.failed_because = failed_because
    if disk_warning is not None:
        message.disk_warning = disk_warning
    return message


_KINDS: Final = (
    (NotFormatted, pb.Refusal.NOT_FORMATTED, grpc.StatusCode.FAILED_PRECONDITION),
    (WrongNamespace, pb.Refusal.WRONG_NAMESPACE, grpc.StatusCode.FAILED_PRECONDITION),
    (Fenced, pb.Refusal.FENCED, grpc.StatusCode.ABORTED),
    (OutOfSync, pb.Refusal.OUT_OF_SYNC, grpc.StatusCode.FAILED_PRECONDITION),
    (NotAdmitted, pb.Refusal.NOT_ADMITTED, grpc.StatusCode.FAILED_PRECONDITION),
    (CacheMiss, pb.Refusal.CACHE_MISS, grpc.StatusCode.NOT_FOUND),
    (AheadOfNode, pb.Refusal.AHEAD_OF_NODE, grpc.StatusCode.OUT_OF_RANGE),
    (BadRequest, pb.Refusal.BAD_REQUEST, grpc.StatusCode.INVALID_ARGUMENT),
    (StorageFailed, pb.Refusal.STORAGE_FAILED, grpc.StatusCode.INTERNAL),
    (InvariantBroken, pb.Refusal.INVARIANT_BROKEN, grpc.StatusCode.DATA_LOSS),
    (Unavailable, pb.Refusal.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE),
)


def refusal(error: JournalError) -> tuple[grpc.StatusCode, pb.Refusal]:
    """A no as it is sent: the status for people and proxies, the typed message for the client."""
    message = pb.Refusal(kind=pb.Refusal.UNKNOWN, message=str(error)[:MAX_MESSAGE_CHARS])
    code = grpc.StatusCode.UNAVAILABLE
    for kind, number, status_code in _KINDS:
        if isinstance(error, kind):
            message.kind, code = number, status_code
    if isinstance(error, Fenced):
        message.promised_epoch = error.promised
    if isinstance(error, OutOfSync) and error.expected_txid is not None:
        message.expected_txid = error.expected_txid
    return code, message


def txid(value: int) -> TxId:
    """A transaction id as it was received."""
    if value > MAX_TXID:
        raise BadRequest(f"{value} is not a transaction id")
    return TxId(value)


def _writers_epoch(value: int) -> Epoch:
    if not 0 < value <= MAX_TXID:
        raise BadRequest(f"{value} is not a writer's epoch")
    return Epoch(value)


def epoch(value: int) -> Epoch:
    """An epoch as it was received; 0 is none."""
    if value > MAX_TXID:
        raise BadRequest(f"{value} is not an epoch")
    return Epoch(value)
