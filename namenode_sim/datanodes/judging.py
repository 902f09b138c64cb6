"""Judges one block: whether it needs a copy, and which of its replicas are to go.

See docs/reference/blocks.md#judging-redundancy.
"""

from dataclasses import dataclass, field
from typing import Final

from namenode_sim.blocks.model import Reason, Slot, Stage, StorageNumber
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.redundancy import Counts, count, priority
from namenode_sim.blocks.state import BlockState
from namenode_sim.blocks.touched import Touch
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.excess_choice import RACKS, Candidate, choose_excess
from namenode_sim.datanodes.pending import Pending
from namenode_sim.datanodes.placement import Place

GOOD_IN_SMALL_CLUSTER: Final = 2
"""With so many good replicas a corrupt one goes before its copy has come, if there is no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyRules:
    """Hadoop's settings, with their defaults.

    ``work_per_node``: blocks to copy in a round for each live DataNode.  ``pending_seconds``: a
    copy that takes longer is given up.  ``excess_seconds``: an order to delete is repeated then.
    ``late_seconds``: a DataNode that is silent for so long loses excess replicas first.
    ``delete_corrupt_at_once``: corrupt replicas do not wait for unconfirmed storages.
    """

    work_per_node: int = 2
    pending_seconds: float = 300.0
    excess_seconds: float = 3600.0
    late_seconds: float = 12.0
    delete_corrupt_at_once: bool = False


@dataclass(slots=True)
class Surroundings:
    """What blocks are judged by, beside themselves.

    ``many_racks``: DataNodes stand, or once stood, on more than one rack.
    """

    cluster: Cluster
    rules: RedundancyRules
    many_racks: bool = False
    pending: Pending = field(init=False)

    def __post_init__(self) -> None:
        self.pending = Pending(self.rules.pending_seconds)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A block's replicas, those on their way, and how urgent another one is."""

    counts: Counts
    coming: tuple[Place, ...]
    priority: Priority | None


def judge(around: Surroundings, touch: Touch, now: float) -> None:
    """Judge a block: move it to its queue, and order what is to be deleted."""
    blocks, slot = around.cluster.blocks, touch.slot
    if not is_complete(around.cluster, slot):
        blocks.needed.put(slot, None)
        blocks.postponed.pop(slot, None)
        around.pending.pop(blocks.columns.ids[slot])
        return
    if touch.awaited:
        places = (around.cluster.find_place(number) for number in touch.awaited)
        known = [place for place in places if place is not None]
        around.pending.add(blocks.columns.ids[slot], known, now)
    found = look_at(around, slot)
    blocks.needed.put(slot, found.priority)
    blocks.postponed.pop(slot, None)
    _delete_corrupt(around, slot, found.counts, now)
    if len(found.counts.live) > blocks.columns.expected[slot]:
        _delete_excess(around, touch, found.counts, now)


def is_complete(cluster: Cluster, slot: Slot) -> bool:
    """Whether a slot is that of a complete block with replicas of its own.

    The ids of striped groups are below 0; a slot without a block has 0.
    """
    columns = cluster.blocks.columns
    return columns.ids[slot] > 0 and columns.stage(slot) is Stage.COMPLETE


def look_at(around: Surroundings, slot: Slot) -> Judgement:
    """Count a complete block's replicas; those that have come are no longer on their way."""
    blocks = around.cluster.blocks
    counts, columns = count(blocks, slot), blocks.columns
    coming = around.pending.keep(
        columns.ids[slot], lambda place: _still_comes(around.cluster, slot, place)
    )
    expected = columns.expected[slot]
    spread = not around.many_racks or _racks(around.cluster, counts.live) >= min(RACKS, expected)
    urgency = priority(len(counts.live), len(coming), expected, spread=spread)
    return Judgement(counts, coming, urgency)


def _still_comes(cluster: Cluster, slot: Slot, place: Place) -> bool:
    node, storage = place
    known = node.alive and node.storages.get(storage.uuid) is storage
    return known and not cluster.blocks.is_good(slot, storage.held.number)


def _racks(cluster: Cluster, numbers: tuple[StorageNumber, ...]) -> int:
    return len({cluster.place(number)[0].rack for number in numbers})


def _doubtful(cluster: Cluster, counts: Counts) -> frozenset[StorageNumber]:
    """Storages whose replicas may be gone: unconfirmed ones, and those of dead DataNodes."""
    held = (*counts.live, *counts.excess, *counts.corrupt)
    dead = (number for number in held if not cluster.place(number)[0].alive)
    return counts.unconfirmed.union(dead)


def _delete_excess(around: Surroundings, touch: Touch, counts: Counts, now: float) -> None:
    """Delete what is too much where that is certain; what is certain must be enough alone."""
    blocks, slot = around.cluster.blocks, touch.slot
    doubtful = _doubtful(around.cluster, counts)
    certain = [number for number in counts.live if number not in doubtful]
    candidates = [_candidate(around, number, now) for number in certain]
    expected = blocks.columns.expected[slot]
    wanted = around.cluster.policy_of(blocks.columns.files[slot]).types(expected)
    for number in choose_excess(candidates, wanted, touch.hint):
        blocks.doom(slot, number, now)
    if len(certain) < len(counts.live):
        blocks.postponed[slot] = None


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
    """Delete corrupt replicas that are not needed any more; the last good one never goes."""
    blocks = around.cluster.blocks
    kept = [number for number in counts.corrupt if not blocks.doomed.has(slot, number)]
    if not kept:
        return
    if _doubtful(around.cluster, counts) and not around.rules.delete_corrupt_at_once:
        blocks.postponed[slot] = None
        return
    for number in tuple(kept):
        if _is_superfluous(blocks, slot, number, len(counts.live), len(kept)) or _makes_room(
            around, slot, counts
        ):
            blocks.doom(slot, number, now)
            kept.remove(number)


def _is_superfluous(
    blocks: BlockState, slot: Slot, number: StorageNumber, live: int, corrupt: int
) -> bool:
    """Whether a corrupt replica may go: the others are enough, or it fell out of a pipeline."""
    expected = blocks.columns.expected[slot]
    if live >= expected:
        return True
    mark = blocks.corrupt[slot][number]
    left_behind = (
        mark.reason is Reason.GENSTAMP_MISMATCH
        and mark.stamp is not None
        and mark.stamp < blocks.columns.stamps[slot]
    )
    return live >= blocks.minimum and (left_behind or live + corrupt > expected)


def _makes_room(around: Surroundings, slot: Slot, counts: Counts) -> bool:
    """Whether a corrupt replica must go before its copy can come, and enough good ones stay.

    Every live DataNode holds a replica of the block, and none is about to lose it.
    """
    cluster, blocks = around.cluster, around.cluster.blocks
    enough = max(1, min(GOOD_IN_SMALL_CLUSTER, blocks.columns.expected[slot] - 1))
    if len(counts.corrupt) > 1:
        enough = 1  # another corrupt one stays to be searched, should the good one be bad as well
    if len(counts.live) < enough or _doubtful(cluster, counts):
        return False
    counted = (*counts.live, *counts.corrupt)
    staying = [number for number in counted if not blocks.doomed.has(slot, number)]
    holders = {cluster.place(number)[0].id.uuid for number in staying}
    return all(node.id.uuid in holders for node in cluster.nodes.values() if node.alive)
