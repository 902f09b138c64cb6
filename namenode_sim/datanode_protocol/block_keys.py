"""Which keys of block tokens a NameNode sends to a DataNode, and when.

See docs/reference/block-tokens.md#keys.
"""

import secrets
import time

from hadoop.block_tokens import rolled
from hadoop.proto.block_tokens_pb2 import ExportedBlockKeysProto
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node


def wall_ms() -> int:
    """Return Unix milliseconds, in which keys and tokens end."""
    return time.time_ns() // 1_000_000


def new_keys(
    cluster: Cluster, node: Node, now_ms: int, *, anew: bool = False
) -> ExportedBlockKeysProto | None:
    """Return the keys as they are now, if a DataNode was not sent them yet; None without tokens.

    A standby sends its keys, too: DataNodes must know them before it is the active.  ``anew``: the
    DataNode registers, and may have begun without the keys of before.
    """
    ring = cluster.block_keys
    if ring is None:
        return None
    cluster.block_keys = ring = rolled(ring, now_ms, secrets.token_bytes)
    if node.block_key == ring.current.key_id and not anew:
        return None
    node.block_key = ring.current.key_id
    return ring.message()
