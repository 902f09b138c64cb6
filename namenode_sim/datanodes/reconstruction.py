"""How urgent another replica of a block is, which DataNode copies it, and to where.

See docs/reference/blocks.md#judging-redundancy and docs/reference/blocks.md#copies.
"""

from typing import Final, assert_never

from ha.record import dataclass
from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import AdminState, Node
from namenode_sim.datanodes.placement import Place, Wish
from namenode_sim.datanodes.storage_policies import StoragePolicy

MAX_STREAMS: Final = 2
"""The number of copies a DataNode makes at once, and of those that may wait (max-streams)."""

MAX_STREAMS_URGENT: Final = 4
"""The same with copies of blocks that have one replica left (max-streams-hard-limit)."""

VERY_LOW_SHARE: Final = 3
"""A block is very low on replicas with less than one in this many of them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The storages of a block's replicas; each is in one of these but the last.

    ``live``: good, and to stay.  ``excess``: good, and ordered to be deleted.  ``corrupt``.
    ``leaving`` and ``left``: good, on DataNodes that are being, or have been, decommissioned.
    ``maintained`` and ``away``: good, on DataNodes that enter maintenance, or that are in it or
    died on the way, which cannot be read from.
    ``unconfirmed``: those of all on storages whose word is older than this active.
    """

    live: tuple[StorageNumber, ...]
    excess: tuple[StorageNumber, ...]
    corrupt: tuple[StorageNumber, ...]
    unconfirmed: frozenset[StorageNumber]
    leaving: tuple[StorageNumber, ...] = ()
    left: tuple[StorageNumber, ...] = ()
    maintained: tuple[StorageNumber, ...] = ()
    away: tuple[StorageNumber, ...] = ()

    @property
    def out_of_service(self) -> tuple[StorageNumber, ...]:
        return (*self.leaving, *self.left, *self.maintained, *self.away)

    def required(self, expected: int, maintained_least: int) -> int:
        """Return how many live replicas are enough while others are in maintenance."""
        maintained = len(self.maintained) + len(self.away)
        return max(expected - maintained, min(maintained_least, expected))


def count(cluster: Cluster, slot: Slot) -> Counts:
    """Sort the replicas of a block."""
    blocks = cluster.blocks.map
    held, marks = blocks.storages_of(slot), blocks.corrupt_marks(slot)
    found: dict[str, list[StorageNumber]] = {"live": [], "excess": []}
    for one in (number for number in held if number not in marks):
        name = _service(cluster.place(one)[0]) if cluster.leaving else "live"
        # What is to be deleted does not come back after a maintenance: it is excess before all.
        doomed = blocks.is_pending_deletion(slot, one)
        found.setdefault("excess" if doomed else name, []).append(one)
    return Counts(
        corrupt=tuple(marks),
        unconfirmed=frozenset(one for one in held if not blocks.storages.at(one).confirmed),
        **{name: tuple(numbers) for name, numbers in found.items()},
    )


def _service(node: Node) -> str:
    """Return the field of the counts in which good replicas on a DataNode are."""
    match node.admin:
        case AdminState.NORMAL:
            return "live"
        case AdminState.DECOMMISSION_INPROGRESS:
            return "leaving"
        case AdminState.DECOMMISSIONED:
            return "left"
        case AdminState.ENTERING_MAINTENANCE if node.alive:
            return "maintained"
        case AdminState.ENTERING_MAINTENANCE | AdminState.IN_MAINTENANCE:
            return "away"
        case _:
            assert_never(node.admin)


def priority(
    live: int, coming: int, expected: int, *, spread: bool, elsewhere: int = 0
) -> Priority | None:
    """Return how urgent another replica is, or None if there are enough.

    ``coming`` copies are on their way; ``spread``: the live ones stand on enough racks;
    ``elsewhere`` replicas are on DataNodes that leave service.
    """
    if live == 0 and not elsewhere:
        return Priority.MISSING
    if live + coming >= expected:
        return None if coming or spread else Priority.BADLY_DISTRIBUTED
    if live <= 1:
        return Priority.HIGHEST
    return Priority.VERY_LOW if live * VERY_LOW_SHARE < expected else Priority.LOW


@dataclass(frozen=True, slots=True)
class Copy:
    """A DataNode sends a block to others, through all of them."""

    source: Node
    targets: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """What a block lacks: replicas, or another rack for one more; ``required`` are to be live."""

    slot: Slot
    required: int
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
    lacking = missing.required - len(chosen)
    wish = Wish(
        count=max(lacking, 1),
        size=block.length,
        policy=policy,
        writer=source,
        chosen=chosen,
        excluded=_others(cluster, missing),
        copy=True,
    )
    targets = cluster.choose(wish, now).places
    if not targets:
        return None
    if lacking <= 0 and targets[0][0].rack in {node.rack for node, _ in live}:
        return None  # only a rack lacks
    return Copy(source, targets)


def _others(cluster: Cluster, missing: Missing) -> frozenset[str]:
    """Return the DataNodes of replicas that do not count: each has room for one of a block."""
    counts = missing.counts
    numbers = (*counts.excess, *counts.corrupt, *counts.out_of_service)
    return frozenset(cluster.place(number)[0].id.uuid for number in numbers)


def _source(cluster: Cluster, missing: Missing) -> Node | None:
    """Choose one of the DataNodes with a good replica that are not busy.

    One that leaves service goes before others, for it does no other work; one that has left it is
    asked only where there is no other.
    """
    counts = missing.counts
    urgent = missing.priority is Priority.HIGHEST
    for numbers, most in (
        ((*counts.leaving, *counts.maintained), MAX_STREAMS_URGENT),
        (counts.live, MAX_STREAMS_URGENT if urgent else MAX_STREAMS),
        (counts.left, MAX_STREAMS_URGENT),
    ):
        free = [
            node
            for node, _ in map(cluster.place, numbers)
            if node.alive and len(node.copy_orders) < most
        ]
        if free:
            return free[cluster.draw.randrange(len(free))]
    return None
