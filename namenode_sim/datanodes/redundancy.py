"""Keeps blocks at the number of replicas that they are to have.

Every change of a block's replicas touches the block; here touched blocks are judged, and those
that need it are copied, in slices of an event loop's turns.

See docs/reference/blocks.md#rounds.
"""

from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

from namenode_sim.blocks.columns import CELLS
from namenode_sim.blocks.model import NO_STORAGE, Role, Slot
from namenode_sim.blocks.touched import Touched
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.excess_choice import RACKS
from namenode_sim.datanodes.judging import RedundancyRules, Surroundings, judge, look_at
from namenode_sim.datanodes.model import CopyOrder
from namenode_sim.datanodes.pending import Pending
from namenode_sim.datanodes.reconstruction import Missing, plan_copy

ROUND_SECONDS: Final = 3.0
"""dfs.namenode.redundancy.interval.seconds."""

SCANNED_AT_ONCE: Final = 20_000
"""So many blocks are looked at together after a takeover; most of them are as they should be."""

REPEATED_AT_ONCE: Final = 1000
ROUNDS_UNTIL_REREAD: Final = 2400


def note_hint(cluster: Cluster, block_id: int, node: str) -> None:
    """Note that a DataNode may give its replica up for a new one elsewhere (a balancer's)."""
    touched, slot = cluster.blocks.touched, cluster.blocks.index.get(block_id)
    if touched is not None and slot is not None:
        touched.hint(slot, node)


