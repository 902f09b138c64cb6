"""What may be done with a replica: operation x replica -> the next replica, or a refusal.

See docs/reference/datanode.md#replica-operations.

Pure.
"""

from typing import TypeAlias, assert_never

from datanode import model
from datanode.replicas import operations
from ha.record import dataclass, replace
from hadoop.blocks import Block, GenerationStamp


@dataclass(frozen=True, slots=True)
class Next:
    """The operation may be done.

    ``replica`` is what there is afterwards.  ``dropped``: the former replica's files go first.
    """

    replica: model.Replica | None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class OperationRefused:
    """The operation may not be done; nothing changes.  ``missing``: there is no replica at all."""

    why: str
    missing: bool = False
    recovery_in_progress: bool = False


Outcome: TypeAlias = Next | OperationRefused


def decide(operation: operations.Operation, replica: model.Replica | None) -> Outcome:
    match operation:
        case operations.Create():
            return _create(operation, replica)
        case operations.CreateCopy():
            return _create_copy(operation, replica)
        case operations.Invalidate():
            return _invalidate(operation, replica)
        case _ if replica is None:
            return OperationRefused(f"{operation.block} is not here", missing=True)
        case _:
            return _change(operation, replica)


def _change(operation: operations.Change, replica: model.Replica) -> Outcome:
    match operation:
        case operations.RecoverPipeline():
            return _recover_pipeline(operation, replica)
        case operations.Append():
            return _append(operation, replica)
        case operations.RecoverAppend():
            return _recover_append(operation, replica)
        case operations.RecoverClose():
            return _recover_close(operation, replica)
        case operations.Complete():
            return _complete(operation, replica)
        case operations.OpenCopy():
            return _open_copy(operation, replica)
        case operations.BeginRecovery():
            return _begin_recovery(operation, replica)
        case operations.EndRecovery():
            return _end_recovery(operation, replica)
        case operations.LeaveRecovery():
            return _leave_recovery(operation, replica)
    assert_never(operation)


def received(replica: model.Replica, end: int) -> model.Replica:
    """Return the replica with all before ``end`` on the disk; rewriting does not shorten it."""
    if isinstance(replica, model.BeingWritten | model.Temporary):
        return replace(replica, length=max(replica.length, end))
    return replica


def acknowledged(replica: model.Replica, end: int, tail: bytes) -> model.Replica:
    """Return the replica after all DataNodes behind it have the bytes before ``end``, too."""
    if isinstance(replica, model.BeingWritten) and replica.acked <= end <= replica.length:
        return replace(replica, acked=end, tail=tail)
    return replica


def shown(replica: model.Replica) -> str:
    return f"{type(replica).__name__} {replica.block} of {replica.length} bytes"


def _create(operation: operations.Create, replica: model.Replica | None) -> Outcome:
    made = model.BeingWritten(operation.block, operation.storage, reserved=operation.reserved)
    if replica is None:
        return Next(made)
    unfinished = isinstance(
        replica, model.BeingWritten | model.Temporary | model.WaitingForRecovery
    )
    if operation.again and unfinished and replica.block.stamp <= operation.block.stamp:
        return Next(made, dropped=True)
    return OperationRefused(f"{operation.block} cannot be created: {shown(replica)} exists")


def _create_copy(operation: operations.CreateCopy, replica: model.Replica | None) -> Outcome:
    made = model.Temporary(operation.block, operation.storage, reserved=operation.reserved)
    if replica is None:
        return Next(made)
    # Hadoop refuses one that waits for recovery; its NameNode then waits five minutes for the copy.
    gives_way = isinstance(
        replica, model.BeingWritten | model.Temporary | model.WaitingForRecovery
    ) or (
        # This node was down during an append, and the client needs it in its pipeline now.
        operation.replaces_whole and isinstance(replica, model.Finalized)
    )
    if gives_way and replica.block.stamp < operation.block.stamp:
        return Next(made, dropped=True)
    return OperationRefused(f"{operation.block} cannot be copied here: {shown(replica)} exists")


def _recover_pipeline(operation: operations.RecoverPipeline, replica: model.Replica) -> Outcome:
    if not isinstance(replica, model.BeingWritten):
        return OperationRefused(f"the pipeline cannot go on: {shown(replica)} is not being written")
    if wrong := _wrong_stamp(operation.block, operation.new_stamp, replica):
        return wrong
    if replica.acked < operation.min_acked or replica.length > operation.max_length:
        return OperationRefused(
            f"the pipeline cannot go on: of {shown(replica)} {replica.acked} are acknowledged; "
            f"the client expects at least {operation.min_acked} acknowledged and at most "
            f"{operation.max_length} received"
        )
    block = Block(replica.block.block_id, operation.new_stamp)
    return Next(replace(replica, block=block, length=replica.acked))


def _append(operation: operations.Append, replica: model.Replica) -> Outcome:
    if not isinstance(replica, model.Finalized):
        return OperationRefused(f"cannot append to {shown(replica)}: it is not finalized")
    if replica.block != operation.block:
        return OperationRefused(f"cannot append to {operation.block}: {shown(replica)} is here")
    # Hadoop's client asks for a new stamp; others (hdfs-native) append under the block's own.
    if operation.new_stamp < replica.block.stamp:
        return OperationRefused(
            f"cannot append to {shown(replica)}: the new stamp {operation.new_stamp} is older"
        )
    return _reopen(operation.new_stamp, operation.length, replica)


