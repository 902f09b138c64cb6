"""What a NameNode counts and times about DataNodes."""

from collections import Counter
from typing import Final

import prometheus_client
from prometheus_client import Gauge, Histogram

from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.files_summary import STATES, replicas_on, worst_first
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState
from namenode_sim.datanodes.reachable import Lacking
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.namespace.caching import pools_of
from namenode_sim.namespace.inode import INodeDirectory
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.usage import Use

DATANODES = Gauge("nnha_datanodes", "DataNodes that have registered", ["state"])
TOKENS_ASKED = Gauge(
    "nnha_block_tokens_asked", "1 if DataNodes are to ask for block tokens, 0 if not"
)
LEAVING = Gauge(
    "nnha_datanodes_out_of_service", "DataNodes that leave or have left service, dead ones as well"
)
SERVICE_STATES = Gauge(
    "nnha_datanodes_service", "DataNodes by whether they serve or leave, dead ones too", ["service"]
)
BLOCKS_LEFT = Gauge(
    "nnha_leaving_blocks_left", "Blocks that are not safe yet without a DataNode that leaves"
)
CACHE_BYTES = Gauge("nnha_cache_directives_bytes", "Bytes of directives: needed, cached", ["what"])
POOLS_OVER = Gauge("nnha_cache_pools_over_limit", "Cache pools that need more than their limit")
CACHE_ROOM = Gauge(
    "nnha_datanodes_cache_bytes", "Memory for cached blocks: capacity, used", ["what"]
)
OVER_QUOTA = Gauge(
    "nnha_directories_over_quota", "Directories above their quota, where their use is known"
)
SAFE_MODE = Gauge("nnha_safe_mode", "1 while this NameNode is in safe mode")
SAFE_BLOCKS = Gauge("nnha_safe_blocks", "Complete blocks with enough reported replicas")
BLOCKS = Gauge("nnha_blocks", "Blocks of this namespace")
WAITING = Gauge("nnha_waiting_reports", "Reports of replicas that wait for an edit")
UNCONFIRMED = Gauge(
    "nnha_storages_unconfirmed", "Storages without a full report since this NameNode is active"
)
UNDRAINED = Gauge(
    "nnha_datanodes_undrained",
    "DataNodes that may still carry out deletions of the former active",
)
INVALIDATING = Gauge("nnha_invalidating_replicas", "Replicas that DataNodes are still to delete")
NEEDED = Gauge("nnha_needed_blocks", "Blocks that lack replicas, by urgency", ["priority"])
MISSING_SINGLE = Gauge(
    "nnha_missing_blocks_with_replication_one", "Missing blocks that were to have one replica"
)
CORRUPT = Gauge("nnha_corrupt_blocks", "Blocks with replicas that are known to be corrupt")
UNREADABLE = Gauge(
    "nnha_unreadable_blocks",
    "Complete blocks of which no DataNode that is heard has a good replica",
)
UNDER_REPLICATED = Gauge(
    "nnha_under_replicated_blocks",
    "Complete blocks with too few replicas on DataNodes that are heard",
)
FAILED_VOLUMES = Gauge("nnha_datanodes_failed_volumes", "Failed volumes of live DataNodes")
CAPACITY = Gauge(
    "nnha_datanodes_bytes",
    "Room of the live DataNodes in service: capacity, used, remaining",
    ["what"],
)
NO_USE: Final = Use()
_WHO: Final = ("datanode", "host")
_SIZES: Final = ("capacity", "used", "remaining")
MOST_DATANODES: Final = 100
"""The most DataNodes that are shown one by one: the page is written while the event loop waits."""
EACH_STATE = Gauge("nnha_each_datanode_state", "1 for the state of a DataNode", [*_WHO, "state"])
EACH_CONTACT = Gauge(
    "nnha_each_datanode_last_contact_seconds", "For how long a DataNode has been silent", _WHO
)
EACH_BLOCKS = Gauge("nnha_each_datanode_blocks", "Replicas on a DataNode", _WHO)
EACH_BYTES = Gauge(
    "nnha_each_datanode_bytes", "Room of a DataNode: capacity, used, remaining", [*_WHO, "what"]
)
EXCESS = Gauge("nnha_doomed_replicas", "Replicas of blocks whose deletion is not reported yet")
POSTPONED = Gauge(
    "nnha_postponed_blocks", "Blocks whose deletions wait for reports since this NameNode is active"
)
PENDING = Gauge("nnha_pending_blocks", "Blocks with replicas on their way")
TIMEOUTS = Gauge("nnha_pending_timeouts", "Blocks whose copies did not come in time")
REPORT_SECONDS = Histogram(
    "nnha_block_report_seconds",
    "How long it took to take a report in",
    ["kind"],
    buckets=(0.001, 0.01, 0.1, 1, 10, 60),
)
REPORT_DIFFERENCES = prometheus_client.Counter(
    "nnha_report_differences", "Replicas of full reports that were judged one by one"
)
MAP_FINDINGS = prometheus_client.Counter(
    "nnha_block_map_findings", "Blocks of which two places of the map said different things"
)
COMMANDS = prometheus_client.Counter(
    "nnha_commands_to_datanodes", "Commands given to DataNodes", ["kind"]
)
REFUSED = prometheus_client.Counter(
    "nnha_datanode_calls_refused", "Calls of DataNodes that were refused", ["method"]
)


