"""How many blocks are complete and safe, which safe mode waits for.

See docs/reference/blocks.md#safe-mode.
"""


class SafeCounts:
    """The counts, and the numbers of live replicas that a block needs for them.

    A committed block is complete with ``minimum`` live replicas, and a complete one is safe with
    ``safe_minimum``.  Striped groups are counted neither as complete nor as safe.
    ``bytes_in_future`` are in replicas that are newer than all edits.
    """

    __slots__ = ("bytes_in_future", "complete", "minimum", "safe", "safe_minimum")

    def __init__(self, minimum: int, safe_minimum: int | None) -> None:
        self.minimum = minimum
        self.safe_minimum = minimum if safe_minimum is None else safe_minimum
        if min(self.minimum, self.safe_minimum) < 1:
            raise ValueError(
                f"a block is complete with {minimum} and safe with {safe_minimum} replicas; "
                f"both must be at least 1"
            )
        self.complete = 0
        self.safe = 0
        self.bytes_in_future = 0

    def add(self, live: int, sign: int) -> None:
        """Count a complete block with ``live`` replicas once more, or once less."""
        self.complete += sign
        if live >= self.safe_minimum:
            self.safe += sign
