"""Whether any file of a namespace has blocks; the answer seldom needs a look at all files."""

from journal.model import TxId
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.state import Counters


class BlockPresence:
    """Remembers what it found.

    Without a block id or a generation stamp given out, no file has a block.  A file that had blocks
    is asked first.  All files are looked at only where neither tells, and after an edit.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._witness: INodeFile | None = None
        self._none_at: TxId | None = None

    def any(self) -> bool:
        """Has a file of the tree, or one that only a snapshot has, a block?"""
        namespace, known = self._namespace, self._witness
        if _given_out(namespace.counters) == _given_out(Counters()):
            return False
        inodes = namespace.tree.inodes
        if known is not None and known.packed_blocks and inodes.get(known.id) is known:
            return True
        if self._none_at == namespace.last_applied:
            return False
        files = (node for node in inodes.values() if isinstance(node, INodeFile))
        self._witness = next((file for file in files if file.packed_blocks), None)
        self._none_at = namespace.last_applied if self._witness is None else None
        return self._witness is not None


def _given_out(counters: Counters) -> tuple[int, ...]:
    return (
        counters.last_block_id,
        counters.last_striped_block_id,
        counters.generation_stamp_v1,
        counters.generation_stamp_v2,
    )
