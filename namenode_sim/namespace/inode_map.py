"""All inodes of a namespace by id (Hadoop's INodeMap), without a dictionary as long as ids rise."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar, cast

from namenode_sim.namespace.inode import INode

T = TypeVar("T")

_PLACES_PER_INODE: Final = 4
_PLACES_ANYWAY: Final = 1024


class InodeMap:
    """What a dictionary of inodes by id does, in the order in which they were added.

    Ids are given out in rising order.  So the map is a row from its first id on, with None for
    each id that has no inode: 8 bytes a place, where a dictionary and its keys take 84 an inode.
    It becomes a dictionary, and stays one, when an id comes that is lower than one before it, or
    when less than a quarter of the places is taken.
    """

    __slots__ = ("_by_id", "_count", "_first", "_row")

    def __init__(self, inodes: Iterable[INode] = ()) -> None:
        self._first = 0
        self._row: list[INode | None] = []
        self._count = 0
        self._by_id: dict[int, INode] | None = None
        self.extend(list(inodes))

    def __len__(self) -> int:
        return self._count if self._by_id is None else len(self._by_id)

    def __contains__(self, number: int) -> bool:
        return self.get(number) is not None

    def __iter__(self) -> Iterator[int]:
        if self._by_id is not None:
            return iter(self._by_id)
        row = enumerate(self._row, self._first)
        return (number for number, inode in row if inode is not None)

    def values(self) -> Iterator[INode]:
        if self._by_id is not None:
            return iter(self._by_id.values())
        return (inode for inode in self._row if inode is not None)

    def items(self) -> Iterator[tuple[int, INode]]:
        return zip(self, self.values(), strict=True)

    def get(self, number: int, default: T | None = None) -> INode | T | None:
        if self._by_id is not None:
            return self._by_id.get(number, default)
        place = number - self._first
        found = self._row[place] if 0 <= place < len(self._row) else None
        return default if found is None else found

    def __getitem__(self, number: int) -> INode:
        found = self.get(number)
        if found is None:
            raise KeyError(number)
        return found

    def several(self, numbers: Sequence[int]) -> list[INode]:
        """Return the inodes of these ids; raise KeyError unless there are all of them."""
        row, first = self._row, self._first
        if numbers and first <= min(numbers) and max(numbers) < first + len(row):
            found = [row[number - first] for number in numbers]
            if all(found):
                return cast(list[INode], found)
        return [self[number] for number in numbers]

    def __setitem__(self, number: int, inode: INode) -> None:
        row, place = self._row, number - self._first
        if 0 <= place < len(row) and row[place] is not None:
            row[place] = inode
            return
        if self._by_id is None and not self._placed(number, inode):
            self._by_id = dict(self.items())
            self._row = []
        if self._by_id is not None:
            self._by_id[number] = inode

    def _placed(self, number: int, inode: INode) -> bool:
        """Put an inode at the end of the row, unless it does not belong there."""
        row = self._row
        if not row:
            self._first = number
        place = number - self._first
        if place < len(row) or not self._is_row(self._count + 1, place + 1):
            return False
        row.extend([None] * (place - len(row)))
        row.append(inode)
        self._count += 1
        return True

    def extend(self, inodes: Sequence[INode]) -> None:
        numbers = [inode.id for inode in inodes]
        follow_on = self._first + len(self._row)
        if self._by_id is None and numbers == [*range(follow_on, follow_on + len(numbers))]:
            self._row.extend(inodes)
            self._count += len(inodes)
            return
        for number, inode in zip(numbers, inodes, strict=True):
            self[number] = inode

    def discard(self, number: int) -> None:
        if self._by_id is not None:
            self._by_id.pop(number, None)
        elif self.get(number) is not None:
            self._row[number - self._first] = None
            self._count -= 1
            if not self._is_row(self._count, len(self._row)):
                self._by_id = dict(self.items())
                self._row = []

    @staticmethod
    def _is_row(inodes: int, places: int) -> bool:
        return places <= _PLACES_PER_INODE * inodes + _PLACES_ANYWAY
