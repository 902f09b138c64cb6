"""What goes wrong between a DataNode and its peers; ``datanode.errors`` has what only it raises."""


class DataNodeError(Exception):
    """The message says what was found and in which state things are."""


class ChecksumMismatch(DataNodeError):
    """Bytes do not fit their checksums.

    Attributes:
        offset: where in the block the first bad chunk begins.
    """

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what}: the chunk at {offset} does not fit its checksum")
        self.offset = offset


class MalformedTransfer(DataNodeError):
    """A peer's bytes make no sense, or are more than a limit allows."""


class UnknownKey(MalformedTransfer):
    """A data encryption key was made with a block key that a DataNode does not have."""