def measure(cluster: Cluster, liveness: LivenessRules, now: float) -> None:
    nodes, blocks = cluster.nodes.values(), cluster.blocks
    alive = [node for node in nodes if node.alive]
    stale = sum(liveness.is_stale(node, now) for node in alive)
    DATANODES.labels("live").set(len(alive) - stale)
    DATANODES.labels("stale").set(stale)
    retired = sum(node.is_retired for node in nodes)
    DATANODES.labels("dead").set(len(nodes) - len(alive) - retired)
    TOKENS_ASKED.set(cluster.block_keys is not None and cluster.tokens_asked)
    LEAVING.set(sum(node.admin is not AdminState.NORMAL for node in nodes))
    for state in AdminState:
        count = sum(node.admin is state for node in nodes)
        SERVICE_STATES.labels(state.name.lower()).set(count)
    BLOCKS_LEFT.set(sum(node.blocks_left or 0 for node in nodes))
    CACHE_ROOM.labels("capacity").set(sum(node.cache.capacity for node in alive))
    CACHE_ROOM.labels("used").set(sum(node.cache.used for node in alive))
    FAILED_VOLUMES.set(sum(node.failed_volumes for node in alive))
    room = cluster.room()
    for what in _SIZES:
        CAPACITY.labels(what).set(getattr(room, what))
    _measure_each(cluster, liveness, now)
    SAFE_MODE.set(cluster.safe_mode.is_on())
    SAFE_BLOCKS.set(blocks.map.safe_counts()[1])
    BLOCKS.set(blocks.map.block_count())
    WAITING.set(len(blocks.postponed_reports))
    UNCONFIRMED.set(sum(not storage.confirmed for storage in blocks.map.storages))
    INVALIDATING.set(len(blocks.invalidations))


def _measure_each(cluster: Cluster, liveness: LivenessRules, now: float) -> None:
    """Show the DataNodes one by one, of too many the worst; those that are gone vanish."""
    for gauge in (EACH_STATE, EACH_CONTACT, EACH_BLOCKS, EACH_BYTES):
        gauge.clear()
    for node, found in worst_first(cluster, liveness, now)[:MOST_DATANODES]:
        who = node.id.transfer_address, node.id.host
        for state in STATES:
            EACH_STATE.labels(*who, state).set(state == found)
        EACH_CONTACT.labels(*who).set(max(0.0, now - node.last_heard))
        EACH_BLOCKS.labels(*who).set(replicas_on(node))
        room = node.room()
        for what in _SIZES:
            EACH_BYTES.labels(*who, what).set(getattr(room, what))


def measure_limits(cluster: Cluster, namespace: Namespace) -> None:
    """Show what cache directives need and have, and how many pools and quotas are exceeded."""
    needed, pools = Counter[str](), pools_of(namespace)
    cached = 0
    for directive, found in cluster.cache.counted.values():
        needed[directive.pool] += found.bytes_needed
        cached += found.bytes_cached
    CACHE_BYTES.labels("needed").set(needed.total())
    CACHE_BYTES.labels("cached").set(cached)
    POOLS_OVER.set(sum(name in pools and pools[name].limit < of for name, of in needed.items()))
    usage, inodes = namespace.tree.usage, namespace.tree.inodes
    over = 0
    for number, use in usage.live.items():
        directory, kept = inodes.get(number), usage.held.get(number, NO_USE)
        if isinstance(directory, INodeDirectory):
            names, space = use.names + kept.names, use.space() + kept.space()
            quotas = directory.quotas
            over += 0 <= quotas.namespace < names or 0 <= quotas.space < space
    OVER_QUOTA.set(over)


def measure_redundancy(cluster: Cluster, redundancy: Redundancy) -> None:
    """Show how many blocks lack replicas, or have some that are to go."""
    blocks = cluster.blocks
    for priority in Priority:
        NEEDED.labels(priority.name.lower()).set(blocks.needed.size(priority))
    MISSING_SINGLE.set(blocks.needed.missing_single())
    CORRUPT.set(blocks.map.corrupt_count())
    EXCESS.set(len(blocks.map.pending_deletions))
    POSTPONED.set(len(blocks.rechecks.postponed))
    PENDING.set(len(redundancy.pending))
    TIMEOUTS.set(redundancy.timeouts)


def measure_lacking(lacking: Lacking) -> None:
    """Show how many blocks lack replicas if silent DataNodes hold none."""
    UNREADABLE.set(lacking.missing)
    UNDER_REPLICATED.set(lacking.under_replicated)
