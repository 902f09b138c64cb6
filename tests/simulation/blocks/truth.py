"""What the durable edits say of blocks, kept without any of the product's maps."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from datanode.model import BeingWritten
from journal.model import TxId
from namenode_sim.edits.ops import Op, UpdateBlocks
from namenode_sim.namespace import changes as namespace_changes
from namenode_sim.namespace.namespace import Namespace
from tests.simulation.blocks.disks import Stored, is_whole, original


@dataclass(slots=True)
class Known:
    """A block as the durable edits have it, and as its writers count on it.

    ``wanted`` are the replications that it had, each with the time from which on; ``lost`` counts
    good replicas on disks that were lost for good, and ``excused`` is how many may be.  ``ended``
    are stamps of pipelines of which no good replica is left.
    """

    file_id: int
    stamp: int
    length: int
    complete: bool
    wanted: list[tuple[float, int]]
    excused: int
    acked: int = 0
    lost: int = 0
    complete_since: float = 0.0
    ended: set[int] = field(default_factory=set)

    @property
    def may_be_lost(self) -> bool:
        """Return whether too many disks with a good replica were lost for one to be left.

        Those outside of a pipeline are as if lost once an edit says that it has gone on.
        """
        return self.lost >= self.excused or self.stamp in self.ended

    def least_wanted(self, since: float) -> int:
        """Return the smallest replication that it has had since then."""
        later = [number for at, number in self.wanted if at > since]
        before = [number for at, number in self.wanted if at <= since]
        return min(*later, before[-1]) if before and later else min(later or before[-1:])


@dataclass(slots=True)
class Truth:
    """The durable namespace, and its blocks."""

    namespace: Namespace
    clock: Callable[[], float]
    blocks: dict[int, Known] = field(default_factory=dict)
    content: dict[int, bytes] = field(default_factory=dict)
    """What writers have sent for each block."""
    touched: set[int] = field(default_factory=set)
    """The blocks that the last edit has changed."""
    dropped: dict[int, Known] = field(default_factory=dict)
    """The blocks with acknowledged bytes that the last edit took out of an open file."""
    _op: Op | None = None

    def begin(self) -> None:
        """Listen to the namespace's changes of blocks."""
        self.namespace.watch_blocks()
        self.namespace.follower = self._follow

    def is_good(self, block_id: int, known: Known, stored: Stored) -> bool:
        """Return whether a replica has all bytes that its writers count on, under the stamp of the
        edits.
        """
        replica, content = stored.replica, self.content.get(block_id, b"")
        if known.complete:
            fits = replica.block.stamp == known.stamp and replica.length == known.length
            return fits and is_whole(replica) and stored.data == content[: known.length]
        enough = replica.block.stamp >= known.stamp and replica.length >= known.acked
        return enough and stored.data[: known.acked] == content[: known.acked]

    def note_sent(self, block_id: int, start: int, payload: bytes) -> None:
        self.content[block_id] = self.content.get(block_id, b"")[:start] + payload

    def note_cut(self, made: Stored, there: Sequence[tuple[bool, Stored]]) -> None:
        """Excuse what a recovery cuts; ``there`` are all replicas of the block, and whether their
        nodes run.

        A recovery takes the shortest replica where every process that wrote has ended, as Hadoop's
        does (BlockRecoveryWorker.syncBlock): nothing shows which machine has lost its power since.
        While one of them goes on, or a replica is whole, that is no excuse.
        """
        block_id, length = made.replica.block.block_id, made.replica.length
        known = self.blocks.get(block_id)
        if known is None or known.complete or length >= known.acked:
            return
        short = any(
            one.lost_its_end
            and one.replica.length == length
            and one.replica.block.stamp >= known.stamp
            for _, one in there
        )
        kept = made.open_length >= known.acked or any(
            is_whole(one.replica) or (runs and isinstance(original(one.replica), BeingWritten))
            for runs, one in there
            if self.is_good(block_id, known, one)
        )
        if short and not kept:
            known.acked = length

    def apply(self, txid: TxId, op: Op) -> None:
        self.touched.clear()
        self.dropped.clear()
        self._op = op
        self.namespace.apply(txid, op)

    def _follow(self, _txid: TxId, changes: Iterable[namespace_changes.BlockChange]) -> None:
        for change in changes:
            self._change(change)

    def _change(self, change: namespace_changes.BlockChange) -> None:
        match change:
            case namespace_changes.BlockAdded():
                self.blocks[change.block_id] = Known(
                    change.file_id,
                    change.stamp,
                    change.length,
                    change.complete,
                    [(self.clock(), change.expected)],
                    change.expected,
                )
            case namespace_changes.BlockSettled():
                known = self.blocks[change.block_id]
                known.stamp, known.length = change.stamp, change.length
                known.complete_since = self.clock() if not known.complete else known.complete_since
                known.complete = change.complete
                self.touched.add(change.block_id)
            case namespace_changes.BlockCut():
                known = self.blocks[change.block_id]
                known.acked = min(known.acked, change.length)
            case namespace_changes.BlocksGone():
                for block_id in change.block_ids:
                    gone = self.blocks.pop(block_id)
                    if isinstance(self._op, UpdateBlocks) and gone.acked:
                        self.dropped[block_id] = gone
            case namespace_changes.BlocksMoved() | namespace_changes.ReplicationSet():
                for block_id in change.block_ids:
                    known = self.blocks[block_id]
                    known.file_id = getattr(change, "file_id", known.file_id)
                    known.wanted.append((self.clock(), change.expected))
                    known.excused = min(known.excused, change.expected)
            case namespace_changes.StampGiven() | namespace_changes.BlockIdGiven():
                pass
