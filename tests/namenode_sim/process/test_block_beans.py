"""Hadoop's beans for blocks and DataNodes: the figures of /metrics under Hadoop's names."""

import json
from typing import Any

import pytest
from prometheus_client import REGISTRY

from namenode_sim.blocks.safemode import enter
from namenode_sim.datanode_protocol.metrics import measure, measure_redundancy
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState, NodeCache, Room, StorageState
from namenode_sim.process.block_beans import block_beans
from tests.namenode_sim.datanodes.few_nodes import Few

ROOM = Room(capacity=1000, used=10, remaining=900, pool_used=5, non_dfs_used=90)
RULES = LivenessRules()


def beans(few: Few) -> Any:  # noqa: ANN401
    return block_beans(few.cluster, RULES, len(few.redundancy.pending), few.now)


def few_nodes(names: str = "abcd") -> Few:
    few = Few(list(names))
    for storage in few.storages.values():
        storage.room = ROOM
    return few


FIGURES = {
    "CapacityTotal": "nnha_datanodes_bytes what=capacity",
    "CapacityUsed": "nnha_datanodes_bytes what=used",
    "CapacityRemaining": "nnha_datanodes_bytes what=remaining",
    "BlocksTotal": "nnha_blocks",
    "MissingBlocks": "nnha_needed_blocks priority=missing",
    "MissingReplOneBlocks": "nnha_missing_blocks_with_replication_one",
    "CorruptBlocks": "nnha_corrupt_blocks",
    "ExcessBlocks": "nnha_doomed_replicas",
    "PendingReplicationBlocks": "nnha_pending_blocks",
    "PendingDeletionBlocks": "nnha_invalidating_replicas",
    "PostponedMisreplicatedBlocks": "nnha_postponed_blocks",
    "PendingDataNodeMessageCount": "nnha_waiting_reports",
    "VolumeFailuresTotal": "nnha_datanodes_failed_volumes",
    "StaleDataNodes": "nnha_datanodes state=stale",
    "NumDeadDataNodes": "nnha_datanodes state=dead",
}


def metric(name: str) -> float | None:
    family, _, label = name.partition(" ")
    return REGISTRY.get_sample_value(family, dict([label.split("=")]) if label else {})


def test_the_figures_are_those_of_metrics() -> None:
    few = few_nodes()
    few.block("ab", 3)
    few.nodes["c"].alive = False
    few.nodes["d"].last_heard = few.now - 31
    few.nodes["a"].failed_volumes, few.nodes["a"].transceivers = 2, 7
    few.work()
    measure(few.cluster, RULES, few.now)
    measure_redundancy(few.cluster, few.redundancy)
    for bean in ("FSNamesystem", "FSNamesystemState"):
        found = beans(few)[bean]
        assert {name: found[name] for name in FIGURES if name in found} == {
            name: metric(of) for name, of in FIGURES.items() if name in found
        }
        assert (found["NumLiveDataNodes"], found["TotalLoad"]) == (3, 7)
        assert found["LowRedundancyBlocks"] == found["UnderReplicatedBlocks"]
    assert beans(few)["FSNamesystem"]["BlocksTotal"] == 1
    assert beans(few)["FSNamesystemState"]["NumStaleDataNodes"] == 1
    assert FIGURES.keys() <= beans(few)["FSNamesystem"].keys()
    assert beans(few)["FSNamesystemState"]["FSState"] == "Operational"
    few.cluster.set_safe_mode(enter(few.cluster.safe_mode))
    assert beans(few)["FSNamesystemState"]["FSState"] == "safeMode"


STATES = {
    AdminState.DECOMMISSION_INPROGRESS: ("NumDecommissioningDataNodes", None),
    AdminState.DECOMMISSIONED: ("NumDecomLiveDataNodes", "NumDecomDeadDataNodes"),
    AdminState.ENTERING_MAINTENANCE: ("NumEnteringMaintenanceDataNodes", None),
    AdminState.IN_MAINTENANCE: ("NumInMaintenanceLiveDataNodes", "NumInMaintenanceDeadDataNodes"),
}
LISTS = {
    AdminState.DECOMMISSION_INPROGRESS: "DecomNodes",
    AdminState.ENTERING_MAINTENANCE: "EnteringMaintenanceNodes",
}


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_datanodes_that_leave_are_counted_by_state(state: AdminState, *, alive: bool) -> None:
    few = few_nodes()
    few.nodes["a"].admin, few.nodes["a"].alive, few.nodes["a"].blocks_left = state, alive, 4
    found = beans(few)
    counts = {name: found["FSNamesystem"][name] for row in STATES.values() for name in row if name}
    counted = STATES[state][0 if alive else 1]
    assert {name for name, count in counts.items() if count} == ({counted} if counted else set())
    info = {name: json.loads(found["NameNodeInfo"][name]) for name in LISTS.values()}
    listed = LISTS.get(state) if alive else None
    assert {name for name, nodes in info.items() if nodes} == ({listed} if listed else set())
    if listed:
        (node,) = info[listed].values()
        assert node["underReplicatedBlocks"] == 4


def test_each_datanode_is_listed_in_json() -> None:
    few = few_nodes("ab")
    a, b = few.nodes["a"], few.nodes["b"]
    a.cache, b.cache = NodeCache(capacity=64, used=8), NodeCache(capacity=1, used=1)
    b.alive, b.last_heard, b.admin = False, few.now - 700.4, AdminState.DECOMMISSIONED
    info = beans(few)["NameNodeInfo"]
    assert (info["CacheCapacity"], info["CacheUsed"], info["TotalBlocks"]) == (64, 8, 0)
    assert (info["PercentUsed"], info["PercentRemaining"]) == (1.0, 90.0)
    live, dead = json.loads(info["LiveNodes"]), json.loads(info["DeadNodes"])
    assert list(live) == [f"{a.id.host}:{a.id.transfer_port}"]
    (shown,) = live.values()
    assert (shown["capacity"], shown["usedSpace"], shown["blockPoolUsed"]) == (1000, 10, 5)
    assert (shown["adminState"], shown["uuid"], shown["location"]) == (
        "In Service",
        a.id.uuid,
        "/r",
    )
    assert list(dead.values()) == [
        {
            "xferaddr": b.id.transfer_address, "location": "/r", "uuid": b.id.uuid,
            "lastContact": 700, "decommissioned": True, "adminState": "Decommissioned",
        }
    ]  # fmt: skip


def test_room_by_type_is_of_storages_that_serve() -> None:
    few = few_nodes()
    few.nodes["b"].alive = False
    few.nodes["c"].admin = AdminState.IN_MAINTENANCE
    few.storages["d"].state = StorageState.FAILED
    (only,) = beans(few)["BlockStats"]["StorageTypeStats"]
    assert only["key"] == few.storages["a"].type.name
    assert only["value"] == {
        "capacityTotal": 1000, "capacityUsed": 10, "capacityRemaining": 900,
        "capacityNonDfsUsed": 90, "blockPoolUsed": 5, "nodesInService": 1,
    }  # fmt: skip


def test_without_datanodes_nothing_is_divided() -> None:
    info = beans(Few([]))["NameNodeInfo"]
    assert (info["PercentUsed"], info["LiveNodes"]) == (0.0, "{}")