def _recover_append(operation: operations.RecoverAppend, replica: model.Replica) -> Outcome:
    if wrong := _wrong_stamp(operation.block, operation.new_stamp, replica):
        return wrong
    match replica:
        case model.Finalized():
            return _reopen(operation.new_stamp, operation.length, replica)
        case model.BeingWritten():
            if uneven := _uneven(replica, operation.length):
                return uneven
            return Next(replace(replica, block=Block(replica.block.block_id, operation.new_stamp)))
        case _:
            return OperationRefused(
                f"cannot append to {shown(replica)}: it is not open or finalized"
            )


def _recover_close(operation: operations.RecoverClose, replica: model.Replica) -> Outcome:
    if wrong := _wrong_stamp(operation.block, operation.new_stamp, replica):
        return wrong
    if not isinstance(replica, model.Finalized | model.BeingWritten):
        return OperationRefused(f"cannot close {shown(replica)}: it is not open or finalized")
    if uneven := _uneven(replica, operation.length):
        return uneven
    block = Block(replica.block.block_id, operation.new_stamp)
    return Next(model.Finalized(block, replica.storage, replica.length))


def _complete(operation: operations.Complete, replica: model.Replica) -> Outcome:
    if replica.block != operation.block or not isinstance(
        replica, model.BeingWritten | model.Temporary
    ):
        return OperationRefused(f"{operation.block} cannot be finalized: {shown(replica)} is here")
    return Next(model.Finalized(replica.block, replica.storage, replica.length))


def _open_copy(operation: operations.OpenCopy, replica: model.Replica) -> Outcome:
    if replica.block != operation.block or not isinstance(replica, model.Temporary):
        return OperationRefused(f"{operation.block} cannot be opened: {shown(replica)} is here")
    return Next(
        model.BeingWritten(
            replica.block,
            replica.storage,
            replica.length,
            acked=replica.length,
            reserved=replica.reserved,
        )
    )


def _begin_recovery(operation: operations.BeginRecovery, replica: model.Replica) -> Outcome:
    if replica.block.stamp < operation.block.stamp:
        return OperationRefused(
            f"{shown(replica)} is older than {operation.block}, which is recovered"
        )
    match replica:
        case model.Temporary():
            return OperationRefused(f"{shown(replica)} is a copy that is not whole", missing=True)
        case model.WaitingForRecovery(readable=False):
            return OperationRefused(
                f"{shown(replica)} cannot be read, and may have what was acknowledged"
            )
        case model.UnderRecovery() if replica.recovery_id >= operation.recovery_id:
            return OperationRefused(
                f"{shown(replica)} is under recovery {replica.recovery_id} already; "
                f"{operation.recovery_id} comes too late",
                recovery_in_progress=True,
            )
        case model.UnderRecovery():
            return Next(model.UnderRecovery(replica.original, operation.recovery_id))
        case _ if replica.block.stamp >= operation.recovery_id:
            return OperationRefused(
                f"{shown(replica)} is not older than recovery {operation.recovery_id}"
            )
        case _:
            return Next(model.UnderRecovery(replica, operation.recovery_id))


def _end_recovery(operation: operations.EndRecovery, replica: model.Replica) -> Outcome:
    if not isinstance(replica, model.UnderRecovery):
        return OperationRefused(f"{shown(replica)} is not under recovery")
    if replica.block != operation.block or replica.recovery_id != operation.recovery_id:
        return OperationRefused(
            f"recovery {operation.recovery_id} of {operation.block} cannot end: "
            f"{shown(replica)} is under recovery {replica.recovery_id}"
        )
    if replica.length < operation.length:
        return OperationRefused(f"{shown(replica)} cannot become {operation.length} bytes long")
    block = Block(replica.block.block_id, operation.recovery_id)
    return Next(model.Finalized(block, replica.storage, operation.length))


def _leave_recovery(operation: operations.LeaveRecovery, replica: model.Replica) -> Outcome:
    if isinstance(replica, model.UnderRecovery) and replica.recovery_id == operation.recovery_id:
        return Next(replica.original)
    return OperationRefused(f"{shown(replica)} is not under recovery {operation.recovery_id}")


def _invalidate(operation: operations.Invalidate, replica: model.Replica | None) -> Outcome:
    if replica is None:
        return OperationRefused(f"{operation.block} is not here", missing=True)
    if replica.block != operation.block:
        return OperationRefused(f"{operation.block} is not to be deleted: {shown(replica)} is here")
    return Next(None)


def _wrong_stamp(
    block: Block, new_stamp: GenerationStamp, replica: model.Replica
) -> OperationRefused | None:
    if block.stamp <= replica.block.stamp <= new_stamp:
        return None
    return OperationRefused(
        f"{shown(replica)} has a stamp outside of {block.stamp} to {new_stamp}, which the client "
        "expects"
    )


def _uneven(
    replica: model.Finalized | model.BeingWritten, expected: int
) -> OperationRefused | None:
    acked = replica.acked if isinstance(replica, model.BeingWritten) else replica.length
    if acked == replica.length == expected:
        return None
    return OperationRefused(
        f"{shown(replica)} has {acked} bytes acknowledged, and the client expects {expected}"
    )


def _reopen(new_stamp: GenerationStamp, length: int, replica: model.Finalized) -> Outcome:
    if replica.length != length:
        return OperationRefused(
            f"cannot append to {shown(replica)}: the client expects {length} bytes"
        )
    block = Block(replica.block.block_id, new_stamp)
    return Next(model.BeingWritten(block, replica.storage, replica.length, acked=replica.length))
