"""Keeps blocks at the number of replicas that they are to have.

Every change of a block's replicas puts the block into a queue; here the blocks of the queue are
checked, and those that need it are copied, in slices of an event loop's turns.

See docs/reference/blocks.md#rounds.
"""

from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

from namenode_sim.blocks.model import NO_STORAGE, Role, Slot
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.datanodes import redundancy_check
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import AdminState, CopyOrder
from namenode_sim.datanodes.pending import Pending
from namenode_sim.datanodes.reconstruction import Missing, plan_copy

ROUND_SECONDS: Final = 3.0
"""dfs.namenode.redundancy.interval.seconds."""

SCANNED_AT_ONCE: Final = 20_000
"""The number of blocks looked at together after a takeover; most are as they should be."""

REPEATED_AT_ONCE: Final = 1000
ROUNDS_UNTIL_REREAD: Final = 2400


def note_hint(cluster: Cluster, block_id: int, hint: DeleteHint) -> None:
    """Note that a DataNode may give its replica up for a new one elsewhere (a balancer's)."""
    slot = cluster.blocks.map.find(block_id)
    if slot is not None:
        cluster.blocks.rechecks.hint(slot, hint)


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

    def __init__(
        self, cluster: Cluster, rules: redundancy_check.RedundancyRules | None = None
    ) -> None:
        self._around = redundancy_check.Surroundings(
            cluster, rules or redundancy_check.RedundancyRules()
        )
        self.timeouts = 0
        self._scanned = 0
        self._to_copy: list[Slot] = []
        self._budget = 0
        self._rounds = 0

    @property
    def pending(self) -> Pending:
        return self._around.pending

    def assess(self, slot: Slot) -> redundancy_check.Assessment:
        return redundancy_check.assess(self._around, slot)

    @property
    def rules(self) -> redundancy_check.RedundancyRules:
        """By what blocks are judged; how long a copy may take is that of the start."""
        return self._around.rules

    @rules.setter
    def rules(self, rules: redundancy_check.RedundancyRules) -> None:
        self._around.rules = rules

    def racks_changed(self) -> None:
        """Look at all blocks again: DataNodes have moved to other racks."""
        self._see_racks()
        self._scanned = 0

    def begin_round(self, now: float) -> None:
        """Note what a round has to do; nothing is copied in safe mode."""
        cluster, rules = self._around.cluster, self._around.rules
        if not self._is_started() or cluster.safe_mode.is_on():
            return
        self._see_racks()
        self._recheck(self._lost_copies())
        self._give_up_copies(now)
        self._repeat_deletions(now)
        self._rounds += 1
        if self._rounds % ROUNDS_UNTIL_REREAD == 0:
            cluster.blocks.needed.reread()
        alive = sum(node.alive for node in cluster.nodes.values())
        self._budget = alive * rules.work_per_node

    def work(self, now: float, limit: int = 500) -> bool:
        """Check and copy some blocks; returns whether there are more."""
        if not self._is_started():
            return False
        needed = self._around.cluster.blocks.needed
        rechecks = self._around.cluster.blocks.rechecks
        for _ in range(limit):
            recheck = rechecks.pop()
            if recheck is None:
                break
            redundancy_check.check_redundancy(self._around, recheck, now)
        if rechecks:
            return True
        self._scan()
        if self._budget:
            self._to_copy = needed.take(self._budget)
            self._budget = 0
        copied = max(limit // 10, 1)
        for slot in self._to_copy[:copied]:
            self._copy(slot, now)
        del self._to_copy[:copied]
        return bool(rechecks or self._to_copy or self._scanned < self._slots())

    def _slots(self) -> int:
        return self._around.cluster.blocks.map.slot_count()

    def _is_started(self) -> bool:
        """Return whether this NameNode checks redundancy, and start where it should."""
        blocks = self._around.cluster.blocks
        if blocks.rechecks.is_started():
            return True
        if blocks.role is not Role.ACTIVE or blocks.is_starting():
            return False
        if not self._around.cluster.hosts_known:
            return False  # a replica of a DataNode that is to go must not make another superfluous
        blocks.rechecks.start()
        self._around.pending.clear()
        self._to_copy = []
        self._budget = 0
        self._scanned = 0
        for node in self._around.cluster.nodes.values():
            if node.admin is not AdminState.NORMAL:
                self._around.cluster.recheck(node)
        self._see_racks()
        return True

    def _see_racks(self) -> None:
        """Look at all blocks again once a DataNode stands on a second rack."""
        nodes = self._around.cluster.nodes.values()
        if len({node.rack for node in nodes}) > 1 and not self._around.many_racks:
            self._around.many_racks = True
            self._scanned = 0

    def _lost_copies(self) -> list[int]:
        """Return the blocks of which copies were on their way to DataNodes that are dead or
        replaced.
        """
        pending = self._around.pending
        return [
            block_id
            for block_id in pending
            if any(not node.alive for node, _ in pending.places(block_id))
        ]

    def _give_up_copies(self, now: float) -> None:
        pending = self._around.pending
        overdue = pending.overdue(now)
        for node in self._around.cluster.nodes.values() if overdue else ():
            waiting = [order for order in node.copy_orders if order.block_id not in overdue]
            node.copy_orders = deque(waiting)
        for block_id in overdue:
            for _, storage in pending.pop(block_id):
                storage.held.scheduled.take(now)
        self.timeouts += len(overdue)
        self._recheck(overdue)

    def _repeat_deletions(self, now: float) -> None:
        """Order again what is not reported to be gone, and ask for a report.

        Bad schedule: news of a replica reaches the NameNode after that of its deletion, from a
        connection that broke in the meantime. The DataNode has nothing to delete, and reports
        nothing.
        """
        blocks, before = self._around.cluster.blocks, now - self._around.rules.excess_seconds
        for slot, number in blocks.map.overdue_deletions(before, REPEATED_AT_ONCE):
            blocks.order_deletion(slot, number, now)
            blocks.map.storages.at(number).needs_full_report = True

    def _recheck(self, block_ids: list[int]) -> None:
        blocks = self._around.cluster.blocks
        slots = map(blocks.map.find, block_ids)
        blocks.rechecks.update(slot for slot in slots if slot is not None)

    def _scan(self) -> None:
        """Have the next blocks checked that are not obviously as they should be."""
        blocks, start = self._around.cluster.blocks, self._scanned
        if start >= self._slots():
            return
        end = start + SCANNED_AT_ONCE
        rack_of = self._rack_of() if self._around.many_racks else None
        blocks.rechecks.update(blocks.map.suspects(start, end, rack_of))
        self._scanned = end

    def _rack_of(self) -> npt.NDArray[np.uint16]:
        cluster, numbers = self._around.cluster, dict[str, int]()
        rack_of = np.zeros(int(NO_STORAGE) + 1, np.uint16)
        for storage in cluster.blocks.map.storages:
            rack = cluster.place(storage.number)[0].rack
            rack_of[storage.number] = numbers.setdefault(rack, len(numbers))
        return rack_of

    def _copy(self, slot: Slot, now: float) -> None:
        """Order a copy of a block that still needs one, if DataNodes can be found for it."""
        cluster, around = self._around.cluster, self._around
        blocks = cluster.blocks
        if blocks.needed.priority(slot) is None:  # it has left its queue since
            return
        found = redundancy_check.assess(around, slot)
        blocks.needed.put(slot, found.priority)
        if found.priority is None:
            return
        missing = Missing(slot, found.required, found.counts, found.coming, found.priority)
        block = blocks.map.block(slot)
        policy = cluster.policy_of(block.file_id)
        copy = plan_copy(cluster, missing, policy, now)
        if copy is None:
            if found.counts.corrupt:
                blocks.rechecks.add(slot)  # one of them may be in the way of the copy by now
            return
        numbers = tuple(storage.held.number for _, storage in copy.targets)
        copy.source.copy_orders.append(CopyOrder(block.id, numbers, blocks.applied))
        for _, storage in copy.targets:
            storage.held.scheduled.add(now)
        around.pending.add(block.id, copy.targets, now)
        blocks.needed.put(slot, redundancy_check.assess(around, slot).priority)
