"""Hadoop's QJournalProtocol messages <-> the journal's words; signs and sizes are checked here.

Pure.
"""

from typing import Final

from journal import model
from journal.core import replies, requests
from journal.errors import BadRequest
from journal.frame import file_header
from journal.node.faces.grpc_codec import MAX_TXID, of_bounded_size
from journal.node.owner.edits_cache import Retrieved
from journal.proto import hadoop_qjournal_pb2 as hp

_U32: Final = 1 << 32
_U64: Final = 1 << 64
_PROTOCOLS: Final = "org.apache.hadoop.hdfs.qjournal.protocol"

QJOURNAL_PROTOCOL: Final = f"{_PROTOCOLS}.QJournalProtocol"
INTER_QJOURNAL_PROTOCOL: Final = f"{_PROTOCOLS}.InterQJournalProtocol"


def signed_32(value: int) -> int:
    """Return the int that Java wrote into a uint32.

    See docs/reference/rpc.md#negative-numbers-in-unsigned-fields.
    """
    return value - _U32 if value >= _U32 // 2 else value


def signed_64(value: int) -> int:
    """Return the long that Java wrote into a uint64."""
    return value - _U64 if value >= _U64 // 2 else value


def unsigned_64(value: int) -> int:
    """Return a long for a uint64, as Java writes it."""
    return value % _U64


def txid(value: int) -> model.TxId:
    """Return a received transaction id, or raise BadRequest."""
    number = signed_64(value)
    if not 0 <= number <= MAX_TXID:
        raise BadRequest(f"{number} is not a transaction id")
    return model.TxId(number)


def epoch(value: int) -> model.Epoch:
    """Return a received writer's epoch, or raise BadRequest."""
    number = signed_64(value)
    if not 0 < number <= MAX_TXID:
        raise BadRequest(f"bad epoch: {number}")
    return model.Epoch(number)


def stamp(info: hp.RequestInfoProto) -> requests.Stamp:
    """Decode the writer's stamp.

    Java leaves the committed txid out, or sends -12345, while it knows of none.
    """
    committed: model.TxId | None = None
    if info.HasField("committedTxId") and signed_64(info.committedTxId) != model.NO_TXID:
        committed = txid(info.committedTxId)
    serial = signed_64(info.ipcSerialNumber)
    if serial < 0:
        raise BadRequest(f"{serial} is not a request's number")
    return requests.Stamp(epoch(info.epoch), serial, committed)


def namespace(info: hp.NamespaceInfoProto) -> model.NamespaceInfo:
    """Decode a file system's namespace; the two misfits are the layout and the field's spelling."""
    storage = info.storageInfo
    return of_bounded_size(
        model.NamespaceInfo(
            layout_version=signed_32(storage.layoutVersion),
            namespace_id=storage.namespceID,
            cluster_id=storage.clusterID,
            ctime=storage.cTime,
            block_pool_id=info.blockPoolID,
        )
    )


def storage_info(info: model.NamespaceInfo) -> hp.StorageInfoProto:
    """Encode a file system's namespace for another node."""
    return hp.StorageInfoProto(
        layoutVersion=info.layout_version % _U32,
        namespceID=info.namespace_id,
        clusterID=info.cluster_id,
        cTime=info.ctime,
    )


def start_segment(message: hp.StartLogSegmentRequestProto) -> requests.StartLogSegment:
    """Decode the beginning of a segment; without a layout it is ours."""
    layout = message.layoutVersion if message.HasField("layoutVersion") else model.LAYOUT_VERSION
    return requests.StartLogSegment(stamp(message.reqInfo), txid(message.txid), layout)


def journal(message: hp.JournalRequestProto) -> requests.Journal:
    return requests.Journal(
        stamp(message.reqInfo),
        txid(message.segmentTxnId),
        txid(message.firstTxnId),
        message.numTxns,
        message.records,
    )


def finalize(message: hp.FinalizeLogSegmentRequestProto) -> requests.FinalizeLogSegment:
    """Decode the end of a segment, without a digest, as Java keeps none."""
    return requests.FinalizeLogSegment(
        stamp(message.reqInfo), txid(message.startTxId), txid(message.endTxId), None
    )


def prepared(reply: replies.Prepared) -> hp.PrepareRecoveryResponseProto:
    """Encode what is here of a segment.

    Java ranks copies by the node's last writer.  The writer of the segment itself ranks them
    rightly, also where a newer writer has begun another one here
    (docs/reference/quorum-journal.md#whose-edits-a-segment-holds).
    """
    held = reply.segment
    wrote = reply.writer if held is None or held.writer == model.NO_EPOCH else held.writer
    message = hp.PrepareRecoveryResponseProto(lastWriterEpoch=wrote)
    if held is not None:
        message.segmentState.CopyFrom(_state(held))
    if reply.decision is not None:
        message.acceptedInEpoch = reply.decision.epoch
    if reply.committed != model.NO_TXID:
        message.lastCommittedTxId = reply.committed
    return message


def journaled_edits(found: Retrieved) -> hp.GetJournaledEditsResponseProto:
    """Edits as Java reads them: behind the header of a segment file."""
    return hp.GetJournaledEditsResponseProto(
        txnCount=found.count, editLog=file_header(found.layout_version) + found.records
    )


def manifest(reply: replies.Manifest) -> hp.RemoteEditLogManifestProto:
    return hp.RemoteEditLogManifestProto(
        logs=[
            hp.RemoteEditLogProto(
                startTxId=held.first, endTxId=held.last, isInProgress=not held.finalized
            )
            for held in reply.segments
        ],
        committedTxnId=unsigned_64(reply.committed),
    )


def _state(held: model.Segment) -> hp.SegmentStateProto:
    return hp.SegmentStateProto(
        startTxId=held.first, endTxId=held.last, isInProgress=not held.finalized
    )
