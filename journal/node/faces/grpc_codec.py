"""Decodes messages of ``journal.proto``, with checks of sizes and signs, and encodes replies."""

from typing import Final

from journal.core import replies, requests
from journal.core.state import JournalState
from journal.errors import BadRequest
from journal.lane import Offer
from journal.messages import namespace_message, namespace_of, segment_message
from journal.model import NO_TXID, Epoch, NamespaceInfo, Segment, TxId
from journal.node.owner.edits_cache import Retrieved
from journal.proto import journal_pb2 as pb

MAX_TXID: Final = 2**62
MAX_ID_CHARS: Final = 500


def namespace(message: pb.NamespaceInfo) -> NamespaceInfo:
    """Decode a namespace, or raise BadRequest if its ids are too long."""
    return of_bounded_size(namespace_of(message))


def of_bounded_size(info: NamespaceInfo) -> NamespaceInfo:
    """Return the namespace, or raise BadRequest if an id has more than ``MAX_ID_CHARS``."""
    if max(len(info.cluster_id), len(info.block_pool_id)) > MAX_ID_CHARS:
        raise BadRequest(f"a cluster id or block pool id of more than {MAX_ID_CHARS} characters")
    return info


def seen_promised(message: pb.FormatRequest) -> Epoch | None:
    """Return the promise that the caller of a forced format has seen; None if it sent none."""
    seen = message.HasField("seen_promised_epoch")
    return epoch(message.seen_promised_epoch) if seen else None


def stamp(message: pb.RequestInfo) -> requests.Stamp:
    committed = txid(message.committed_txid) if message.HasField("committed_txid") else None
    writer = _writers_epoch(message.epoch)
    namespace_id = message.namespace_id if message.HasField("namespace_id") else None
    return requests.Stamp(
        writer, message.serial, committed, message.read_lease_micros, namespace_id
    )


def new_epoch(message: pb.NewEpochRequest) -> requests.NewEpoch:
    writer = _writers_epoch(message.epoch)
    return requests.NewEpoch(namespace(message.namespace_info), writer)


def write(message: pb.WriteRequest) -> requests.Journal | requests.Heartbeat:
    """Decode a batch or a heartbeat of the write stream."""
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


def resumed(next_txid: TxId, state: JournalState, lanes: Offer) -> pb.ResumeSegmentReply:
    """Encode the next txid, whether the node is a learner, and its offer of write lanes."""
    return pb.ResumeSegmentReply(
        next_txid=next_txid,
        is_learner=state.learner,
        incarnation=state.incarnation,
        lane_port=lanes.port,
        lane_key=lanes.key,
    )


def admit(message: pb.AdmitRequest) -> requests.Admit | requests.AdmitFounding:
    """Decode the request of a writer, or with ``founding`` of an operator, to admit a learner."""
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
    return Segment(
        txid(message.first_txid),
        txid(message.last_txid),
        finalized=not message.is_in_progress,
        digest=message.digest,
        writer=epoch(message.writer_epoch),
        layout_version=message.layout_version,
    )


def prepared(reply: replies.Prepared, http_port: int) -> pb.PrepareRecoveryReply:
    message = pb.PrepareRecoveryReply(last_writer_epoch=reply.writer, http_port=http_port)
    if reply.segment is not None:
        message.segment.CopyFrom(segment_message(reply.segment))
    if reply.decision is not None:
        message.accepted_in_epoch = reply.decision.epoch
    if reply.committed != NO_TXID:
        message.committed_txid = reply.committed
    return message


def manifest(reply: replies.Manifest, http_port: int) -> pb.GetEditLogManifestReply:
    message = pb.GetEditLogManifestReply(
        segments=[segment_message(held) for held in reply.segments], http_port=http_port
    )
    if reply.committed != NO_TXID:
        message.committed_txid = reply.committed
    if reply.purged != NO_TXID:
        message.purged_txid = reply.purged
    return message


def journaled_edits(found: Retrieved, committed: TxId) -> pb.GetJournaledEditsReply:
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
    write_lanes: int = 0,
    daemon: pb.Daemon | None = None,
) -> pb.JournalStatus:
    """Encode the status for operators; ``disk`` has free and total bytes."""
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
        write_lanes=write_lanes,
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
    if daemon is not None:
        message.daemon.CopyFrom(daemon)
    return message


def txid(value: int) -> TxId:
    """Return a received transaction id, or raise BadRequest."""
    if value > MAX_TXID:
        raise BadRequest(f"{value} is not a transaction id")
    return TxId(value)


def _writers_epoch(value: int) -> Epoch:
    if not 0 < value <= MAX_TXID:
        raise BadRequest(f"{value} is not a writer's epoch")
    return Epoch(value)


def epoch(value: int) -> Epoch:
    """Return a received epoch, or raise BadRequest; 0 is none."""
    if value > MAX_TXID:
        raise BadRequest(f"{value} is not an epoch")
    return Epoch(value)
