"""What must hold in a world of redundancy, by a plain look at disks and replicas.

An order to delete a good replica leaves as many others as the block is to have, on disks and not
to be deleted by anybody.  The queues say what counting says.  In the end every block is whole.
"""

from typing import Final

from namenode_sim.blocks.model import Slot, Stage, StorageNumber
from namenode_sim.blocks.needed import Priority
from tests.namenode_sim.datanodes.redundancy_world import Machine, Replica, World

ROUNDS: Final = 60


class Oracle:
    """Remembers when replicas were ordered to go, since a loss after that is no fault."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ordered: dict[tuple[int, str], float] = {}

    def settle(self) -> None:
        """Let the NameNode work until nothing is left, and check what it came to."""
        world = self.world
        before = set(world.state.map.pending_deletions)
        while world.redundancy.work(world.now):
            pass
        for slot, number in set(world.state.map.pending_deletions) - before:
            machine = world.machine_of(world.cluster.place(number)[0])
            block_id = world.state.map.block(slot).id
            self.ordered[block_id, machine.node.id.uuid] = world.now
            ensure_may_go(world, machine, block_id)
        for machine, block_id, stamp in world.left:
            self.ensure_not_the_last(machine, block_id, stamp)
        world.left.clear()
        world.state.map.check()
        for block_id in world.blocks:
            ensure_judged(world, block_id)

    def ensure_not_the_last(self, machine: Machine, block_id: int, stamp: int) -> None:
        """Fail if an order that leaves costs the last good replica, unless others were lost."""
        world, block = self.world, self.world.blocks.get(block_id)
        if block is None or machine.disk.get(block_id) != Replica(block.stamp, block.length):
            return
        ordered = self.ordered.get((block_id, machine.node.id.uuid), -1.0)
        if stamp == block.stamp and world.losses.get(block_id, -1.0) < ordered:
            survivors = world.survivors(block_id, machine)
            assert survivors >= 1, f"the last replica of {block_id} goes"

    def ends_well(self) -> None:
        """Without further trouble every block gets its replicas, and no others stay."""
        world = self.world
        for _ in range(ROUNDS):
            world.now += 150
            for machine in world.machines:
                machine.is_up = True
                world.heartbeats(machine)
                world.copies(machine)
                world.executes(machine)
                world.reports_in_full(machine)
                self.settle()
            world.redundancy.begin_round(world.now)
            self.settle()
            if not any(what_is_wrong(world, number) for number in world.blocks):
                return
        wrong = [what_is_wrong(world, number) for number in world.blocks]
        raise AssertionError([one for one in wrong if one])


def ensure_may_go(world: World, machine: Machine, block_id: int) -> None:
    """Fail unless a good replica is too much, and a bad one is not all there is or in the way."""
    block, replica = world.blocks[block_id], machine.disk.get(block_id)
    survivors, slot = world.survivors(block_id, machine), world.slot(block_id)
    marks = world.state.map.corrupt_marks(slot)
    if machine.storage.held.number not in marks:
        assert replica is None or survivors >= block.expected, (
            f"may not go: {told(world, block_id)}"
        )
        return
    assert survivors >= 1, f"no good replica stays: {told(world, block_id)}"
    left_behind = replica is not None and replica.stamp < block.stamp
    cells = len(world.state.map.storages_of(slot))
    may_go = (
        survivors >= block.expected
        or left_behind
        or cells > block.expected
        or (
            cells >= len(world.up()) and (survivors >= min(block.expected - 1, 2) or len(marks) > 1)
        )
    )
    assert may_go, f"corrupt, and needed first: {told(world, block_id)}"


def ensure_judged(world: World, block_id: int) -> None:
    """Fail unless the queue and the postponed set agree with a plain look at the replicas."""
    state, slot = world.state, world.slot(block_id)
    if state.map.block(slot).stage is not Stage.COMPLETE:
        assert state.needed.priority(slot) is None
        return
    marks, held = state.map.corrupt_marks(slot), state.map.storages_of(slot)
    live = [
        one for one in held if one not in marks and not state.map.is_pending_deletion(slot, one)
    ]
    expected = world.blocks[block_id].expected
    assert state.map.block(slot).expected == expected
    wanted = queue_for(world, live, expected, world.coming(block_id))
    assert state.needed.priority(slot) is wanted, told(world, block_id)
    sure = [one for one in live if is_certain(world, one)]
    assert len(sure) <= expected, f"too many: {told(world, block_id)}"
    corrupt = [one for one in marks if not state.map.is_pending_deletion(slot, one)]
    waits = len(live) > expected or (
        bool(corrupt) and not all(is_certain(world, one) for one in held)
    )
    assert (slot in state.rechecks.postponed) == waits, told(world, block_id)


def queue_for(
    world: World, live: list[StorageNumber], expected: int, coming: int
) -> Priority | None:
    racks = {world.cluster.place(one)[0].rack for one in live}
    has_two = len({machine.node.rack for machine in world.machines}) > 1
    if not live:
        return Priority.MISSING
    if len(live) + coming < expected:
        if len(live) == 1:
            return Priority.HIGHEST
        return Priority.VERY_LOW if 3 * len(live) < expected else Priority.LOW
    lacks_rack = has_two and expected > 1 and len(racks) == 1
    return Priority.BADLY_DISTRIBUTED if lacks_rack and not coming else None


def is_certain(world: World, number: StorageNumber) -> bool:
    """Whether the NameNode may rest a deletion on what a storage holds."""
    node, storage = world.cluster.place(number)
    return storage.held.confirmed and node.alive


def what_is_wrong(world: World, number: int) -> str | None:
    """Why a block is not whole; None also where all its replicas are called damaged."""
    block, slot = world.blocks[number], world.slot(number)
    whole = Replica(block.stamp, block.length)
    good = [one for one in world.machines if one.disk.get(number) == whole]
    if not any(world.state.map.is_good(slot, one.storage.held.number) for one in good):
        return None
    racks = len({one.node.rack for one in world.machines})
    holds = (
        len(good) == block.expected
        and all(one in good for one in world.machines if number in one.disk)
        and len({one.node.rack for one in good}) >= min(2, racks, block.expected)
        and world.state.needed.priority(slot) is None
        and slot not in world.state.rechecks.postponed
    )
    return None if holds else told(world, number)


def told(world: World, number: int) -> str:
    state, slot = world.state, world.slot(number)
    disks = {one.node.id.uuid: one.disk[number] for one in world.machines if number in one.disk}
    return (
        f"{world.blocks[number]} {state.map.block(slot).stage.name} on {disks}; the map has "
        f"{state.map.storages_of(slot)}, corrupt {state.map.corrupt_marks(slot)}, to go "
        f"{_doomed(world, slot)}, {state.needed.priority(slot)}, "
        f"{world.coming(number)} coming, of {len(world.machines)} DataNodes"
    )


def _doomed(world: World, slot: Slot) -> list[StorageNumber]:
    return [number for one, number in world.state.map.pending_deletions if one == slot]
