"""What a NameNode's status page shows operators of blocks and DataNodes.

See docs/reference/datanodes.md#what-operators-see.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.draining import DrainRules, undrained
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState, Node, NodeStorage, StorageState
from namenode_sim.datanodes.reachable import Lacking

SHOWN_DATANODES: Final = 500
"""The most DataNodes that are listed, so that the page stays below a mebibyte."""
STATES: Final = ("dead", "stale", "live")
"""Of a DataNode, the worst first."""


SERVICE: Final = {
    AdminState.NORMAL: "in service",
    AdminState.DECOMMISSION_INPROGRESS: "decommissioning",
    AdminState.DECOMMISSIONED: "decommissioned",
    AdminState.ENTERING_MAINTENANCE: "entering maintenance",
    AdminState.IN_MAINTENANCE: "in maintenance",
}


def files_summary(
    cluster: Cluster,
    liveness: LivenessRules,
    draining: DrainRules,
    safe_mode: str | None,
    now: float,
    lacking: Lacking,
) -> Mapping[str, object]:
    """Count DataNodes and blocks, and sizes in bytes; ``safe_mode`` is what safe mode waits for.

    Only the active judges what lacks replicas. DataNodes are listed with the worst first.
    """
    nodes, blocks = cluster.nodes.values(), cluster.blocks
    alive = [node for node in nodes if node.alive]
    room = cluster.room()
    return {
        "safe_mode": safe_mode,
        "live_datanodes": len(alive),
        "stale_datanodes": sum(liveness.is_stale(node, now) for node in alive),
        "dead_datanodes": len(nodes) - len(alive) - sum(node.is_retired for node in nodes),
        "retired_datanodes": sum(node.is_retired for node in nodes),
        "undrained_datanodes": undrained(cluster, draining),
        "capacity_bytes": room.capacity,
        "used_bytes": room.used,
        "remaining_bytes": room.remaining,
        "blocks": blocks.map.block_count(),
        "under_replicated": lacking.under_replicated,
        "missing": lacking.missing,
        "corrupt": blocks.map.corrupt_count(),
        "failed_volumes": sum(node.failed_volumes for node in alive),
        "datanodes": [
            _datanode(node, state, now)
            for node, state in worst_first(cluster, liveness, now)[:SHOWN_DATANODES]
        ],
    }


def worst_first(
    cluster: Cluster, liveness: LivenessRules, now: float
) -> Sequence[tuple[Node, str]]:
    """Return the DataNodes with their states: the dead, the stale, then the live."""
    found = [(node, _state(node, liveness, now)) for node in cluster.nodes.values()]
    return sorted(found, key=lambda one: (STATES.index(one[1]), one[0].id.host, one[0].id.uuid))


def _state(node: Node, liveness: LivenessRules, now: float) -> str:
    if not node.alive:
        return "dead"
    return "stale" if liveness.is_stale(node, now) else "live"


def _datanode(node: Node, state: str, now: float) -> Mapping[str, object]:
    return {
        "uuid": node.id.uuid,
        "host": node.id.host,
        "address": node.id.transfer_address,
        "rack": node.rack,
        "version": node.software_version,
        "state": state,
        "service": SERVICE[node.admin],
        "blocks_left": node.blocks_left,
        "last_contact_seconds": round(max(0.0, now - node.last_heard), 1),
        "blocks": replicas_on(node),
        "failed_volumes": node.failed_volumes,
        "volumes": [_volume(storage) for storage in node.storages.values()],
    }


def replicas_on(node: Node) -> int:
    """Count the replicas on a DataNode."""
    return sum(len(storage.held.slots) for storage in node.storages.values())


def _volume(storage: NodeStorage) -> Mapping[str, object]:
    room = storage.room
    return {
        "uuid": storage.uuid,
        "type": storage.type.name,
        "failed": storage.state is StorageState.FAILED,
        "capacity_bytes": room.capacity,
        "used_bytes": room.used,
        "remaining_bytes": room.remaining,
        "blocks": len(storage.held.slots),
    }
