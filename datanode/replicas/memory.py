"""Which replicas are locked in memory, and how much of it they take.

See docs/reference/datanode.md#memory.
"""

from datanode.errors import NoRoom
from datanode.replicas.locked_pages import LockedPages, unlock, whole_pages
from ha.record import dataclass
from hadoop.blocks import BlockId


@dataclass(slots=True, eq=False)
class Place:
    """Room in memory for one replica; ``pages`` is None until it is there."""

    block_id: BlockId
    size: int
    pages: LockedPages | None = None


class Memory:
    """At most ``capacity`` bytes are taken, whole pages, by what is there and what is coming.

    All methods belong to the event loop.
    """

    def __init__(self, capacity: int = 0) -> None:
        self.capacity, self.used = capacity, 0
        self._places: dict[BlockId, Place] = {}
        self._closed = False

    def __contains__(self, block_id: BlockId) -> bool:
        return block_id in self._places

    def blocks(self) -> list[BlockId]:
        """Return the blocks that are in memory; not those that are coming."""
        return [one.block_id for one in self._places.values() if one.pages is not None]

    def reserve(self, block_id: BlockId, length: int) -> Place:
        """Keep room for a replica; ``settle`` or ``give_up`` must follow.

        Raises:
            NoRoom: if there is not enough.
        """
        place = Place(block_id, whole_pages(length))
        if self._closed or self.used + place.size > self.capacity:
            raise NoRoom(
                f"{length} bytes are more than is left of {self.capacity} for blocks in memory, of "
                f"which {self.used} are taken"
            )
        self.used += place.size
        self._places[block_id] = place
        return place

    def settle(self, place: Place, pages: LockedPages) -> None:
        """Keep what has come; give it back at once if it was released since it was asked for."""
        place.pages = pages
        if self._places.get(place.block_id) is not place:
            self._free(place)

    def give_up(self, place: Place) -> None:
        """Forget what did not come."""
        if self._places.get(place.block_id) is place:
            del self._places[place.block_id]
        self._free(place)

    def release(self, block_id: BlockId) -> None:
        """Let a replica go, if it is here; of one that is coming the room is free once it came."""
        place = self._places.pop(block_id, None)
        if place is not None and place.pages is not None:
            self._free(place)

    def close(self) -> None:
        """Let all replicas go, and take no more."""
        self._closed = True
        for block_id in list(self._places):
            self.release(block_id)

    def _free(self, place: Place) -> None:
        self.used -= place.size
        if place.pages is not None:
            unlock(place.pages)
