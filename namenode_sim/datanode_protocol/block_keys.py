"""Which keys of block tokens a NameNode sends to a DataNode, and when.

See docs/reference/block-tokens.md#keys.
"""

import secrets
import time
from typing import Final

import structlog

from hadoop.block_tokens import NO_KEYS, rolled
from hadoop.proto.block_tokens_pb2 import ExportedBlockKeysProto
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node, is_hadoops

log = structlog.get_logger()

_OFF: Final = -1
"""Instead of a key's id, for a DataNode that was sent the word that there are no tokens."""


def wall_ms() -> int:
    """Return Unix milliseconds, in which keys and tokens end."""
    return time.time_ns() // 1_000_000


def new_keys(
    cluster: Cluster, node: Node, now_ms: int, *, anew: bool = False
) -> ExportedBlockKeysProto | None:
    """Return the keys as they are now, if a DataNode was not sent them yet; None without tokens.

    A standby sends its keys, too: DataNodes must know them before it is the active.  ``anew``: the
    DataNode registers, and may have begun without the keys of before.

    Where the configuration leaves it open, no DataNode asks for tokens any more once one of
    Hadoop's registers: it may be registered at a NameNode of Hadoop's, which has them off by
    default, and drops a NameNode that says otherwise
    (DataNode.registerBlockPoolWithSecretManager).  NameNodes go on to give tokens, which are asked
    for until all DataNodes have the news.
    """
    ring = cluster.block_keys
    if ring is None:
        return None
    if cluster.tokens_asked and cluster.tokens_may_end and is_hadoops(node.software_version):
        cluster.tokens_asked = False
        log.warning("datanodes.block_tokens_off", because=node.id.uuid, host=node.id.host)
    if not cluster.tokens_asked:
        known, node.block_key = node.block_key, _OFF
        return None if known == _OFF and not anew else NO_KEYS
    cluster.block_keys = ring = rolled(ring, now_ms, secrets.token_bytes)
    if node.block_key == ring.current.key_id and not anew:
        return None
    node.block_key = ring.current.key_id
    return ring.message()
