"""Decodes Hadoop's QJournalProtocol, with checks of signs and sizes, and encodes replies.

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
    """Return the uint64 as which Java writes a long."""
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
    """Decode the writer's stamp, or raise BadRequest.

    Java omits the committed txid, or sends -12345 (INVALID_TXID), if no edit is committed yet.
    """
    committed: model.TxId | None = None
    if info.HasField("committedTxId") and signed_64(info.committedTxId) != model.NO_TXID:
        committed = txid(info.committedTxId)
    serial = signed_64(info.ipcSerialNumber)
    if serial < 0:
        raise BadRequest(f"{serial} is not a request's number")
    return requests.Stamp(epoch(info.epoch), serial, committed)


def namespace(info: hp.NamespaceInfoProto) -> model.NamespaceInfo:
    """Decode a NamespaceInfo; Java writes the negative layout version into a uint32."""
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
    """Encode a StorageInfo for another JournalNode."""
    return hp.StorageInfoProto(
        layoutVersion=info.layout_version % _U32,
        namespceID=info.namespace_id,
        clusterID=info.cluster_id,
        cTime=info.ctime,
    )


def start_segment(message: hp.StartLogSegmentRequestProto) -> requests.StartLogSegment:
    """Decode StartLogSegment; the default of the layout version is this release's."""
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
    """Decode FinalizeLogSegment, without a digest, as Java has none."""
    return requests.FinalizeLogSegment(
        stamp(message.reqInfo), txid(message.startTxId), txid(message.endTxId), None
    )


def prepared(reply: replies.Prepared) -> hp.PrepareRecoveryResponseProto:
    """Encode the answer to PrepareRecovery; its lastWriterEpoch is the writer of the segment.

    Java ranks the copies by it.  The node's last writer, which Hadoop sends, may be newer, and then
    ranks this copy too high (docs/reference/quorum-journal.md#whose-edits-a-segment-holds).
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
    """Encode edits for a Java reader, after the header of a segment file."""
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
