"""What Hadoop's beans say of blocks and DataNodes, from the figures that /metrics shows.

See docs/metrics.md.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.files_summary import replicas_on
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState, Node, Room, StorageState

Attributes = dict[str, object]

ADMIN_STATES: Final = {
    AdminState.NORMAL: "In Service",
    AdminState.DECOMMISSION_INPROGRESS: "Decommission In Progress",
    AdminState.DECOMMISSIONED: "Decommissioned",
    AdminState.ENTERING_MAINTENANCE: "Entering Maintenance",
    AdminState.IN_MAINTENANCE: "In Maintenance",
}


def block_beans(
    cluster: Cluster, liveness: LivenessRules, pending: int, now: float
) -> Mapping[str, Attributes]:
    """Return attributes by the bean's name; blocks of ``pending`` copies are on their way."""
    nodes, total = list(cluster.nodes.values()), cluster.room()
    counts = _counts(cluster, liveness, pending, now)
    missing = {
        "NumberOfMissingBlocks": cluster.blocks.needed.size(Priority.MISSING),
        "NumberOfMissingBlocksWithReplicationFactorOne": cluster.blocks.needed.missing_single(),
    }
    return {
        "FSNamesystem": counts,
        "FSNamesystemState": counts
        | {"FSState": "safeMode" if cluster.safe_mode.is_on() else "Operational"},
        "NameNodeInfo": {
            "Total": total.capacity,
            "Used": total.used,
            "Free": total.remaining,
            "PercentUsed": _percent(total.used, total.capacity),
            "PercentRemaining": _percent(total.remaining, total.capacity),
            "CacheCapacity": sum(node.cache.capacity for node in nodes if node.alive),
            "CacheUsed": sum(node.cache.used for node in nodes if node.alive),
            "TotalBlocks": counts["BlocksTotal"],
            **missing,
            "LiveNodes": _listed((one for one in nodes if one.alive), _live, now),
            "DeadNodes": _listed((one for one in nodes if not one.alive), _dead, now),
            "DecomNodes": _listed(
                _in_state(nodes, AdminState.DECOMMISSION_INPROGRESS), _leaving, now
            ),
            "EnteringMaintenanceNodes": _listed(
                _in_state(nodes, AdminState.ENTERING_MAINTENANCE), _leaving, now
            ),
        },
        "BlockStats": {"StorageTypeStats": _by_type(nodes)},
    }


def _counts(cluster: Cluster, liveness: LivenessRules, pending: int, now: float) -> Attributes:
    nodes, blocks, total = cluster.nodes.values(), cluster.blocks, cluster.room()
    alive = [node for node in nodes if node.alive]
    number = {
        (alive, state): sum(node.alive is alive and node.admin is state for node in nodes)
        for alive in (True, False)
        for state in AdminState
    }
    lacking = len(blocks.needed)
    namespace = cluster.namespace
    return {
        "CapacityTotal": total.capacity,
        "CapacityUsed": total.used,
        "CapacityRemaining": total.remaining,
        "TotalLoad": sum(node.transceivers for node in alive),
        "BlocksTotal": blocks.map.block_count(),
        "FilesTotal": 0 if namespace is None else len(namespace.tree.inodes),
        "MissingBlocks": blocks.needed.size(Priority.MISSING),
        "MissingReplOneBlocks": blocks.needed.missing_single(),
        "UnderReplicatedBlocks": lacking,
        "LowRedundancyBlocks": lacking,
        "CorruptBlocks": blocks.map.corrupt_count(),
        "ExcessBlocks": len(blocks.map.pending_deletions),
        "PendingReplicationBlocks": pending,
        "PendingReconstructionBlocks": pending,
        "PendingDeletionBlocks": len(blocks.invalidations),
        "PostponedMisreplicatedBlocks": len(blocks.rechecks.postponed),
        "PendingDataNodeMessageCount": len(blocks.postponed_reports),
        "VolumeFailuresTotal": sum(node.failed_volumes for node in alive),
        "NumLiveDataNodes": len(alive),
        "NumDeadDataNodes": len(nodes) - len(alive),
        "NumStaleDataNodes": sum(liveness.is_stale(node, now) for node in alive),
        "StaleDataNodes": sum(liveness.is_stale(node, now) for node in alive),
        "NumDecommissioningDataNodes": number[True, AdminState.DECOMMISSION_INPROGRESS],
        "NumDecomLiveDataNodes": number[True, AdminState.DECOMMISSIONED],
        "NumDecomDeadDataNodes": number[False, AdminState.DECOMMISSIONED],
        "NumEnteringMaintenanceDataNodes": number[True, AdminState.ENTERING_MAINTENANCE],
        "NumInMaintenanceLiveDataNodes": number[True, AdminState.IN_MAINTENANCE],
        "NumInMaintenanceDeadDataNodes": number[False, AdminState.IN_MAINTENANCE],
    }


