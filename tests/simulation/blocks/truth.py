"""What the durable edits say of blocks, kept without any of the product's maps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from journal.model import TxId
from namenode_sim.edits.ops import Op, UpdateBlocks
from namenode_sim.namespace.changes import (
    BlockAdded,
    BlockChange,
    BlockCut,
    BlockIdGiven,
    BlockSettled,
    BlocksGone,
    BlocksMoved,
    ReplicationSet,
    StampGiven,
)
from namenode_sim.namespace.namespace import Namespace


@dataclass(slots=True)
class Known:
    """A block as the durable edits have it, and what its writers were told.

    ``wanted`` are the replications that it had, each with the time from which on; ``lost`` counts
    good replicas on disks that were lost for good, and ``excused`` is how many may be.
    """

    file_id: int
    stamp: int
    length: int
    complete: bool
    wanted: list[tuple[float, int]]
    excused: int
    acked: int = 0
    lost: int = 0

    @property
    def may_be_lost(self) -> bool:
        """Whether so many disks with a good replica were lost that nobody can have one."""
        return self.lost >= self.excused

    def least_wanted(self, since: float) -> int:
        """The smallest replication that it has had since then."""
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

    def apply(self, txid: TxId, op: Op) -> None:
        """An edit is durable."""
        self.touched.clear()
        self.dropped.clear()
        self._op = op
        self.namespace.apply(txid, op)

    def _follow(self, _txid: TxId, changes: Iterable[BlockChange]) -> None:
        for change in changes:
            self._change(change)

    def _change(self, change: BlockChange) -> None:
        match change:
            case BlockAdded():
                self.blocks[change.block_id] = Known(
                    change.file_id,
                    change.stamp,
                    change.length,
                    change.complete,
                    [(self.clock(), change.expected)],
                    change.expected,
                )
            case BlockSettled():
                known = self.blocks[change.block_id]
                known.stamp, known.length = change.stamp, change.length
                known.complete = change.complete
                self.touched.add(change.block_id)
            case BlockCut():
                known = self.blocks[change.block_id]
                known.acked = min(known.acked, change.length)
            case BlocksGone():
                for block_id in change.block_ids:
                    gone = self.blocks.pop(block_id)
                    if isinstance(self._op, UpdateBlocks) and gone.acked:
                        self.dropped[block_id] = gone
            case BlocksMoved() | ReplicationSet():
                for block_id in change.block_ids:
                    known = self.blocks[block_id]
                    known.file_id = getattr(change, "file_id", known.file_id)
                    known.wanted.append((self.clock(), change.expected))
                    known.excused = min(known.excused, change.expected)
            case StampGiven() | BlockIdGiven():
                pass
