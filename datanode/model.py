"""The words of a DataNode: replicas and their states.  Pure."""

from enum import IntEnum
from typing import NewType, TypeAlias

from ha.record import dataclass, field
from hadoop.blocks import Block, GenerationStamp

StorageId = NewType("StorageId", str)


class ReplicaState(IntEnum):
    """The numbers on the wire; see docs/reference/datanode.md#states-of-a-replica."""

    FINALIZED = 0
    RBW = 1
    RWR = 2
    RUR = 3
    TEMPORARY = 4


@dataclass(frozen=True, slots=True)
class Finalized:
    """A whole replica, which does not change; its files are in ``finalized``."""

    block: Block
    storage: StorageId
    length: int


@dataclass(frozen=True, slots=True)
class BeingWritten:
    """A replica that a client writes or wrote until a moment ago (RBW).

    ``length`` bytes are on the disk.  ``acked`` of them every DataNode behind this one has, too:
    only those are shown to readers.  ``tail`` is the checksum of the last chunk at ``acked`` where
    that chunk is not full: the one on the disk may already be that of a longer chunk.
    ``reserved`` is the space that is kept for the rest of the block.
    """

    block: Block
    storage: StorageId
    length: int = 0
    acked: int = 0
    tail: bytes = b""
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class WaitingForRecovery:
    """A replica that was being written when the DataNode ended (RWR).

    ``readable``: its length could be read from the disk.  Else it has length 0, and may have more.
    """

    block: Block
    storage: StorageId
    length: int
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Temporary:
    """A copy that is coming in; no report names it."""

    block: Block
    storage: StorageId
    length: int = 0
    reserved: int = 0


Recoverable: TypeAlias = Finalized | BeingWritten | WaitingForRecovery


@dataclass(frozen=True, slots=True)
class UnderRecovery:
    """A replica whose final length is being agreed on; reports show what it was before (RUR)."""

    original: Recoverable
    recovery_id: GenerationStamp
    block: Block = field(init=False)
    storage: StorageId = field(init=False)
    length: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("block", "storage", "length"):
            object.__setattr__(self, name, getattr(self.original, name))


Replica: TypeAlias = Finalized | BeingWritten | WaitingForRecovery | Temporary | UnderRecovery

_STATES: dict[type[Recoverable], ReplicaState] = {
    Finalized: ReplicaState.FINALIZED,
    BeingWritten: ReplicaState.RBW,
    WaitingForRecovery: ReplicaState.RWR,
}


def state_of(replica: Recoverable) -> ReplicaState:
    """Return the state, which has its number of the wire."""
    return _STATES[type(replica)]


def reported_state(replica: Replica) -> ReplicaState | None:
    """Return the state that a full report gives; None for a replica that no report names."""
    match replica:
        case Temporary():
            return None
        case UnderRecovery():
            return state_of(replica.original)
        case _:
            return state_of(replica)


def readable_length(replica: Replica) -> int:
    """Return the number of bytes that readers are sure to find."""
    match replica:
        case BeingWritten():
            return replica.acked
        case UnderRecovery():
            return readable_length(replica.original)
        case Temporary():
            return 0
        case _:
            return replica.length
