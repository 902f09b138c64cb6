"""From block ids to slots: pages of 1,024 ids, as ids are given out one after the other.

A page in which few blocks are left is kept as two short sorted columns, so that neither old random
ids nor a cluster that has deleted almost everything cost 4 KiB a block.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from ha.record import dataclass, field
from namenode_sim.blocks.model import Slot

PAGE_BITS: Final = 10
PAGE_IDS: Final = 1 << PAGE_BITS
DENSE_FROM: Final = 64
"""With this number of blocks a page gets a place for every id."""
SPARSE_BELOW: Final = 32
FEW_IDS: Final = 8
"""For fewer ids of a page than this, numpy is slower than a look-up of each."""

Ids = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class _SparsePage:
    """Offsets in ascending order, and the slot of each."""

    offsets: "array[int]" = field(default_factory=lambda: array("H"))
    slots: "array[int]" = field(default_factory=lambda: array("I"))

    def place(self, offset: int) -> int:
        return bisect_left(self.offsets, offset)

    def get(self, offset: int) -> Slot | None:
        place = self.place(offset)
        if place < len(self.offsets) and self.offsets[place] == offset:
            return Slot(self.slots[place])
        return None

    def dense(self) -> "array[int]":
        page = array("I", bytes(4 * (PAGE_IDS + 1)))
        for offset, slot in zip(self.offsets, self.slots, strict=True):
            page[offset] = slot + 1
        page[PAGE_IDS] = len(self.offsets)
        return page


def _sparse(page: "array[int]") -> _SparsePage:
    found = [(offset, slot - 1) for offset, slot in enumerate(page[:PAGE_IDS]) if slot]
    return _SparsePage(array("H", [o for o, _ in found]), array("I", [s for _, s in found]))


class BlockIndex:
    """A dense page has slot + 1 at each id's offset, 0 for none, and at its end how many it has."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int] | _SparsePage] = {}

    def get(self, block_id: int) -> Slot | None:
        """Return the slot of a block; None for an unknown id."""
        page = self._pages.get(block_id >> PAGE_BITS)
        if page is None:
            return None
        offset = block_id & (PAGE_IDS - 1)
        if isinstance(page, _SparsePage):
            return page.get(offset)
        slot = page[offset]
        return Slot(slot - 1) if slot else None

    def add(self, block_id: int, slot: Slot) -> None:
        number, offset = block_id >> PAGE_BITS, block_id & (PAGE_IDS - 1)
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = _SparsePage()
        if not isinstance(page, _SparsePage):
            page[offset] = slot + 1
            page[PAGE_IDS] += 1
            return
        place = page.place(offset)
        page.offsets.insert(place, offset)
        page.slots.insert(place, slot)
        if len(page.offsets) >= DENSE_FROM:
            self._pages[number] = page.dense()

    def extend(self, ids: Ids, first: Slot) -> None:
        """Note many blocks that are not known yet, in the slots from one on."""
        if not len(ids):
            return
        order = np.argsort(ids, kind="stable")
        pages = (ids >> PAGE_BITS)[order]
        edges = np.flatnonzero(np.diff(pages)) + 1
        for part in np.split(order, edges):
            number = int(ids[part[0]]) >> PAGE_BITS
            if len(part) < DENSE_FROM or number in self._pages:
                for place in part.tolist():
                    self.add(int(ids[place]), Slot(first + place))
                continue
            page = np.zeros(PAGE_IDS + 1, np.uint32)
            page[ids[part] & (PAGE_IDS - 1)] = part + (first + 1)
            page[PAGE_IDS] = len(part)
            self._pages[number] = array("I", page.tobytes())

    def remove(self, block_id: int) -> None:
        number, offset = block_id >> PAGE_BITS, block_id & (PAGE_IDS - 1)
        page = self._pages[number]
        if isinstance(page, _SparsePage):
            place = page.place(offset)
            del page.offsets[place]
            del page.slots[place]
            if not page.offsets:
                del self._pages[number]
            return
        page[offset] = 0
        page[PAGE_IDS] -= 1
        if page[PAGE_IDS] < SPARSE_BELOW:
            self._pages[number] = _sparse(page)

    def __iter__(self) -> Iterator[tuple[int, Slot]]:
        for number, page in self._pages.items():
            sparse = page if isinstance(page, _SparsePage) else _sparse(page)
            for offset, slot in zip(sparse.offsets, sparse.slots, strict=True):
                yield (number << PAGE_BITS) + offset, Slot(slot)

    def slots_of(self, ids: Ids) -> Slots:
        """Return the slots of ids in ascending order; -1 for an unknown id."""
        found = np.full(len(ids), -1, np.int64)
        pages = ids >> PAGE_BITS
        starts = np.flatnonzero(np.diff(pages, prepend=pages[:1] - 1))
        if len(starts) * FEW_IDS >= len(ids):
            slots = [self.get(number) for number in ids.tolist()]
            return np.array([-1 if slot is None else slot for slot in slots], np.int64)
        ends = np.append(starts[1:], len(ids))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            page = self._pages.get(int(pages[start]))
            if page is None:
                continue
            if isinstance(page, _SparsePage):
                page = page.dense()
            offsets = ids[start:end] & (PAGE_IDS - 1)
            found[start:end] = np.frombuffer(page, np.uint32)[offsets].astype(np.int64) - 1
        return found
