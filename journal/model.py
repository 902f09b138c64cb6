"""The journal's words: epochs, transaction ids, segments and who stores them."""

from typing import NewType

from ha.record import dataclass

Epoch = NewType("Epoch", int)
"""A writer's number.  Each new writer gets a larger one; 0 means "none yet"."""

TxId = NewType("TxId", int)
"""The number of one edit.  The first edit of a namespace is 1."""

NodeName = NewType("NodeName", str)
"""One JournalNode as the operator wrote it: ``host:port``."""

JournalId = NewType("JournalId", str)
"""The journal's name on a node, by custom the nameservice id."""

NO_EPOCH = Epoch(0)
MAX_EPOCH_LEAP = 1 << 20
"""How far above its promise a node takes an epoch; a new writer's is one above the highest."""
NO_TXID = TxId(-12345)
"""Hadoop's INVALID_TXID: there is no such transaction (HdfsServerConstants)."""

LAYOUT_VERSION = -65
"""What we write at least: the newest layout that Hadoop 3.2 and later all read.

See docs/reference/formats.md#layout-versions.
"""


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """Which file system a journal belongs to; Hadoop's NamespaceInfo."""

    layout_version: int
    namespace_id: int
    cluster_id: str
    ctime: int
    block_pool_id: str = ""

    @property
    def edits_layout(self) -> int:
        """The layout that edits are written in.

        No older one than its own: only software that reads that can start from this storage.
        """
        return min(self.layout_version, LAYOUT_VERSION)

    def storage_info(self) -> str:
        """Return the form used in HTTP requests: ``layout:namespace:ctime:cluster``."""
        return f"{self.layout_version}:{self.namespace_id}:{self.ctime}:{self.cluster_id}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of edits in one file, as one node holds it.

    ``digest`` is the SHA-256 over the framed ops from ``first`` to ``last`` (file header and
    padding left out), so that two nodes with equal txids and different bytes are distinguished
    (docs/reference/quorum-journal.md#equal-length-is-not-equal-content).  It is empty only where it
    has not been computed yet.  ``writer`` is the epoch that started the segment, NO_EPOCH where
    that was never recorded (a file that Hadoop wrote).  ``layout_version`` is what the file's
    header must say, 0 where that was never recorded.
    """

    first: TxId
    last: TxId
    finalized: bool
    digest: bytes = b""
    writer: Epoch = NO_EPOCH
    layout_version: int = 0

    def holds(self, txid: TxId) -> bool:
        """Return whether that transaction lies in this segment."""
        return self.first <= txid <= self.last

    def name(self) -> str:
        """Hadoop's file name for it."""
        if self.finalized:
            return f"edits_{self.first:019d}-{self.last:019d}"
        return f"edits_inprogress_{self.first:019d}"
