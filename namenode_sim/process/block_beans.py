"""What Hadoop's beans say of blocks and DataNodes, from the figures that /metrics shows."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.files_summary import SERVICE, replicas_on
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState, Node, Room, StorageState, total

Attributes = dict[str, object]
_NOT_OF_STATE: Final = frozenset((
    "MissingBlocks", "MissingReplOneBlocks", "CorruptBlocks", "ExcessBlocks",
    "PostponedMisreplicatedBlocks", "PendingDataNodeMessageCount",
))  # fmt: skip
"""Figures of FSNamesystem that FSNamesystemState does not have."""
_WORDS: Final = {AdminState.DECOMMISSION_INPROGRESS: "Decommission In Progress"}
"""Hadoop's words for the service of a DataNode where they are not ours, with capitals."""


def block_beans(
    cluster: Cluster, liveness: LivenessRules, pending: int, now: float
) -> Mapping[str, Attributes]:
    """Return attributes by the bean's name; blocks of ``pending`` copies are on their way."""
    nodes, room = list(cluster.nodes.values()), cluster.room()
    counts, alive = _counts(cluster, pending), [node for node in nodes if node.alive]
    stale = sum(liveness.is_stale(node, now) for node in alive)

    def listed(found: Iterable[Node], more: Callable[[Node], Attributes]) -> str:
        """Return JSON in a text, as Hadoop does, by host name and port of each DataNode."""
        shown = {node: _state(node, now) | more(node) for node in found}
        return json.dumps({f"{one.id.host}:{one.id.transfer_port}": shown[one] for one in shown})

    def leaving(state: AdminState) -> str:
        found = [node for node in alive if node.admin is state]
        return listed(found, lambda node: {"underReplicatedBlocks": node.blocks_left or 0})

    def left(node: Node) -> Attributes:
        return {"decommissioned": node.admin is AdminState.DECOMMISSIONED}

    state = "safeMode" if cluster.safe_mode.is_on() else "Operational"
    info = {
        "Total": room.capacity, "Used": room.used, "Free": room.remaining,
        "PercentUsed": _percent(room.used, room.capacity),
        "PercentRemaining": _percent(room.remaining, room.capacity),
        "CacheCapacity": sum(node.cache.capacity for node in alive),
        "CacheUsed": sum(node.cache.used for node in alive), "TotalBlocks": counts["BlocksTotal"],
        "NumberOfMissingBlocks": counts["MissingBlocks"],
        "NumberOfMissingBlocksWithReplicationFactorOne": counts["MissingReplOneBlocks"],
        "LiveNodes": listed(alive, _live),
        "DeadNodes": listed([node for node in nodes if not node.alive], left),
        "DecomNodes": leaving(AdminState.DECOMMISSION_INPROGRESS),
        "EnteringMaintenanceNodes": leaving(AdminState.ENTERING_MAINTENANCE),
    }  # fmt: skip
    return {
        "FSNamesystem": counts | {"StaleDataNodes": stale},
        "FSNamesystemState": {"FSState": state, "NumStaleDataNodes": stale}
        | {name: found for name, found in counts.items() if name not in _NOT_OF_STATE},
        "NameNodeInfo": info,
        "BlockStats": {"StorageTypeStats": list(_by_type(alive))},
    }


def _counts(cluster: Cluster, pending: int) -> Attributes:
    nodes, blocks, room = cluster.nodes.values(), cluster.blocks, cluster.room()
    alive = [node for node in nodes if node.alive]
    lacking, namespace = len(blocks.needed), cluster.namespace

    def count(state: AdminState, *, alive: bool = True) -> int:
        return sum(node.alive is alive and node.admin is state for node in nodes)

    return {
        "CapacityTotal": room.capacity, "CapacityUsed": room.used,
        "CapacityRemaining": room.remaining,
        "TotalLoad": sum(node.transceivers for node in alive),
        "BlocksTotal": blocks.map.block_count(),
        "FilesTotal": 0 if namespace is None else len(namespace.tree.inodes),
        "MissingBlocks": blocks.needed.size(Priority.MISSING),
        "MissingReplOneBlocks": blocks.needed.missing_single(), "UnderReplicatedBlocks": lacking,
        "LowRedundancyBlocks": lacking, "CorruptBlocks": blocks.map.corrupt_count(),
        "ExcessBlocks": len(blocks.map.pending_deletions), "PendingReplicationBlocks": pending,
        "PendingReconstructionBlocks": pending,
        "PendingDeletionBlocks": len(blocks.invalidations),
        "PostponedMisreplicatedBlocks": len(blocks.rechecks.postponed),
        "PendingDataNodeMessageCount": len(blocks.postponed_reports),
        "VolumeFailuresTotal": sum(node.failed_volumes for node in alive),
        "NumLiveDataNodes": len(alive), "NumDeadDataNodes": len(nodes) - len(alive),
        "NumDecommissioningDataNodes": count(AdminState.DECOMMISSION_INPROGRESS),
        "NumDecomLiveDataNodes": count(AdminState.DECOMMISSIONED),
        "NumDecomDeadDataNodes": count(AdminState.DECOMMISSIONED, alive=False),
        "NumEnteringMaintenanceDataNodes": count(AdminState.ENTERING_MAINTENANCE),
        "NumInMaintenanceLiveDataNodes": count(AdminState.IN_MAINTENANCE),
        "NumInMaintenanceDeadDataNodes": count(AdminState.IN_MAINTENANCE, alive=False),
    }  # fmt: skip


def _state(node: Node, now: float) -> Attributes:
    word = _WORDS.get(node.admin, SERVICE[node.admin].title())
    return {
        "xferaddr": node.id.transfer_address, "location": node.rack, "uuid": node.id.uuid,
        "lastContact": int(now - node.last_heard), "adminState": word,
    }  # fmt: skip


def _live(node: Node) -> Attributes:
    room = node.room()
    return {
        "infoAddr": f"{node.id.ip}:{node.id.info_port}", "usedSpace": room.used,
        "used": room.used, "capacity": room.capacity, "remaining": room.remaining,
        "nonDfsUsedSpace": room.non_dfs_used, "blockPoolUsed": room.pool_used,
        "blockPoolUsedPercent": _percent(room.pool_used, room.capacity),
        "numBlocks": replicas_on(node), "version": node.software_version,
        "volfails": node.failed_volumes,
    }  # fmt: skip


def _by_type(alive: Iterable[Node]) -> Iterable[Attributes]:
    """Yield the sizes of the storages that work, by type, on DataNodes in service."""
    found: dict[str, list[tuple[str, Room]]] = {}
    for node in alive:
        for storage in node.storages.values():
            if node.admin is AdminState.NORMAL and storage.state is not StorageState.FAILED:
                found.setdefault(storage.type.name, []).append((node.id.uuid, storage.room))
    for name, rows in sorted(found.items()):
        room = total(room for _, room in rows)
        value = {
            "capacityTotal": room.capacity, "capacityUsed": room.used,
            "capacityRemaining": room.remaining, "capacityNonDfsUsed": room.non_dfs_used,
            "blockPoolUsed": room.pool_used, "nodesInService": len({uuid for uuid, _ in rows}),
        }  # fmt: skip
        yield {"key": name, "value": value}


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
