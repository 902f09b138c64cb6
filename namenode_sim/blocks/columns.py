"""The blocks as columns of numbers: 53 bytes for a block, and no object.

See docs/reference/blocks.md#the-map.
"""

from array import array
from typing import Final

import numpy as np
import numpy.typing as npt

from namenode_sim.blocks.model import NO_STORAGE, Slot, Stage

CELLS: Final = 3
"""How many replicas of a block have a place in the columns."""

STAGE: Final = 0b11
NEEDED: Final = 0b11100
"""The queue of blocks to be copied that the block stands in, plus one; 0: in none."""
CORRUPT: Final = 1 << 5
STRIPED: Final = 1 << 6
MORE: Final = 1 << 7
"""The block has more than three replicas."""
_STAGES: Final = tuple(Stage)


class BlockColumns:
    """One row for each slot.  Where ``flags`` are 0, a block is complete and nothing is odd."""

    def __init__(self) -> None:
        self.ids = array("q")
        self.lengths = array("q")
        self.stamps = array("q")
        self.files = array("q")
        self.expected = array("H")
        self.flags = array("B")
        self.storages = array("H")
        self.positions = array("I")
        self.free = array("I")

    def __len__(self) -> int:
        return len(self.ids) - len(self.free)

    def add(
        self, block_id: int, length: int, stamp: int, file_id: int, expected: int, flags: int
    ) -> Slot:
        if self.free:
            slot = self.free.pop()
            self.ids[slot] = block_id
            self.lengths[slot] = length
            self.stamps[slot] = stamp
            self.files[slot] = file_id
            self.expected[slot] = expected
            self.flags[slot] = flags
            return Slot(slot)
        self.ids.append(block_id)
        self.lengths.append(length)
        self.stamps.append(stamp)
        self.files.append(file_id)
        self.expected.append(expected)
        self.flags.append(flags)
        self.storages.extend((NO_STORAGE,) * CELLS)
        self.positions.extend((0,) * CELLS)
        return Slot(len(self.ids) - 1)

    def extend(
        self,
        ids: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        stamps: npt.NDArray[np.int64],
        files: npt.NDArray[np.int64],
        expected: npt.NDArray[np.uint16],
    ) -> Slot:
        """Rows for many complete blocks without replicas; returns the first, the others follow."""
        first, count = len(self.ids), len(ids)
        self.ids.frombytes(ids.tobytes())
        self.lengths.frombytes(lengths.tobytes())
        self.stamps.frombytes(stamps.tobytes())
        self.files.frombytes(files.tobytes())
        self.expected.frombytes(expected.tobytes())
        self.flags.frombytes(np.where(ids < 0, STRIPED, 0).astype(np.uint8).tobytes())
        self.storages.frombytes(np.full(CELLS * count, NO_STORAGE, np.uint16).tobytes())
        self.positions.frombytes(bytes(4 * CELLS * count))
        return Slot(first)

    def release(self, slot: Slot) -> None:
        """Give a row back that no storage names any more."""
        self.ids[slot] = 0
        self.flags[slot] = 0
        self.free.append(slot)

    def stage(self, slot: Slot) -> Stage:
        return _STAGES[self.flags[slot] & STAGE]

    def set_stage(self, slot: Slot, stage: Stage) -> None:
        self.flags[slot] = self.flags[slot] & ~STAGE | stage

    def set_flag(self, slot: Slot, flag: int, *, on: bool) -> None:
        """Set or clear one of CORRUPT, STRIPED and MORE."""
        self.flags[slot] = self.flags[slot] | flag if on else self.flags[slot] & ~flag
