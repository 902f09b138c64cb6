"""What is asked of replicas, and what is reported to NameNodes when it has been done.

See docs/reference/datanode.md#replica-operations.

Pure.
"""

from enum import IntEnum
from typing import TypeAlias, assert_never

from datanode.model import StorageId
from ha.record import dataclass
from hadoop.blocks import Block, GenerationStamp


@dataclass(frozen=True, slots=True)
class Create:
    """A client begins a block.  ``again``: its first try failed, and what that left may go."""

    block: Block
    storage: StorageId
    reserved: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class CreateCopy:
    """Another DataNode sends a whole replica.

    ``replaces_whole``: an older whole one goes, too, for a client that repairs its pipeline, or a
    recovery that makes the copy itself.
    """

    block: Block
    storage: StorageId
    reserved: int
    replaces_whole: bool = False


@dataclass(frozen=True, slots=True)
class RecoverPipeline:
    """A client goes on after the failure of another DataNode of its pipeline."""

    block: Block
    new_stamp: GenerationStamp
    min_acked: int
    max_length: int


@dataclass(frozen=True, slots=True)
class Append:
    """A client appends to a whole block."""

    block: Block
    new_stamp: GenerationStamp
    length: int


@dataclass(frozen=True, slots=True)
class RecoverAppend:
    """A client sets up an append again after a failure."""

    block: Block
    new_stamp: GenerationStamp
    length: int


@dataclass(frozen=True, slots=True)
class RecoverClose:
    """A client ends a block again after a failure; no data follows."""

    block: Block
    new_stamp: GenerationStamp
    length: int


@dataclass(frozen=True, slots=True)
class Complete:
    """All bytes are here: the replica becomes final.

    ``hint``: the DataNode, by uuid, that may lose its own replica for it; empty: none.
    """

    block: Block
    hint: str = ""


@dataclass(frozen=True, slots=True)
class OpenCopy:
    """A copy is whole, and its block is still being written: the client goes on with it."""

    block: Block


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """The length of the replica is to be agreed on under this recovery id."""

    block: Block
    recovery_id: GenerationStamp


@dataclass(frozen=True, slots=True)
class EndRecovery:
    """The length has been agreed on."""

    block: Block
    recovery_id: GenerationStamp
    length: int


@dataclass(frozen=True, slots=True)
class LeaveRecovery:
    """The recovery has made a copy of the replica, which stays what it was."""

    block: Block
    recovery_id: GenerationStamp


@dataclass(frozen=True, slots=True)
class Invalidate:
    """The NameNode does not want this replica any more."""

    block: Block


Change: TypeAlias = (
    RecoverPipeline
    | Append
    | RecoverAppend
    | RecoverClose
    | Complete
    | OpenCopy
    | BeginRecovery
    | EndRecovery
    | LeaveRecovery
)
"""What needs a replica that is here."""

Operation: TypeAlias = Create | CreateCopy | Invalidate | Change


class News(IntEnum):
    """What an incremental report says of a replica; the numbers are those on the wire."""

    RECEIVING = 1
    RECEIVED = 2
    DELETED = 3


def news_of(operation: Operation) -> News | None:
    """Return the news for the NameNodes when an operation has been done."""
    match operation:
        case Create() | Append() | RecoverAppend():
            return News.RECEIVING
        case RecoverClose() | Complete() | EndRecovery():
            return News.RECEIVED
        case Invalidate():
            return News.DELETED
        case CreateCopy() | RecoverPipeline() | OpenCopy() | BeginRecovery() | LeaveRecovery():
            return None
    assert_never(operation)


def interrupts(operation: Operation) -> bool:
    """Return whether another task that writes the replica must end first."""
    return not isinstance(operation, Complete | OpenCopy)  # these are by the writer itself
