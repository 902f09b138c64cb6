"""The blocks that need another replica, in queues by urgency.

A block's queue stands in its flags; an entry of a queue that the flags do not confirm is dead.

See docs/reference/blocks.md#needed-copies.
"""

from array import array
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import Final

import numpy as np

from namenode_sim.blocks.columns import NEEDED, BlockColumns
from namenode_sim.blocks.model import Slot

_SHIFT: Final = 2
_SPARE: Final = 1000
"""A queue with no more dead entries than this is left as it is."""


class Priority(IntEnum):
    """How urgent a copy is (Hadoop's LowRedundancyBlocks)."""

    HIGHEST = 0
    VERY_LOW = 1
    LOW = 2
    BADLY_DISTRIBUTED = 3
    MISSING = 4
    """No good replica is left, so that nothing can be copied."""


COPIED: Final = tuple(Priority)[: Priority.MISSING]


class Needed:
    """The queues.  ``_marks`` say how far each was read; they begin anew when all were read."""

    def __init__(self, columns: BlockColumns) -> None:
        self._columns = columns
        self._queues = [array("I") for _ in Priority]
        self._sizes = [0 for _ in Priority]
        self._marks = [0 for _ in Priority]

    def __len__(self) -> int:
        return sum(self._sizes)

    def size(self, priority: Priority) -> int:
        return self._sizes[priority]

    def missing_single(self) -> int:
        """Return how many missing blocks were to have one replica only."""
        slots = np.unique(np.frombuffer(self._queues[Priority.MISSING], np.uint32))
        flags = np.frombuffer(self._columns.flags, np.uint8)[slots]
        expected = np.frombuffer(self._columns.expected, np.uint16)[slots]
        missing = flags & NEEDED == (Priority.MISSING + 1) << _SHIFT
        return int((missing & (expected == 1)).sum())

    def priority(self, slot: Slot) -> Priority | None:
        bits = (self._columns.flags[slot] & NEEDED) >> _SHIFT
        return Priority(bits - 1) if bits else None

    def put(self, slot: Slot, priority: Priority | None) -> None:
        flags = self._columns.flags
        bits = 0 if priority is None else (priority + 1) << _SHIFT
        before = flags[slot] & NEEDED
        if before == bits:
            return
        flags[slot] = flags[slot] & ~NEEDED | bits
        if before:
            self._sizes[(before >> _SHIFT) - 1] -= 1
        if priority is not None:
            self._sizes[priority] += 1
            self._queues[priority].append(slot)
            self._compact(priority)

    def _compact(self, priority: Priority) -> None:
        queue = self._queues[priority]
        if len(queue) <= 2 * self._sizes[priority] + _SPARE:
            return
        read = len(dict.fromkeys(self._alive(priority, 0, self._marks[priority])))
        self._queues[priority] = array("I", dict.fromkeys(self._alive(priority, 0, len(queue))))
        self._marks[priority] = read

    def _alive(self, priority: Priority, start: int, end: int) -> Iterator[Slot]:
        flags, bits = self._columns.flags, (priority + 1) << _SHIFT
        for number in self._queues[priority][start:end]:
            if flags[number] & NEEDED == bits:
                yield Slot(number)

    def listed(self, priority: Priority, most: int | None = None) -> list[Slot]:
        """Return the blocks of a queue, or the first ``most`` places of it, each block once."""
        everything = self._alive(priority, 0, len(self._queues[priority]))
        return list(dict.fromkeys(islice(everything, most)))

    def take(self, limit: int) -> list[Slot]:
        """Return the next blocks to copy, the most urgent first; they stay in their queues.

        Each call goes on where the last one ended, and begins anew once all queues were read.
        """
        found: dict[Slot, None] = {}
        for priority in COPIED:
            queue, mark = self._queues[priority], self._marks[priority]
            while mark < len(queue) and len(found) < limit:
                slot = Slot(queue[mark])
                mark += 1
                if self.priority(slot) is priority:
                    found[slot] = None  # one that has left and come back is in the queue twice
            self._marks[priority] = mark
        if len(found) < limit:
            self.reread()
        return list(found)

    def reread(self) -> None:
        """Read all queues from their beginning."""
        self._marks = [0 for _ in Priority]

    def clear(self) -> None:
        for queue in self._queues:
            flags = np.frombuffer(self._columns.flags, np.uint8)
            flags[np.frombuffer(queue, np.uint32)] &= ~np.uint8(NEEDED)
        self._queues = [array("I") for _ in Priority]
        self._sizes = [0 for _ in Priority]
        self.reread()
