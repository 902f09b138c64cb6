"""Replicas that readers and DataNodes report to be damaged.

See docs/reference/blocks.md#corrupt-replicas.
"""

from ha.record import dataclass
from namenode_sim.blocks.model import CorruptMark, Reason, Slot, Storage
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import UnknownDatanode


@dataclass(frozen=True, slots=True)
class Damaged:
    """A replica, by its block, its stamp and its DataNode's uuid."""

    block_id: int
    stamp: int
    datanode: str


def check_known(cluster: Cluster, damaged: Damaged) -> None:
    """Check that the DataNode of a known block's replica is known.

    Raises:
        UnknownDatanode: if it is not; what is said of unknown blocks does not count.
    """
    known = cluster.blocks.map.find(damaged.block_id) is not None
    if known and damaged.datanode not in cluster.nodes:
        raise UnknownDatanode(damaged.block_id, damaged.stamp, damaged.datanode)


def note_damage(cluster: Cluster, damaged: Damaged) -> None:
    """Note that a replica is damaged, if it is one with the stamp that its block has.

    A report about an older stamp is late: a newer replica may have taken the place.
    """
    blocks, slot = cluster.blocks, cluster.blocks.map.find(damaged.block_id)
    if slot is None or damaged.stamp != blocks.map.block(slot).stamp:
        return
    storage = _holding(cluster, slot, damaged.datanode)
    if storage is not None and blocks.map.is_good(slot, storage.number):
        mark = CorruptMark(Reason.CORRUPTION_REPORTED, damaged.stamp)
        blocks.mark_corrupt(slot, storage, mark)
        cluster.on_damage(damaged.block_id, damaged.stamp, damaged.datanode)


def _holding(cluster: Cluster, slot: Slot, datanode: str) -> Storage | None:
    """Return the storage on which a DataNode has its replica of a block."""
    held = map(cluster.blocks.map.storages.at, cluster.blocks.map.storages_of(slot))
    return next((storage for storage in held if storage.node == datanode), None)
