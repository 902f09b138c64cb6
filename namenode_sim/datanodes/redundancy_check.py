"""Decides for one block whether it needs another replica, and which replicas to delete.

See docs/reference/blocks.md#judging-redundancy.
"""

from typing import Final

from ha.record import dataclass, field
from namenode_sim.blocks.model import RACKS, BlockInfo, Reason, Slot, Stage, StorageNumber
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.recheck_queue import Recheck
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.excess_choice import Candidate, choose_excess
from namenode_sim.datanodes.pending import Pending
from namenode_sim.datanodes.placement import Place, is_in_service
from namenode_sim.datanodes.reconstruction import Counts, count, priority

GOOD_IN_SMALL_CLUSTER: Final = 2
"""With this number of good replicas a corrupt one is deleted before its copy has arrived, if no
other DataNode has room for the copy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyRules:
    """Hadoop's settings, with their defaults.

    ``work_per_node``: blocks to copy in a round for each live DataNode. ``pending_seconds``: after
    this time a copy counts as failed. ``excess_seconds``: after this time an order to delete is
    sent again. ``late_seconds``: a DataNode silent for longer loses excess replicas first.
    ``delete_corrupt_at_once``: delete corrupt replicas though storages are still unconfirmed.
    ``maintained_least``: replicas that must be live while others are in maintenance.
    """

    work_per_node: int = 2
    pending_seconds: float = 300.0
    excess_seconds: float = 3600.0
    late_seconds: float = 12.0
    delete_corrupt_at_once: bool = False
    maintained_least: int = 1


@dataclass(slots=True)
class Surroundings:
    """The cluster, the rules and the copies under way, by which blocks are judged.

    ``many_racks``: DataNodes are, or once were, on more than one rack.
    """

    cluster: Cluster
    rules: RedundancyRules
    many_racks: bool = False
    pending: Pending = field(init=False)

    def __post_init__(self) -> None:
        self.pending = Pending(self.rules.pending_seconds)


@dataclass(frozen=True, slots=True)
class Assessment:
    """A block's replicas, the places of copies under way, and the priority of another copy.

    ``required``: replicas that must be live; ``spread``: the replicas are on enough racks.
    """

    counts: Counts
    coming: tuple[Place, ...]
    required: int
    spread: bool
    priority: Priority | None


def check_redundancy(around: Surroundings, recheck: Recheck, now: float) -> None:
    """Put a block into the queue of its priority, and order the deletion of surplus replicas."""
    blocks, slot = around.cluster.blocks, recheck.slot
    block = blocks.map.block(slot)
    if not is_complete(block):
        blocks.needed.put(slot, None)
        blocks.rechecks.settle(slot)
        around.pending.pop(block.id)
        return
    if recheck.awaited:
        places = (around.cluster.find_place(number) for number in recheck.awaited)
        known = [place for place in places if place is not None]
        around.pending.add(block.id, known, now)
    around.pending.keep(block.id, lambda place: _still_comes(around.cluster, slot, place))
    found = assess(around, slot)
    blocks.needed.put(slot, found.priority)
    blocks.rechecks.settle(slot)
    _delete_corrupt(around, slot, found.counts, now)
    if len(found.counts.live) > block.expected:
        _delete_excess(around, recheck, found.counts, now)


def is_complete(block: BlockInfo) -> bool:
    """Return whether a block is complete and replicated.

    Striped block groups have ids below 0, and a slot without a block has 0: both give False.
    """
    return block.id > 0 and block.stage is Stage.COMPLETE


def assess(around: Surroundings, slot: Slot) -> Assessment:
    """Return the replicas of a complete block and its copies under way, without changing either.

    A copy that failed must stay in ``pending`` until the redundancy round finds it there.
    """
    blocks = around.cluster.blocks
    counts, block = count(around.cluster, slot), blocks.map.block(slot)
    expected = around.pending.places(block.id)
    coming = tuple(place for place in expected if _still_comes(around.cluster, slot, place))
    required = counts.required(block.expected, around.rules.maintained_least)
    spread = not around.many_racks or _racks(around.cluster, counts) >= min(RACKS, block.expected)
    urgency = priority(
        len(counts.live),
        len(coming),
        required,
        spread=spread,
        elsewhere=len(counts.out_of_service),
    )
    return Assessment(counts, coming, required, spread, urgency)


def _still_comes(cluster: Cluster, slot: Slot, place: Place) -> bool:
    node, storage = place
    known = node.alive and node.storages.get(storage.uuid) is storage
    return known and not cluster.blocks.map.is_good(slot, storage.held.number)


def _racks(cluster: Cluster, counts: Counts) -> int:
    """Count the racks of the replicas that stay; DataNodes in maintenance keep their rack."""
    staying = (*counts.live, *counts.maintained, *counts.away)
    return len({cluster.place(number)[0].rack for number in staying})


def _doubtful(cluster: Cluster, counts: Counts) -> frozenset[StorageNumber]:
    """Return the storages whose replicas may be gone: unconfirmed, or of dead DataNodes."""
    held = (*counts.live, *counts.excess, *counts.corrupt)
    dead = (number for number in held if not cluster.place(number)[0].alive)
    return counts.unconfirmed.union(dead)


def _delete_excess(around: Surroundings, recheck: Recheck, counts: Counts, now: float) -> None:
    """Order the deletion of excess replicas, counting those on confirmed live storages alone."""
    blocks, slot = around.cluster.blocks, recheck.slot
    doubtful = _doubtful(around.cluster, counts)
    certain = [number for number in counts.live if number not in doubtful]
    candidates = [_candidate(around, number, now) for number in certain]
    block = blocks.map.block(slot)
    wanted = around.cluster.policy_of(block.file_id).types(block.expected)
    for number in choose_excess(candidates, wanted, recheck.hint):
        blocks.order_deletion(slot, number, now)
    if len(certain) < len(counts.live):
        blocks.rechecks.postpone(slot)


def _candidate(around: Surroundings, number: StorageNumber, now: float) -> Candidate:
    node, storage = around.cluster.place(number)
    late = now > node.last_heard + around.rules.late_seconds
    return Candidate(
        number,
        storage.type,
        node.id.uuid,
        node.rack,
        node.last_heard,
        late,
        storage.room.remaining,
    )


def _delete_corrupt(around: Surroundings, slot: Slot, counts: Counts, now: float) -> None:
    """Order the deletion of corrupt replicas that are no longer needed; keep the last good one."""
    blocks = around.cluster.blocks
    kept = [number for number in counts.corrupt if not blocks.map.is_pending_deletion(slot, number)]
    if not kept:
        return
    if _doubtful(around.cluster, counts) and not around.rules.delete_corrupt_at_once:
        blocks.rechecks.postpone(slot)
        return
    for number in tuple(kept):
        if _is_superfluous(blocks, slot, number, len(counts.live), len(kept)) or _makes_room(
            around, slot, counts
        ):
            blocks.order_deletion(slot, number, now)
            kept.remove(number)


def _is_superfluous(
    blocks: BlockState, slot: Slot, number: StorageNumber, live: int, corrupt: int
) -> bool:
    """Return whether a corrupt replica is surplus: others suffice, or a pipeline dropped it."""
    block = blocks.map.block(slot)
    if live >= block.expected:
        return True
    mark = blocks.map.corrupt_marks(slot)[number]
    left_behind = (
        mark.reason is Reason.GENSTAMP_MISMATCH
        and mark.stamp is not None
        and mark.stamp < block.stamp
    )
    enough = blocks.map.has_minimum(live)
    return enough and (left_behind or live + corrupt > block.expected)


def _makes_room(around: Surroundings, slot: Slot, counts: Counts) -> bool:
    """Return whether only the deletion of a corrupt replica makes room for a good copy.

    True where each DataNode in service keeps a replica of the block, and enough good ones stay.
    """
    cluster, blocks = around.cluster, around.cluster.blocks
    enough = max(1, min(GOOD_IN_SMALL_CLUSTER, blocks.map.block(slot).expected - 1))
    if len(counts.corrupt) > 1:
        enough = 1  # another corrupt replica stays, in case the good one turns out corrupt
    if len(counts.live) < enough or _doubtful(cluster, counts):
        return False
    counted = (*counts.live, *counts.corrupt)
    staying = [number for number in counted if not blocks.map.is_pending_deletion(slot, number)]
    holders = {cluster.place(number)[0].id.uuid for number in staying}
    return all(node.id.uuid in holders for node in cluster.nodes.values() if is_in_service(node))
