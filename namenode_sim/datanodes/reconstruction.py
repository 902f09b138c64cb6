"""How urgent another replica of a block is, which DataNode copies it, and to where.

See docs/reference/blocks.md#judging-redundancy and docs/reference/blocks.md#copies.
"""

from dataclasses import dataclass
from typing import Final

from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node
from namenode_sim.datanodes.placement import Place, Wish, choose
from namenode_sim.datanodes.storage_policies import StoragePolicy

MAX_STREAMS: Final = 2
"""The number of copies a DataNode makes at once, and of those that may wait (max-streams)."""

MAX_STREAMS_URGENT: Final = 4
"""The same with copies of blocks that have one replica left (max-streams-hard-limit)."""

VERY_LOW_SHARE: Final = 3
"""A block is very low on replicas with less than one in this many of them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The storages of a block's replicas; each is in one of the first three.

    ``live``: good, and to stay.  ``excess``: good, and ordered to be deleted.  ``corrupt``.
    ``unconfirmed``: those of all on storages whose word is older than this active.
    """

    live: tuple[StorageNumber, ...]
    excess: tuple[StorageNumber, ...]
    corrupt: tuple[StorageNumber, ...]
    unconfirmed: frozenset[StorageNumber]


def count(state: BlockState, slot: Slot) -> Counts:
    """Sort the replicas of a block."""
    held, marks = state.map.storages_of(slot), state.map.corrupt_marks(slot)
    good = [one for one in held if one not in marks]
    return Counts(
        live=tuple(one for one in good if not state.map.is_pending_deletion(slot, one)),
        excess=tuple(one for one in good if state.map.is_pending_deletion(slot, one)),
        corrupt=tuple(marks),
        unconfirmed=frozenset(one for one in held if not state.map.storages.at(one).confirmed),
    )


def priority(live: int, coming: int, expected: int, *, spread: bool) -> Priority | None:
    """Return how urgent another replica is, or None if there are enough.

    ``coming`` copies are on their way; ``spread``: the live ones stand on enough racks.
    """
    if live == 0:
        return Priority.MISSING
    if live + coming >= expected:
        return None if coming or spread else Priority.BADLY_DISTRIBUTED
    if live == 1:
        return Priority.HIGHEST
    return Priority.VERY_LOW if live * VERY_LOW_SHARE < expected else Priority.LOW


@dataclass(frozen=True, slots=True)
class Copy:
    """A DataNode sends a block to others, through all of them."""

    source: Node
    targets: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """What a block lacks: replicas, or another rack for one more."""

    slot: Slot
    counts: Counts
    coming: tuple[Place, ...]
    priority: Priority


def plan_copy(cluster: Cluster, missing: Missing, policy: StoragePolicy, now: float) -> Copy | None:
    """Choose a source and targets; None if either is not to be had now."""
    source = _source(cluster, missing)
    if source is None:
        return None
    live = tuple(cluster.place(number) for number in missing.counts.live)
    chosen, block = (*live, *missing.coming), cluster.blocks.map.block(missing.slot)
    lacking = block.expected - len(chosen)
    wish = Wish(
        count=max(lacking, 1),
        size=block.length,
        policy=policy,
        writer=source,
        chosen=chosen,
        excluded=_others(cluster, missing),
        copy=True,
    )
    targets = choose(cluster.nodes.values(), wish, now, cluster.draw, cluster.placement).places
    if not targets:
        return None
    if lacking <= 0 and targets[0][0].rack == source.rack:
        return None  # only a rack lacks, so that all live ones stand on this one
    return Copy(source, targets)


def _others(cluster: Cluster, missing: Missing) -> frozenset[str]:
    """Return the DataNodes of replicas that do not count: each has room for one of a block."""
    numbers = (*missing.counts.excess, *missing.counts.corrupt)
    return frozenset(cluster.place(number)[0].id.uuid for number in numbers)


def _source(cluster: Cluster, missing: Missing) -> Node | None:
    """Choose one of the DataNodes with a good replica that are not busy."""
    urgent = missing.priority is Priority.HIGHEST
    most = MAX_STREAMS_URGENT if urgent else MAX_STREAMS
    free = [
        node
        for node, _ in map(cluster.place, missing.counts.live)
        if node.alive and len(node.copy_orders) < most
    ]
    return free[cluster.draw.randrange(len(free))] if free else None
