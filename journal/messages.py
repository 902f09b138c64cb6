"""How namespaces and segments stand in messages: on both sides of the wire, and on disk."""

from journal.model import Epoch, NamespaceInfo, Segment, TxId
from journal.proto import journal_pb2 as pb


def namespace_message(info: NamespaceInfo) -> pb.NamespaceInfo:
    return pb.NamespaceInfo(
        layout_version=info.layout_version,
        namespace_id=info.namespace_id,
        cluster_id=info.cluster_id,
        ctime=info.ctime,
        block_pool_id=info.block_pool_id,
    )


def namespace_of(message: pb.NamespaceInfo) -> NamespaceInfo:
    return NamespaceInfo(
        layout_version=message.layout_version,
        namespace_id=message.namespace_id,
        cluster_id=message.cluster_id,
        ctime=message.ctime,
        block_pool_id=message.block_pool_id,
    )


def segment_message(segment: Segment) -> pb.SegmentState:
    return pb.SegmentState(
        first_txid=segment.first,
        last_txid=segment.last,
        is_in_progress=not segment.finalized,
        digest=segment.digest,
        writer_epoch=segment.writer,
        layout_version=segment.layout_version,
    )


def segment_of(message: pb.SegmentState) -> Segment:
    return Segment(
        first=TxId(message.first_txid),
        last=TxId(message.last_txid),
        finalized=not message.is_in_progress,
        digest=message.digest,
        writer=Epoch(message.writer_epoch),
        layout_version=message.layout_version,
    )
