"""Bytes that have come and are not read yet, in memory that is used again and again.  Pure."""


class ReceiveBuffer:
    """Filled at its end, read from its beginning; read bytes are views, not copies."""

    def __init__(self, capacity: int) -> None:
        self._view = memoryview(bytearray(capacity))
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def capacity(self) -> int:
        return len(self._view)

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits until ``make_room``."""
        return self._end == len(self._view)

    def free(self) -> memoryview:
        return self._view[self._end :]

    def filled(self, count: int) -> None:
        self._end += count

    def peek(self, count: int) -> memoryview:
        """Return the first bytes that wait to be read; the view is good until ``make_room``."""
        return self._view[self._begin : self._begin + count]

    def skip(self, count: int) -> None:
        self._begin += count

    def make_room(self, capacity: int) -> None:
        """Resize to ``capacity`` bytes; what waits moves to the beginning, and views are void."""
        waiting = self._view[self._begin : self._end]
        if capacity != len(self._view):
            self._view = memoryview(bytearray(capacity))
        self._view[: len(waiting)] = waiting
        self._begin, self._end = 0, len(waiting)
