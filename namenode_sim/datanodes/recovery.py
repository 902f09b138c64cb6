"""Block recovery: the choice of its primary DataNode, its order, and its effect on the map.

See docs/reference/datanodes.md#block-recovery.
"""

from collections.abc import Iterable, Sequence

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.blocks import model
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node, NodeStorage, RecoveryOrder, StorageState


@dataclass(frozen=True, slots=True)
class Candidate:
    """A storage that may have a replica; ``last_heard``: of its DataNode, in monotonic seconds."""

    storage: model.StorageNumber
    alive: bool
    last_heard: float


def choose_primary(
    candidates: Sequence[Candidate], tried: frozenset[model.StorageNumber]
) -> tuple[model.StorageNumber | None, frozenset[model.StorageNumber]]:
    """Return the storage whose DataNode leads, None if no DataNode is alive, and all tried so far.

    Of the storages not yet tried it is the one whose DataNode was heard of last; once all were
    tried, all may be tried again (BlockUnderConstructionFeature.initializeBlockRecovery).
    """
    alive = [one for one in candidates if one.alive]
    left = [one for one in alive if one.storage not in tried]
    if not left:
        left, tried = alive, frozenset()
    if not left:
        return None, tried
    chosen = max(left, key=lambda one: one.last_heard).storage
    return chosen, tried | {chosen}


def participants(cluster: Cluster, slot: model.Slot) -> list[tuple[Node, NodeStorage]]:
    """Return the places of the replicas for a recovery; for a copied block, of its source.

    Corrupt replicas take part only where there are no others: they may hold all written bytes.
    Finalized replicas with a newer stamp than the block's come from a recovery whose result was
    lost; then these alone take part.  They hold all acknowledged bytes.  Bad schedule: one replica
    was cut by that recovery and takes part, too; DataNodes then refuse the longer ones each time.
    """
    state = cluster.blocks
    construction = state.map.construction(slot)
    cut = construction.cut
    if cut is None or cut.source_id == state.map.block(slot).id:
        places = [(one, cluster.place(one.storage)) for one in construction.locations]
        if not places:
            return [cluster.place(number) for number in _damaged_storages(state, slot)]
        stamps = [
            one.stamp
            for one, place in places
            if one.state is model.ReplicaState.FINALIZED and _candidate(*place).alive
        ]
        own = state.map.block(slot).stamp
        newest = max((own, *stamps))
        if newest == own:
            return [place for _, place in places]
        finalized = model.ReplicaState.FINALIZED, newest
        return [place for one, place in places if (one.state, one.stamp) == finalized]
    source = state.map.find(cut.source_id)
    if source is None:
        return []
    numbers = state.map.storages_of(source)
    good = [number for number in numbers if state.map.is_good(source, number)]
    return [cluster.place(number) for number in good or _damaged_storages(state, source)]


def _damaged_storages(state: BlockState, slot: model.Slot) -> list[model.StorageNumber]:
    """Return the storages whose corrupt replicas have the block's stamp."""
    stamps = {None, state.map.block(slot).stamp}
    marks = state.map.corrupt_marks(slot)
    return [number for number, mark in marks.items() if mark.stamp in stamps]


def begin(cluster: Cluster, block_id: int, stamp: int, cause: TxId, now: float) -> Node | None:
    """Order a recovery; return its primary DataNode, or None if none is alive.

    ``stamp``: the new generation stamp of the block; ``cause``: the edit that allocated it.
    """
    state = cluster.blocks
    slot = state.map.slot(block_id)
    state.set_stage(slot, model.Stage.UNDER_RECOVERY)
    candidates = [_candidate(*place) for place in participants(cluster, slot)]
    chosen, tried = choose_primary(candidates, state.map.construction(slot).tried)
    state.note_recovery(slot, stamp, None if chosen is None else now, tried)
    if chosen is None:
        return None
    node, _ = cluster.place(chosen)
    node.recovery_orders.append(RecoveryOrder(block_id, stamp, cause))
    return node


def can_be_led(cluster: Cluster, slot: model.Slot) -> bool:
    return any(_candidate(*place).alive for place in participants(cluster, slot))


def _candidate(node: Node, storage: NodeStorage) -> Candidate:
    usable = node.alive and storage.state is not StorageState.FAILED
    return Candidate(storage.held.number, usable, node.last_heard)


@dataclass(frozen=True, slots=True)
class Before:
    """The stamp of a block before its recovery, and the storages with good replicas."""

    stamp: int
    held: tuple[model.StorageNumber, ...]


def before(state: BlockState, slot: model.Slot) -> Before:
    """Return what ``take_recovered`` compares with after the edit that ends a recovery."""
    held = tuple(n for n in state.map.storages_of(slot) if state.map.is_good(slot, n))
    return Before(state.map.block(slot).stamp, held)


def take_recovered(
    cluster: Cluster, block_id: int, storages: Iterable[NodeStorage], was: Before
) -> None:
    """Add the replicas of a recovered block to the map, and mark all older ones as corrupt.

    ``storages`` are those that the primary DataNode names: no other has reported the new stamp.
    The block becomes complete even if these replicas are known as corrupt (PendingRecoveryBlocks):
    its file is closed, and no later event would complete the block.
    """
    state = cluster.blocks
    slot = state.map.slot(block_id)
    for storage in storages:
        state.take(slot, storage.held)
    if state.map.block(slot).stage is model.Stage.COMMITTED:
        state.set_stage(slot, model.Stage.COMPLETE)
    mark = model.CorruptMark(model.Reason.GENSTAMP_MISMATCH, was.stamp)
    for number in was.held:
        storage_left = state.map.storages.at(number)
        elsewhere = any(
            state.map.holds(slot, other.number) for other in state.map.storages.others(storage_left)
        )
        if not elsewhere and not state.map.holds(slot, number):
            state.mark_corrupt(slot, storage_left, mark)


def reopen(cluster: Cluster, block_id: int, storages: Iterable[NodeStorage]) -> None:
    """Put a recovered block under construction again, with these replicas."""
    state = cluster.blocks
    slot = state.map.slot(block_id)
    state.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)
    state.note_recovery(slot, None, None, frozenset())
    known = state.map.construction(slot)
    for storage in storages:
        if known.at(storage.held.number) is None:
            state.take(slot, storage.held)
