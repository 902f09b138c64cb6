"""Counts the blocks that would lack replicas if all silent DataNodes were dead already.

See docs/reference/datanodes.md#what-operators-see.
"""

import numpy as np

from ha.record import dataclass
from namenode_sim.blocks.index import Mask
from namenode_sim.blocks.model import NO_STORAGE, Slot
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import Node
from namenode_sim.datanodes.pending import Pending
from namenode_sim.datanodes.redundancy_check import is_complete


@dataclass(frozen=True, slots=True)
class Lacking:
    """The numbers of complete blocks that lack replicas on responsive DataNodes.

    ``missing``: none of these has a good replica. ``under_replicated``: too few of them have one
    or are about to receive a copy.
    """

    missing: int
    under_replicated: int


def count_lacking(cluster: Cluster, pending: Pending, rules: LivenessRules, now: float) -> Lacking:
    """Count the blocks that lack replicas, as if silent DataNodes held none.

    The redundancy queues hold the blocks that lack replicas already.  Of all others this function
    looks only at those with a replica, or a copy under way, on a silent DataNode.
    """
    blocks = cluster.blocks
    missing = blocks.needed.size(Priority.MISSING)
    under = len(blocks.needed) - missing
    silent = [node for node in cluster.nodes.values() if not _is_heard(node, rules, now)]
    if not silent or not blocks.rechecks.is_started():
        return Lacking(missing, under)
    heard = np.zeros(int(NO_STORAGE) + 1, np.bool_)
    for storage in blocks.map.storages:
        heard[storage.number] = _is_heard(cluster.place(storage.number)[0], rules, now)
    slots = [blocks.map.held_by(one.held)[1] for node in silent for one in node.storages.values()]
    found = blocks.map.count_heard(np.unique(np.concatenate(slots)), heard) if slots else None
    odd: set[Slot] = {slot for slot, _ in blocks.map.pending_deletions}
    odd.update(slot for slot in map(blocks.map.find, pending) if slot is not None)
    if found is not None:
        ordinary = ~np.isin(found.slots, np.fromiter(odd, np.int64, len(odd))) & found.ordinary
        missing += int((ordinary & (found.replicas == 0)).sum())
        under += int((ordinary & (found.replicas > 0) & (found.replicas < found.expected)).sum())
        odd.update(map(Slot, found.slots[~found.ordinary].tolist()))
    for slot in odd:
        one = _lacks(cluster, pending, slot, heard)
        missing, under = missing + one.missing, under + one.under_replicated
    return Lacking(missing, under)


def _is_heard(node: Node, rules: LivenessRules, now: float) -> bool:
    return node.alive and not rules.is_stale(node, now)


def _lacks(cluster: Cluster, pending: Pending, slot: Slot, heard: Mask) -> Lacking:
    """Return what a block adds to the numbers that the queues give."""
    blocks = cluster.blocks
    block, urgency = blocks.map.block(slot), blocks.needed.priority(slot)
    if not is_complete(block) or urgency is Priority.MISSING:
        return Lacking(0, 0)
    held = {number for number in blocks.map.storages_of(slot) if heard[number]}
    good = held - set(blocks.map.corrupt_marks(slot))
    if not good:
        return Lacking(1, 0 if urgency is None else -1)
    staying = {number for number in good if not blocks.map.is_pending_deletion(slot, number)}
    coming = {
        place.held.number for _, place in pending.places(block.id) if heard[place.held.number]
    }
    lacks = urgency is None and len(staying | coming) < block.expected
    return Lacking(0, int(lacks))