def _in_state(nodes: Iterable[Node], state: AdminState) -> list[Node]:
    return [node for node in nodes if node.alive and node.admin is state]


def _listed(nodes: Iterable[Node], shown: Callable[[Node, float], Attributes], now: float) -> str:
    """Return JSON in a text, as Hadoop does, by host name and port of each DataNode."""
    return json.dumps({f"{one.id.host}:{one.id.transfer_port}": shown(one, now) for one in nodes})


def _place(node: Node) -> Attributes:
    address = node.id.transfer_address
    return {"xferaddr": address, "location": node.rack, "uuid": node.id.uuid}


def _live(node: Node, now: float) -> Attributes:
    room = _room(node)
    return _place(node) | {
        "infoAddr": f"{node.id.ip}:{node.id.info_port}",
        "infoSecureAddr": f"{node.id.ip}:{node.id.info_secure_port}",
        "lastContact": int(now - node.last_heard),
        "usedSpace": room.used,
        "used": room.used,
        "capacity": room.capacity,
        "remaining": room.remaining,
        "nonDfsUsedSpace": room.non_dfs_used,
        "blockPoolUsed": room.pool_used,
        "blockPoolUsedPercent": _percent(room.pool_used, room.capacity),
        "adminState": ADMIN_STATES[node.admin],
        "numBlocks": replicas_on(node),
        "version": node.software_version,
        "volfails": node.failed_volumes,
    }


def _dead(node: Node, now: float) -> Attributes:
    return _place(node) | {
        "lastContact": int(now - node.last_heard),
        "decommissioned": node.admin is AdminState.DECOMMISSIONED,
        "adminState": ADMIN_STATES[node.admin],
    }


def _leaving(node: Node, _: float) -> Attributes:
    return _place(node) | {"underReplicatedBlocks": node.blocks_left or 0}


def _room(node: Node) -> Room:
    return _sum(storage.room for storage in node.storages.values())


def _sum(rooms: Iterable[Room]) -> Room:
    found = Room()
    for one in rooms:
        found = Room(
            found.capacity + one.capacity, found.used + one.used,
            found.remaining + one.remaining, found.pool_used + one.pool_used,
            found.non_dfs_used + one.non_dfs_used,
        )  # fmt: skip
    return found


def _by_type(nodes: Iterable[Node]) -> list[Attributes]:
    """Return the sizes of the storages that work, by type, on live DataNodes in service."""
    rooms: dict[str, list[Room]] = {}
    holders: dict[str, set[str]] = {}
    for node in nodes:
        for storage in node.storages.values() if node.alive else ():
            if node.admin is AdminState.NORMAL and storage.state is not StorageState.FAILED:
                rooms.setdefault(storage.type.name, []).append(storage.room)
                holders.setdefault(storage.type.name, set()).add(node.id.uuid)
    totals = {name: _sum(found) for name, found in sorted(rooms.items())}
    return [
        {
            "key": name,
            "value": {
                "capacityTotal": total.capacity,
                "capacityUsed": total.used,
                "capacityRemaining": total.remaining,
                "capacityNonDfsUsed": total.non_dfs_used,
                "blockPoolUsed": total.pool_used,
                "nodesInService": len(holders[name]),
            },
        }
        for name, total in totals.items()
    ]


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
