"""What both sides of the wire put into messages in the same way: namespaces and segments."""

from typing import Final

from journal.model import NamespaceInfo, Segment
from journal.proto import journal_pb2 as pb

REFUSAL_KEY: Final = "nnha-refusal-bin"
"""The trailing metadata of gRPC that holds a typed refusal."""


def namespace_message(info: NamespaceInfo) -> pb.NamespaceInfo:
    """A namespace as it is sent."""
    return pb.NamespaceInfo(
        layout_version=info.layout_version,
        namespace_id=info.namespace_id,
        cluster_id=info.cluster_id,
        ctime=info.ctime,
        block_pool_id=info.block_pool_id,
    )


def segment_message(segment: Segment) -> pb.SegmentState:
    """A segment as it is sent."""
    return pb.SegmentState(
        first_txid=segment.first,
        last_txid=segment.last,
        is_in_progress=not segment.finalized,
        digest=segment.digest,
        writer_epoch=segment.writer,
        layout_version=segment.layout_version,
    )
