"""What the map of blocks refuses."""


class BlocksError(Exception):
    """Everything that this package raises on purpose."""


class TooManyStorages(BlocksError):
    """The storages of the whole cluster are more than there are numbers for."""

    def __init__(self, node: str, uuid: str, limit: int) -> None:
        super().__init__(
            f"storage {uuid} of DataNode {node} is one more than the {limit} that this NameNode "
            f"can number; it was not added, and what it holds is not known.  Give the DataNodes "
            f"fewer and larger storages, or a second NameNode"
        )
        self.node = node
        self.uuid = uuid
        self.limit = limit


class BadReport(BlocksError):
    """A full report contains too many impossible rows, so that none of it is believed."""

    def __init__(self, bad: int, rows: int) -> None:
        super().__init__(
            f"{bad} of {rows} rows of a block report have a length, a stamp or a state that no "
            f"replica can have; nothing of it was taken in.  The DataNode must register again"
        )
        self.bad = bad
        self.rows = rows


class MalformedReport(BlocksError):
    """The bytes of a full report are no rows."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"a block report cannot be read: {found}; nothing of it was taken in.  The DataNode "
            f"must register again"
        )


class MapBroken(BlocksError):
    """Two places that say the same thing about a block differ."""
