"""Finds out whether the blocks of a DataNode that leaves service are safe without it.

See docs/reference/datanodes.md#leaving-service.
"""

from array import array
from collections.abc import Iterator
from typing import Final

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.blocks.model import RACKS, Slot, Stage, StorageNumber
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import AdminState, Node, StorageState
from namenode_sim.datanodes.placement import is_in_service
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.datanodes.redundancy_check import Assessment

LOOKED_AT_ONCE: Final = 200
"""After this number of blocks others may get the event loop."""

Reported = tuple[int, frozenset[tuple[StorageNumber, int]]]
"""How often a DataNode has registered, and its confirmed storages with their full reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingRules:
    """A block with ``replication`` live replicas, the default, is safe whatever it is to have.

    ``maintained_least`` live ones are enough for a maintenance. Every ``look_seconds`` at most
    ``most_at_once`` DataNodes are looked at.
    """

    replication: int = 3
    maintained_least: int = 1
    look_seconds: float = 30.0
    most_at_once: int = 100


@dataclass(slots=True)
class Progress:
    """What is known of a DataNode that leaves service.

    ``unsafe`` are the blocks that are not safe without it, None before all were looked at once.
    ``clean``: the last look at all of its blocks found none; ``proven``: the edits applied then.
    ``reported``: what it had reported when that look began.
    """

    unsafe: "array[int] | None" = None
    clean: bool = False
    proven: TxId = TxId(0)
    reported: "Reported | None" = None

    @property
    def left(self) -> int | None:
        return None if self.unsafe is None else len(self.unsafe)


@dataclass(frozen=True, slots=True)
class Leaving:
    """Judges the blocks of DataNodes that leave service, as this NameNode knows them now."""

    cluster: Cluster
    redundancy: Redundancy
    rules: LeavingRules

    def look(self, node: Node, progress: Progress) -> Iterator[int]:
        """Look at the blocks that were not safe, and at all once none of them is left.

        Yields the number of blocks after each few, so that others get the event loop.
        """
        progress.clean = False
        if progress.unsafe:
            yield from self._sift(node, progress, progress.unsafe)
        if progress.unsafe:
            return
        progress.reported = _reports_of(node)
        yield from self._sift(node, progress, self._all_blocks(node))
        progress.clean, progress.proven = not progress.unsafe, self.cluster.blocks.applied

    def may_go(self, node: Node, progress: Progress) -> bool:
        """Return whether a DataNode may be switched off: no block needs it, as far as is known.

        The replicas of a dead one are not counted any more: nothing may lack any then.
        Bad schedule: it has registered, and its first report comes after the look at its blocks.
        """
        if not progress.clean:
            return False
        if not node.alive:
            return not len(self.cluster.blocks.needed) and not len(self.redundancy.pending)
        storages = [one for one in node.storages.values() if one.state is not StorageState.FAILED]
        certain = bool(node.storages) and all(one.held.confirmed for one in storages)
        return certain and progress.reported == _reports_of(node)

    def _all_blocks(self, node: Node) -> "array[int]":
        numbers = {one.held.number for one in node.storages.values()}
        slots = array("I")
        for storage in node.storages.values():
            slots.extend(storage.held.slots)
        blocks = self.cluster.blocks.map
        for slot in blocks.unfinished():
            construction = blocks.find_construction(slot)
            if construction and numbers.intersection(one.storage for one in construction.locations):
                slots.append(slot)
        return slots

    def _sift(self, node: Node, progress: Progress, slots: "array[int]") -> Iterator[int]:
        """Keep what is not safe; each block is judged as it is when its turn comes."""
        unsafe = dict[int, None]()
        for begin in range(0, len(slots), LOOKED_AT_ONCE):
            some = slots[begin : begin + LOOKED_AT_ONCE]
            unsafe.update((one, None) for one in some if not self._is_safe(node, Slot(one)))
            yield len(some)
        progress.unsafe = array("I", unsafe)

    def _is_safe(self, node: Node, slot: Slot) -> bool:
        """Return whether a block does without a DataNode, if it is there at all."""
        blocks = self.cluster.blocks.map
        block = blocks.block(slot)
        construction = blocks.find_construction(slot)
        held = set(blocks.storages_of(slot))
        if construction is not None:
            held.update(one.storage for one in construction.locations)
        if not any(one.held.number in held for one in node.storages.values()):
            return True  # the slot is another block's by now
        if construction is not None or block.stage is not Stage.COMPLETE:
            # Its writer goes on with the others of the pipeline, but not with what fell out of it.
            now = {n for n in held if blocks.holds_current(slot, self.cluster.place(n)[1].held)}
            return blocks.has_minimum(len({self._uuid(one) for one in now if self._stays(one)}))
        if block.id <= 0:
            return False  # of a striped file, whose parts are not copied by this NameNode
        found = self.redundancy.assess(slot)
        live = sum(self._stays(number) for number in found.counts.live)
        if node.admin.is_maintained:
            return live >= min(self.rules.maintained_least, block.expected)
        if live >= found.required and (found.spread or not self._can_spread(found)):
            return True
        return live >= self.rules.replication

    def _uuid(self, number: StorageNumber) -> str:
        return self.cluster.place(number)[0].id.uuid

    def _stays(self, number: StorageNumber) -> bool:
        """Return whether a replica counts here: what a storage holds is certain, and it stays.

        Bad schedule: a former active has ordered its deletion, and the report of it is to come.
        """
        node, storage = self.cluster.place(number)
        return storage.held.confirmed and node.alive and node.admin is AdminState.NORMAL

    def _can_spread(self, found: Assessment) -> bool:
        """Return whether another rack could have a replica: where not, there is no waiting."""
        racks = {node.rack for node in self.cluster.nodes.values() if is_in_service(node)}
        return len(racks) >= min(RACKS, found.required)


def _reports_of(node: Node) -> Reported:
    held = [one.held for one in node.storages.values() if one.held.confirmed]
    return node.registrations, frozenset((one.number, one.reports) for one in held)
