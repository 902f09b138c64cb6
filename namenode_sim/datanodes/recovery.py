"""Block recovery: which DataNode leads it, what it is sent, what the map has after it.

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
    """A storage that may have a replica; ``last_heard`` is that of its DataNode."""

    storage: model.StorageNumber
    alive: bool
    last_heard: float


def choose_primary(
    candidates: Sequence[Candidate], tried: frozenset[model.StorageNumber]
) -> tuple[model.StorageNumber | None, frozenset[model.StorageNumber]]:
    """Choose the storage whose DataNode leads; return also those tried by then, None if none lives.

    It is the one heard of last among those not yet tried; once all have been tried, all may be
    asked again (BlockUnderConstructionFeature.initializeBlockRecovery).
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
    """Return where replicas are that a recovery may need; of a copied block those of its source.

    Damaged ones take part where there are no others: they may have all that was ever written.
    Finalized replicas with a newer stamp than the block's are what a recovery has left whose result
    never came. They have all that was acknowledged; together with one that was cut already,
    DataNodes would refuse the whole ones for their length, time and again.
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
    """Have a recovery led by a DataNode, which is returned; None if none can lead it now.

    ``stamp`` is the one that the block is to have; ``cause`` is the edit that gave it out.
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
    """What the map had of a block before a recovery: its stamp, and the replicas with a cell."""

    stamp: int
    held: tuple[model.StorageNumber, ...]


def before(state: BlockState, slot: model.Slot) -> Before:
    """Note what an edit that ends a recovery may make obsolete."""
    held = tuple(n for n in state.map.storages_of(slot) if state.map.is_good(slot, n))
    return Before(state.map.block(slot).stamp, held)


def take_recovered(
    cluster: Cluster, block_id: int, storages: Iterable[NodeStorage], was: Before
) -> None:
    """Note where a block that was just completed is, and that what others have of it is corrupt.

    Of the replicas with the new stamp nothing is known yet but what the recovery's leader reports.
    The block is complete though these were found damaged (PendingRecoveryBlocks): its file is
    closed, and nothing else would ever complete it.
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
    """Note that a recovered block is being written again, and where."""
    state = cluster.blocks
    slot = state.map.slot(block_id)
    state.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)
    state.note_recovery(slot, None, None, frozenset())
    known = state.map.construction(slot)
    for storage in storages:
        if known.at(storage.held.number) is None:
            state.take(slot, storage.held)
