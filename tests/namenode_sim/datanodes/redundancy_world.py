"""A small cluster in plain dictionaries, whose NameNode keeps blocks at their replicas.

What is on the disks is the truth; the NameNode knows of it by reports.  Orders to delete may lie
for long at a DataNode, as they may with Java's.  A former active has given orders of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import numpy as np

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports, model, reports
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import DatanodeId, Node, NodeStorage, Room
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.namespace import changes as namespace_changes

LENGTH: Final = 100


@dataclass(frozen=True)
class Replica:
    """One file of a disk."""

    stamp: int
    length: int
    damaged: bool = False


@dataclass(frozen=True)
class Order:
    """A replica that a DataNode was ordered to delete, by the active of a term."""

    block_id: int
    stamp: int
    term: int


@dataclass
class Machine:
    """A DataNode: its disk, and what it has still to delete."""

    node: Node
    storage: NodeStorage
    disk: dict[int, Replica] = field(default_factory=dict)
    orders: list[Order] = field(default_factory=list)
    is_up: bool = True


@dataclass
class Block:
    """What the namespace says of a block."""

    stamp: int
    length: int
    expected: int


def a_node(cluster: Cluster, name: str, rack: str) -> tuple[Node, NodeStorage]:
    node = Node(DatanodeId(name, "10.0.0.1", name, 1, 2, 3), "3.5.0", 0.0, rack=rack)
    cluster.nodes[name] = node
    storage = cluster.add_storage(node, f"DS-{name}")
    storage.room = Room(capacity=10**9, remaining=10**9)
    storage.held.heartbeated = True
    return node, storage


class World:
    """The NameNode and its DataNodes; what happens is drawn."""

    def __init__(self, chance: Random) -> None:
        self.state = BlockState(minimum=1)
        self.state.set_starting(starting=False)
        self.cluster = Cluster("BP-1", self.state, Random(chance.random()))
        self.redundancy = Redundancy(self.cluster)
        count, racks = chance.randint(3, 5), chance.randint(1, 3)
        self.machines = [
            Machine(*a_node(self.cluster, f"n{number}", f"/r{number % racks}"))
            for number in range(count)
        ]
        self.blocks: dict[int, Block] = {}
        self.term = self.txid = 0
        self.last_stamp, self.last_id = 1000, 2**30
        self.now = 0.0
        self.losses: dict[int, float] = {}
        self.left: list[tuple[Machine, int, int]] = []
        incremental_reports.activate(self.state)
        for machine in self.machines:
            machine.storage.held.heartbeated = True
            self.reports_in_full(machine)

    # ---- what is known ----

    def survivors(self, block_id: int, but: Machine) -> int:
        """Return how many other DataNodes have a good replica without an order to delete it."""
        return sum(self.keeps(one, block_id) for one in self.machines if one is not but)

    def keeps(self, machine: Machine, block_id: int) -> bool:
        block, replica = self.blocks[block_id], machine.disk.get(block_id)
        if replica != Replica(block.stamp, block.length):
            return False
        slot = self.slot(block_id)
        ours = self.state.map.is_pending_deletion(slot, machine.storage.held.number)
        theirs = any((one.block_id, one.stamp) == (block_id, block.stamp) for one in machine.orders)
        return not ours and not theirs

    def coming(self, block_id: int) -> int:
        """How many replicas the NameNode waits for."""
        return len(self.redundancy.pending.places(block_id))

    def slot(self, block_id: int) -> model.Slot:
        slot = self.state.map.find(block_id)
        assert slot is not None
        return slot

    def machine_of(self, node: Node) -> Machine:
        return next(one for one in self.machines if one.node is node)

    def up(self) -> list[Machine]:
        return [one for one in self.machines if one.is_up and one.node.alive]

    # ---- the namespace ----

    def edit(self, *changes: namespace_changes.BlockChange) -> None:
        self.txid += 1
        apply_edits.apply_edit(self.state, TxId(self.txid), changes)

    def writes(self, chance: Random) -> None:
        """Write a block; some of the pipeline's reports come late, or never."""
        pipeline = chance.sample(self.up(), min(len(self.up()), chance.randint(1, 4)))
        if not pipeline:
            return
        self.last_id, self.last_stamp = self.last_id + 1, self.last_stamp + 1
        number, stamp, expected = self.last_id, self.last_stamp, len(pipeline)
        self.blocks[number] = Block(stamp, LENGTH, expected)
        self.edit(namespace_changes.BlockAdded(1, number, 0, stamp, expected, complete=False))
        self.cluster.expect(self.slot(number), [one.storage for one in pipeline])
        told = chance.randint(0, len(pipeline))
        for machine in pipeline:
            machine.disk[number] = Replica(stamp, LENGTH)
        for machine in pipeline[:told]:
            self.tells(machine, number)
        self.edit(namespace_changes.BlockSettled(number, LENGTH, stamp, complete=True))
        for machine in pipeline[told:]:
            if chance.random() < 0.8:
                self.tells(machine, number)

    def appends(self, chance: Random) -> None:
        number = self.any_block(chance)
        pipeline = [one for one in self.up() if number and self.keeps(one, number)]
        slot = self.state.map.find(number) if number else None
        if number is None or slot is None or not pipeline:
            return
        if self.state.map.block(slot).stage is not model.Stage.COMPLETE:
            return
        pipeline = chance.sample(pipeline, chance.randint(1, len(pipeline)))
        self.last_stamp += 1
        block = self.blocks[number]
        block.stamp, block.length = self.last_stamp, block.length + 1
        self.edit(
            namespace_changes.BlockSettled(number, block.length - 1, block.stamp, complete=False)
        )
        for machine in pipeline:
            machine.disk[number] = Replica(block.stamp, block.length)
            self.tells(machine, number)
        self.edit(namespace_changes.BlockSettled(number, block.length, block.stamp, complete=True))

    def sets_replication(self, chance: Random) -> None:
        number = self.any_block(chance)
        if number is not None:
            block = self.blocks[number]
            block.expected = chance.randint(1, min(4, len(self.machines)))
            self.edit(namespace_changes.ReplicationSet((number,), block.expected))

    def deletes(self, chance: Random) -> None:
        number = self.any_block(chance)
        if number is not None:
            del self.blocks[number]
            self.edit(namespace_changes.BlocksGone((number,)))

    def any_block(self, chance: Random) -> int | None:
        return chance.choice(list(self.blocks)) if self.blocks else None

    # ---- DataNodes ----

    def tells(self, machine: Machine, block_id: int) -> None:
        """Report, incrementally, what is or is no longer on the disk."""
        replica = machine.disk.get(block_id)
        slot, number = self.state.map.find(block_id), machine.storage.held.number
        known = None if slot is None else self.state.map.stamp_on(slot, number)
        told = (
            model.Deleted(known or 0)
            if replica is None
            else model.Reported(model.ReplicaState.FINALIZED, replica.stamp, replica.length)
        )
        held = machine.storage.held
        incremental_reports.receive(self.state, held, [(block_id, told)], self.now)
        held.gone.clear()  # no news is late here: that is for the tests of the map

    def reports_in_full(self, machine: Machine) -> None:
        ids = sorted(machine.disk)
        found = [machine.disk[number] for number in ids]
        rows = reports.Rows(
            np.array(ids, np.int64),
            np.array([one.length for one in found], np.int64),
            np.array([one.stamp for one in found], np.int64),
            np.zeros(len(ids), np.uint8),
        )
        held = machine.storage.held
        for part in reports.parts(reports.in_order(rows)):
            differences = reports.compare(self.state, held, part, self.now)
            reports.settle(self.state, held, differences, 0, len(differences))
        reports.finish(self.state, held)
        self.scans(machine)

    def scans(self, machine: Machine) -> None:
        """Find a DataNode's damaged replicas, also those that the NameNode has forgotten."""
        held = machine.storage.held
        for number, replica in machine.disk.items():
            slot = self.state.map.find(number)
            if replica.damaged and slot is not None and self.state.map.is_good(slot, held.number):
                mark = model.CorruptMark(model.Reason.CORRUPTION_REPORTED, replica.stamp)
                self.state.mark_corrupt(slot, held, mark)

    def is_drained(self, machine: Machine) -> bool:
        """Whether nothing that a former active has ordered is still to be done."""
        return all(one.term == self.term for one in machine.orders)

    def heartbeats(self, machine: Machine) -> None:
        """Register a DataNode that was away; hand over its orders."""
        if not machine.node.alive:
            self.state.registered(machine.node.id.uuid)
            machine.node.alive = True
        machine.node.last_heard = self.now
        machine.storage.held.heartbeated = self.is_drained(machine)
        number = machine.storage.held.number
        for block_id, stamp in self.state.invalidations.take_due(number, self.state.applied, 1000):
            self.left.append((machine, block_id, stamp))
            machine.orders.append(Order(block_id, stamp, self.term))

    def heartbeat(self, chance: Random) -> None:
        machine = chance.choice(self.machines)
        if machine.is_up:
            self.heartbeats(machine)
            self.copies(machine, chance)

    def copies(self, machine: Machine, chance: Random | None = None) -> None:
        """Send blocks from a DataNode to others; some copies do not arrive."""
        for order in list(machine.node.copy_orders):
            machine.node.copy_orders.remove(order)
            block, replica = self.blocks.get(order.block_id), machine.disk.get(order.block_id)
            if block is None or replica != Replica(block.stamp, block.length):
                continue
            for number in order.targets:
                target = self.machine_of(self.cluster.place(number)[0])
                if target.is_up and (chance is None or chance.random() < 0.8):
                    target.disk.setdefault(order.block_id, replica)
                    self.tells(target, order.block_id)

    def executes(self, machine: Machine, most: int = 100) -> None:
        done, machine.orders = machine.orders[:most], machine.orders[most:]
        for order in done:
            replica = machine.disk.get(order.block_id)
            if replica is not None and replica.stamp == order.stamp:
                del machine.disk[order.block_id]
            if order.block_id not in machine.disk:
                self.tells(machine, order.block_id)

    def execute(self, chance: Random) -> None:
        machine = chance.choice(self.machines)
        if machine.is_up and machine.node.alive:
            self.executes(machine, chance.randint(1, 3))

    def full_report(self, chance: Random) -> None:
        machine = chance.choice(self.machines)
        if machine.is_up and machine.node.alive:
            self.reports_in_full(machine)

    def dies(self, chance: Random) -> None:
        machine = chance.choice(self.machines)
        if not machine.is_up:
            machine.is_up = True
            return
        machine.is_up = machine.node.alive = False
        machine.orders.clear()
        machine.node.copy_orders.clear()
        if chance.random() < 0.3:
            self.now += 1
            self.losses.update(dict.fromkeys(machine.disk, self.now))
            machine.disk.clear()
        self.state.empty_storage(machine.storage.held)

    def damage(self, chance: Random) -> None:
        """Report a replica as damaged; a client may also be wrong about it."""
        machine = chance.choice(self.up() or self.machines)
        held = [number for number in machine.disk if number in self.blocks]
        if not held or not machine.node.alive:
            return
        number = chance.choice(held)
        slot, replica = self.slot(number), machine.disk[number]
        if self.state.map.block(slot).stage is model.Stage.COMPLETE and (
            self.state.map.is_good(slot, machine.storage.held.number)
        ):
            if chance.random() < 0.8:
                self.now += 1
                self.losses[number] = self.now
                machine.disk[number] = replace(replica, damaged=True)
            mark = model.CorruptMark(model.Reason.CORRUPTION_REPORTED, replica.stamp)
            self.state.mark_corrupt(slot, machine.storage.held, mark)

    # ---- the role, and time ----

    def fails_over(self, chance: Random) -> None:
        """Another NameNode was the active for a while, and has ordered deletions."""
        self.state.demote()
        self.now += 1
        for number in self.blocks:
            self.other_deletes(number, chance)
        for machine in self.machines:
            machine.node.copy_orders.clear()
            machine.storage.held.heartbeated = False
            if machine.is_up and chance.random() < 0.3:
                self.executes(machine, chance.randint(0, 3))
        self.term += 1
        incremental_reports.activate(self.state)
        assert self.state.role is model.Role.ACTIVE

    def other_deletes(self, number: int, chance: Random) -> None:
        block, held = self.blocks[number], self.up()
        keepers = [one for one in held if self.keeps(one, number)]
        chance.shuffle(keepers)
        for machine in keepers[block.expected :]:
            machine.orders.append(Order(number, block.stamp, self.term))

    def time_passes(self, chance: Random) -> None:
        self.now += chance.choice((3, 3, 3, 400))
        self.redundancy.begin_round(self.now)


Happening = Callable[[World, Random], None]

HAPPENINGS: Final[tuple[Happening, ...]] = (
    *(World.heartbeat,) * 8,
    *(World.writes, World.full_report, World.execute) * 4,
    *(World.sets_replication, World.time_passes) * 3,
    *(World.dies, World.damage, World.appends, World.fails_over) * 1,
    World.deletes,
)
