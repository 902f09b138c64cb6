"""A few DataNodes and one NameNode that keeps their blocks, for scenarios in steps."""

from collections.abc import Iterable
from random import Random
from typing import Final

import numpy as np

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports, model, reports
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node, NodeStorage
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.namespace.changes import BlockAdded, BlockChange
from tests.namenode_sim.datanodes.redundancy_world import a_node

BLOCK: Final = 2**30 + 1
STAMP: Final = 1001
LENGTH: Final = 100


class Few:
    """DataNodes named by their storages; all are confirmed unless said otherwise."""

    def __init__(
        self, nodes: Iterable[str], racks: dict[str, str] | None = None, *, minimum: int = 1
    ) -> None:
        self.state = BlockState(minimum=minimum)
        self.state.set_starting(starting=False)
        self.cluster = Cluster("BP-1", self.state, Random(1))
        self.redundancy = Redundancy(self.cluster)
        self.nodes: dict[str, Node] = {}
        self.storages: dict[str, NodeStorage] = {}
        self.now, self.txid = 0.0, 0
        incremental_reports.activate(self.state)
        for name in nodes:
            rack = (racks or {}).get(name, "/r")
            self.nodes[name], self.storages[name] = a_node(self.cluster, name, rack)
            self.confirm(name)
        self.work()

    def confirm(self, name: str) -> None:
        held = self.storages[name].held
        held.heartbeated = True
        blocks = [self.state.map.block(model.Slot(slot)) for slot in sorted(held.slots)]
        rows = reports.Rows(
            np.array([block.id for block in blocks], np.int64),
            np.array([block.length for block in blocks], np.int64),
            np.array([block.stamp for block in blocks], np.int64),
            np.zeros(len(blocks), np.uint8),
        )
        self.nodes[name].last_heard = self.now
        for part in reports.parts(reports.in_order(rows)):
            found = reports.compare(self.state, held, part, self.now)
            reports.settle(self.state, held, found, 0, len(found))
        reports.finish(self.state, held)

    def work(self) -> None:
        while self.redundancy.work(self.now):
            pass
        self.state.map.check()

    def round(self, seconds: float = 3.0) -> None:
        self.now += seconds
        for node in self.nodes.values():
            node.last_heard = self.now if node.alive else node.last_heard
        self.redundancy.begin_round(self.now)
        self.work()

    def scheduled(self, name: str) -> int:
        """How many replicas are on their way to a storage."""
        return self.storages[name].held.scheduled.count(self.now)

    def edit(self, *changes: BlockChange) -> None:
        self.txid += 1
        apply_edits.apply_edit(self.state, TxId(self.txid), changes)

    def block(self, on: str, expected: int, number: int = BLOCK) -> model.Slot:
        """Add a complete block with replicas on some DataNodes, one letter each."""
        self.edit(BlockAdded(1, number, LENGTH, STAMP, expected, complete=True))
        for name in on:
            self.received(name, number)
        slot = self.state.map.find(number)
        assert slot is not None
        return slot

    def received(self, name: str, number: int = BLOCK, stamp: int = STAMP) -> None:
        told = model.Reported(model.ReplicaState.FINALIZED, stamp, LENGTH)
        incremental_reports.receive(
            self.state, self.storages[name].held, [(number, told)], self.now
        )

    def deleted(self, name: str, number: int = BLOCK) -> None:
        told = [(number, model.Deleted(STAMP))]
        incremental_reports.receive(self.state, self.storages[name].held, told, self.now)

    def damaged(self, slot: model.Slot, *names: str, stamp: int = STAMP) -> None:
        for name in names:
            mark = model.CorruptMark(model.Reason.CORRUPTION_REPORTED, stamp)
            self.state.mark_corrupt(slot, self.storages[name].held, mark)

    def dies(self, name: str) -> None:
        self.nodes[name].alive = False
        self.state.empty_storage(self.storages[name].held)

    def unconfirmed(self, *names: str) -> None:
        for name in names:
            self.storages[name].held.confirmed = False

    def ordered(self) -> list[tuple[str, int, int]]:
        found = [
            (self.cluster.place(number)[0].id.uuid, block_id, stamp)
            for number, block_id, stamp, _ in self.state.invalidations
        ]
        return sorted(found)

    def losing(self) -> str:
        """Return the DataNodes that are to delete something, a letter each."""
        return "".join(name for name, _, _ in self.ordered())

    def targets(self) -> list[str]:
        return sorted(target for sent in self.copies().values() for target in sent)

    def copies(self) -> dict[str, list[str]]:
        """Return the targets of the copies that each DataNode has to make."""
        return {
            name: ["".join(self.cluster.place(n)[0].id.uuid for n in order.targets)
                   for order in node.copy_orders]
            for name, node in self.nodes.items() if node.copy_orders
        }  # fmt: skip
