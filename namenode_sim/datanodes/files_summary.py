"""What a NameNode's status page shows operators of blocks and DataNodes.

See docs/reference/datanodes.md#what-operators-see.
"""

from collections.abc import Mapping

from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.draining import DrainRules, undrained
from namenode_sim.datanodes.liveness import LivenessRules


def files_summary(
    cluster: Cluster,
    liveness: LivenessRules,
    draining: DrainRules,
    safe_mode: str | None,
    now: float,
) -> Mapping[str, object]:
    """Count DataNodes and blocks, and sizes in bytes; ``safe_mode`` is what safe mode waits for.

    Only the active judges what lacks replicas.
    """
    nodes, blocks = cluster.nodes.values(), cluster.blocks
    alive = [node for node in nodes if node.alive]
    rooms = [storage.room for node in alive for storage in node.storages.values()]
    missing = blocks.needed.size(Priority.MISSING)
    return {
        "safe_mode": safe_mode,
        "live_datanodes": len(alive),
        "stale_datanodes": sum(liveness.is_stale(node, now) for node in alive),
        "dead_datanodes": len(nodes) - len(alive),
        "undrained_datanodes": undrained(cluster, draining),
        "capacity_bytes": sum(room.capacity for room in rooms),
        "used_bytes": sum(room.used for room in rooms),
        "remaining_bytes": sum(room.remaining for room in rooms),
        "blocks": blocks.map.block_count(),
        "under_replicated": len(blocks.needed) - missing,
        "missing": missing,
        "corrupt": blocks.map.corrupt_count(),
    }
