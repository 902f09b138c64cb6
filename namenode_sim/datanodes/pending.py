"""Replicas that are on their way: ordered copies, and what a writer left to its pipeline.

See docs/reference/blocks.md#copies-on-their-way.
"""

from collections.abc import Callable, Iterable, Iterator

from ha.record import dataclass
from namenode_sim.datanodes.placement import Place


@dataclass(frozen=True, slots=True)
class Coming:
    """Where replicas of a block will come, and until when that is believed."""

    deadline: float
    places: tuple[Place, ...]


class Pending:
    """By block id, the earliest deadline first, since all have the same time."""

    __slots__ = ("_by_block", "_timeout_seconds")

    def __init__(self, timeout_seconds: float) -> None:
        self._by_block: dict[int, Coming] = {}
        self._timeout_seconds = timeout_seconds

    def __len__(self) -> int:
        return len(self._by_block)

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_block)

    def places(self, block_id: int) -> tuple[Place, ...]:
        coming = self._by_block.get(block_id)
        return () if coming is None else coming.places

    def add(self, block_id: int, places: Iterable[Place], now: float) -> None:
        """Expect replicas; those that were expected before have as much time again."""
        held = dict.fromkeys((*self.places(block_id), *places))
        self._by_block.pop(block_id, None)
        if held:
            self._by_block[block_id] = Coming(now + self._timeout_seconds, tuple(held))

    def keep(self, block_id: int, still: Callable[[Place], bool]) -> tuple[Place, ...]:
        """Go on expecting some of a block's replicas; returns them."""
        coming = self._by_block.get(block_id)
        if coming is None:
            return ()
        kept = tuple(filter(still, coming.places))
        if kept:
            self._by_block[block_id] = Coming(coming.deadline, kept)
        else:
            del self._by_block[block_id]
        return kept

    def pop(self, block_id: int) -> tuple[Place, ...]:
        coming = self._by_block.pop(block_id, None)
        return () if coming is None else coming.places

    def overdue(self, now: float) -> list[int]:
        found: list[int] = []
        for block_id, coming in self._by_block.items():
            if coming.deadline > now:
                break
            found.append(block_id)
        return found

    def clear(self) -> None:
        self._by_block.clear()