class Redundancy:
    """How far the work is.

    The owner of the cluster calls ``begin_round`` each ``ROUND_SECONDS``, and ``work`` after each
    event and each ``begin_round``, turn by turn until there is no more.  Nothing happens on a
    standby and in the safe mode of the start; after either, all blocks are scanned.
    """

    __slots__ = (
        "_around",
        "_budget",
        "_rounds",
        "_scanned",
        "_to_copy",
        "timeouts",
    )

    def __init__(self, cluster: Cluster, rules: RedundancyRules | None = None) -> None:
        self._around = Surroundings(cluster, rules or RedundancyRules())
        self.timeouts = 0
        self._scanned = 0
        self._to_copy: list[Slot] = []
        self._budget = 0
        self._rounds = 0

    @property
    def pending(self) -> Pending:
        """The replicas that are on their way."""
        return self._around.pending

    def begin_round(self, now: float) -> None:
        """Note what a round has to do; nothing is copied in safe mode."""
        cluster, rules = self._around.cluster, self._around.rules
        touched = self._touched()
        if touched is None or cluster.safe_mode.is_on():
            return
        self._see_racks()
        self._touch(touched, self._lost_copies())
        self._give_up_copies(touched, now)
        self._repeat_deletions(now)
        blocks = cluster.blocks
        self._rounds += 1
        if self._rounds % ROUNDS_UNTIL_REREAD == 0:
            blocks.needed.reread()
        alive = sum(node.alive for node in cluster.nodes.values())
        self._budget = alive * rules.work_per_node

    def work(self, now: float, limit: int = 500) -> bool:
        """Judge and copy some blocks; returns whether there are more."""
        touched = self._touched()
        if touched is None:
            return False
        for _ in range(limit):
            touch = touched.pop()
            if touch is None:
                break
            judge(self._around, touch, now)
        if touched:
            return True
        self._scan(touched)
        if self._budget:
            self._to_copy = self._around.cluster.blocks.needed.take(self._budget)
            self._budget = 0
        copied = max(limit // 10, 1)
        for slot in self._to_copy[:copied]:
            self._copy(slot, now)
        del self._to_copy[:copied]
        return bool(touched or self._to_copy or self._scanned < self._slots())

    def _slots(self) -> int:
        return len(self._around.cluster.blocks.columns.ids)

    def _touched(self) -> Touched | None:
        """The blocks to judge, if this NameNode does; it begins where it finds that it should."""
        blocks = self._around.cluster.blocks
        if blocks.touched is None and blocks.role is Role.ACTIVE and not blocks.starting:
            blocks.touched = Touched()
            self._around.pending.clear()
            self._to_copy = []
            self._budget = 0
            self._scanned = 0
            self._see_racks()
        return blocks.touched

    def _see_racks(self) -> None:
        """Once a DataNode stands on a second rack, all blocks are looked at again."""
        nodes = self._around.cluster.nodes.values()
        if len({node.rack for node in nodes}) > 1 and not self._around.many_racks:
            self._around.many_racks = True
            self._scanned = 0

    def _lost_copies(self) -> list[int]:
        """The blocks of which copies were on their way to DataNodes that are dead or replaced."""
        pending = self._around.pending
        return [
            block_id
            for block_id in pending
            if any(not node.alive for node, _ in pending.places(block_id))
        ]

    def _give_up_copies(self, touched: Touched, now: float) -> None:
        pending = self._around.pending
        overdue = pending.overdue(now)
        for node in self._around.cluster.nodes.values() if overdue else ():
            waiting = [order for order in node.copy_orders if order.block_id not in overdue]
            node.copy_orders = deque(waiting)
        for block_id in overdue:
            for _, storage in pending.pop(block_id):
                storage.held.scheduled.take(now)
        self.timeouts += len(overdue)
        self._touch(touched, overdue)

    def _repeat_deletions(self, now: float) -> None:
        """Order again what nobody has told to be gone, and ask for a report.

        Bad schedule: news of a replica reaches the NameNode after that of its deletion, from a
        connection that broke meanwhile.  The DataNode has nothing to delete, and tells nothing.
        """
        blocks, before = self._around.cluster.blocks, now - self._around.rules.excess_seconds
        for slot, number in blocks.doomed.overdue(before, REPEATED_AT_ONCE):
            blocks.doom(slot, number, now)
            blocks.storages.at(number).needs_full_report = True

    def _touch(self, touched: Touched, block_ids: list[int]) -> None:
        slots = map(self._around.cluster.blocks.index.get, block_ids)
        touched.update(slot for slot in slots if slot is not None)

    def _scan(self, touched: Touched) -> None:
        """Have the next blocks judged that are not obviously as they should be."""
        columns, start = self._around.cluster.blocks.columns, self._scanned
        if start >= self._slots():
            return
        end = start + SCANNED_AT_ONCE
        flags = np.frombuffer(columns.flags, np.uint8)[start:end]
        expected = np.frombuffer(columns.expected, np.uint16)[start:end]
        ids = np.frombuffer(columns.ids, np.int64)[start:end]
        cells = np.frombuffer(columns.storages, np.uint16).reshape(-1, CELLS)[start:end]
        fine = (flags == 0) & ((cells != NO_STORAGE).sum(axis=1) == expected)
        if self._around.many_racks:
            fine &= (expected < RACKS) | self._on_two_racks(cells)
        odd = ~fine & (ids > 0)  # those of striped groups are below 0, an empty row has 0
        touched.update((np.flatnonzero(odd) + start).tolist())
        self._scanned = end

    def _on_two_racks(self, cells: npt.NDArray[np.uint16]) -> npt.NDArray[np.bool_]:
        """Whether the replicas in each row of cells stand on more than one rack."""
        cluster, numbers = self._around.cluster, dict[str, int]()
        rack_of = np.zeros(int(NO_STORAGE) + 1, np.uint16)
        for storage in cluster.blocks.storages:
            rack = cluster.place(storage.number)[0].rack
            rack_of[storage.number] = numbers.setdefault(rack, len(numbers))
        racks = rack_of[cells]
        found: npt.NDArray[np.bool_] = np.any(
            (racks != racks[:, :1]) & (cells != NO_STORAGE), axis=1
        )
        return found

    def _copy(self, slot: Slot, now: float) -> None:
        """Order a copy of a block that still needs one, if DataNodes can be found for it."""
        cluster, around = self._around.cluster, self._around
        blocks = cluster.blocks
        if blocks.needed.priority(slot) is None:  # it has left its queue meanwhile
            return
        found = look_at(around, slot)
        blocks.needed.put(slot, found.priority)
        if found.priority is None:
            return
        missing = Missing(slot, found.counts, found.coming, found.priority)
        policy = cluster.policy_of(blocks.columns.files[slot])
        copy = plan_copy(cluster, missing, policy, now)
        if copy is None:
            if found.counts.corrupt and blocks.touched is not None:
                blocks.touched.add(slot)  # one of them may be in the way of the copy by now
            return
        block_id = blocks.columns.ids[slot]
        numbers = tuple(storage.held.number for _, storage in copy.targets)
        copy.source.copy_orders.append(CopyOrder(block_id, numbers, blocks.applied))
        for _, storage in copy.targets:
            storage.held.scheduled.add(now)
        around.pending.add(block_id, copy.targets, now)
        blocks.needed.put(slot, look_at(around, slot).priority)
