"""The namespace as a state machine: edits go in, in order, and the tree changes; nothing else.

The same code replays a log at start-up, follows it on a standby and applies what the active just
logged, so that the three cannot differ.  Semantics are those of Hadoop's FSEditLogLoader
(hadoop-formats 4).
"""

from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.inode import INodeDirectory
from namenode_sim.namespace_errors import TxIdOutOfOrder
from namenode_sim.namespace_state import (
    CacheState,
    Counters,
    Secrets,
    Snapshots,
    system_ec_policies,
)
from namenode_sim.namespace_tree import Tree, new_root
from namenode_sim.retry_cache import RetryCache

DEFAULT_REPLICATION_LIMITS = (1, 512)
"""dfs.namenode.replication.min and dfs.replication.max."""


class Namespace:
    """A whole file system's metadata as of one transaction.  Pure: no I/O, no clock.

    The image reader makes one, fills ``tree``, ``counters`` and the rest, and sets
    ``last_applied``; ``apply`` takes it from there.
    """

    __slots__ = (
        "cache",
        "counters",
        "ec_policies",
        "last_applied",
        "replication_limits",
        "retry_cache",
        "rolling_upgrade_start",
        "secrets",
        "snapshots",
        "tree",
    )

    def __init__(
        self,
        root: INodeDirectory,
        *,
        replication_limits: tuple[int, int] = DEFAULT_REPLICATION_LIMITS,
    ) -> None:
        self.tree = Tree(root)
        self.counters = Counters()
        self.secrets = Secrets()
        self.cache = CacheState()
        self.ec_policies = system_ec_policies()
        self.snapshots = Snapshots()
        self.rolling_upgrade_start: int | None = None
        self.replication_limits = replication_limits
        self.retry_cache = RetryCache()
        self.last_applied = TxId(0)

    @classmethod
    def empty(cls, user: str, group: str = "supergroup") -> "Namespace":
        """A newly formatted file system: a root that belongs to ``user``, and no edit yet."""
        return cls(new_root(user, group))

    def apply(self, txid: TxId, op: Op) -> None:
        """Apply the next edit.

        Raises TxIdOutOfOrder unless ``txid`` is the one after ``last_applied``, and ApplyError if
        the edit contradicts the tree; after the latter the namespace is not to be used any more.
        """
        if txid != self.last_applied + 1:
            raise TxIdOutOfOrder(self.last_applied + 1, txid)
        raise NotImplementedError
