"""The replay: every edit is applied to the sparse namespace by the namespace's own code.

See docs/reference/checkpoint.md#replay-on-a-sparse-namespace.
"""

from collections.abc import Iterable
from typing import Final

from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.inode import NO_QUOTAS, INodeDirectory
from namenode_sim.namespace.retry_cache import RetryCache
from spark.merge.errors import EditsDoNotBelong, Miss
from spark.merge.garbage_collection import no_collection
from spark.merge.sparse import Sparse

_REMEMBERED_CALLS: Final = 1000
"""An image holds no answers to clients, so there is no use in keeping more."""


def replay(sparse: Sparse, edits: Iterable[tuple[TxId, Op]]) -> None:
    """Apply the edits that were planned; earlier ones are passed over.

    Raises:
        Miss: if an edit needs something of the image that the plan did not ask for; ``sparse`` is
            of no use any more.
        ApplyError: if an edit contradicts the image; names the transaction.
        TxIdOutOfOrder: if an edit is missing.
        EditsDoNotBelong: if these are not the edits that were planned.
    """
    namespace = sparse.namespace
    namespace.retry_cache = RetryCache(max_entries=_REMEMBERED_CALLS)
    before = namespace.last_applied
    apply = namespace.apply
    with no_collection():
        for txid, op in edits:
            if txid > before:
                apply(txid, op)
    if namespace.last_applied != sparse.plan.last:
        raise EditsDoNotBelong(
            f"the edits were planned up to transaction {sparse.plan.last} and ended at "
            f"{namespace.last_applied}"
        )
    for node, directory in sparse.unread:
        if _changed(directory) or directory.name != sparse.plan.trie.names[node]:
            raise Miss(directory.id, b"")


def _changed(directory: INodeDirectory) -> bool:
    """Return whether a directory whose message was not fetched differs from how it was made."""
    attributes = (directory.user, directory.group, directory.mode, directory.mtime)
    return (
        attributes != ("", "", 0, 0)
        or directory.acl is not None
        or directory.xattrs is not None
        or directory.quotas is not NO_QUOTAS
    )
