"""commitBlockSynchronization: a DataNode reports what a block recovery has made of a block.

See docs/reference/blocks.md#the-end-of-a-recovery.
"""

from hadoop.proto import datanode_protocol_pb2 as pb
from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.client_protocol.open_files.open_files import close_edit
from namenode_sim.client_protocol.words import errors
from namenode_sim.client_protocol.words.block_locations import slot_of, stage_of
from namenode_sim.client_protocol.words.client_blocks import (
    block_from_message,
    check_pool,
    pooled_name,
)
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.words.paths import route_to
from namenode_sim.datanodes.model import NodeStorage, StorageState
from namenode_sim.datanodes.recovery import before, reopen, take_recovered
from namenode_sim.edits.ops import Op, UpdateBlocks
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.snapshots.diffs import is_current

_LONGEST = 2**63 - 1


def commit_block_synchronization(
    scene: Scene, request: pb.CommitBlockSynchronizationRequestProto
) -> EditPlan:
    """Take over the result of a recovery, once: a repetition finds the block complete.

    FSNamesystem.commitBlockSynchronization.

    Raises:
        FsError: if the recovery is not the one that this NameNode ordered last; nothing of it
            counts then, and the next one begins with what DataNodes have.
    """
    check_pool(scene, request.block)
    slot = scene.cluster.blocks.map.find(block_from_message(request.block).block_id)
    if slot is None:
        if request.deleteBlock:
            return _nothing_to_do()
        raise errors.io_error(f"Block (={_name(scene, request)}) not found")
    file = _file_of(scene, slot)
    if file.under_construction is None or not file.blocks:
        return _nothing_to_do()
    last = file.blocks[-1]
    if stage_of(scene, last) is Stage.COMPLETE:
        return _nothing_to_do()
    _check_recovery(scene, request, last)
    path = route_to(file).path
    if request.deleteBlock:
        return _without_last(scene, request, file, path)
    return _with_last(scene, request, file, path)


def _nothing_to_do() -> EditPlan:
    return no_edits(pb.CommitBlockSynchronizationResponseProto())


def _name(scene: Scene, request: pb.CommitBlockSynchronizationRequestProto) -> str:
    return pooled_name(scene, block_from_message(request.block))


def _file_of(scene: Scene, slot: Slot) -> INodeFile:
    file = scene.namespace.tree.inodes.get(scene.cluster.blocks.map.block(slot).file_id)
    assert isinstance(file, INodeFile)
    if not is_current(file):
        raise errors.not_found(
            f"File not found: {route_to(file).path}, likely due to delayed block removal"
        )
    return file


def _check_recovery(
    scene: Scene, request: pb.CommitBlockSynchronizationRequestProto, last: Block
) -> None:
    """Check that this is the running recovery, of the block that it was ordered for."""
    known = scene.cluster.blocks.map.construction(slot_of(scene, last))
    current = known.recovery_stamp
    if current != request.newGenStamp:
        raise errors.io_error(
            f"The recovery id {request.newGenStamp} does not match current recovery id "
            f"{current or 0} for block {_name(scene, request)}"
        )
    told, cut = block_from_message(request.block).block_id, known.cut
    if told != (last.block_id if cut is None else cut.source_id):
        raise errors.io_error(
            f"The recovery id {current} is that of block {last.block_id}, not of "
            f"{_name(scene, request)}; nothing was changed"
        )
    if request.newLength > _LONGEST:
        raise errors.io_error(
            f"Block {_name(scene, request)} cannot have {request.newLength} bytes"
        )
    if cut is not None and (request.deleteBlock or request.newLength != cut.length):
        raise errors.io_error(
            f"Block {_name(scene, request)} is being truncated to {cut.length} bytes, not "
            f"{'deleted' if request.deleteBlock else f'to {request.newLength}'}; "
            "nothing was changed, and the recovery is tried again"
        )


def _without_last(
    scene: Scene,
    request: pb.CommitBlockSynchronizationRequestProto,
    file: INodeFile,
    path: str,
) -> EditPlan:
    """Plan that the file ends before its last block, of which no DataNode has a byte."""
    _check_unwritten(scene, request, file.blocks[-1])
    left = file.blocks[:-1]
    ops: list[Op] = [UpdateBlocks(path, left)]
    if request.closeFile:
        _check_before(scene, left, path)
        ops.append(close_edit(file, path, scene.now_ms, left))
    return EditPlan(tuple(ops), pb.CommitBlockSynchronizationResponseProto)


def _check_unwritten(
    scene: Scene, request: pb.CommitBlockSynchronizationRequestProto, last: Block
) -> None:
    """Refuse if a storage that may come back has reported bytes: it may only be silent."""
    blocks = scene.cluster.blocks.map
    for location in blocks.construction(slot_of(scene, last)).locations:
        if location.length > 0:
            storage = blocks.storages.at(location.storage)
            raise errors.io_error(
                f"Block {_name(scene, request)} is not deleted: DataNode {storage.node} has "
                f"reported {location.length} bytes of it, and is not known to be dead.  Nothing "
                "was changed, and the recovery is tried again"
            )


def _check_before(scene: Scene, blocks: tuple[Block, ...], path: str) -> None:
    """Check that what comes before the last block is complete, or the file cannot be closed."""
    for block in blocks:
        stage = stage_of(scene, block)
        if stage is not Stage.COMPLETE:
            raise errors.io_error(
                f"Failed to finalize {path} since block {block.block_id} is {stage.name}; "
                "nothing was changed, and the recovery is tried again"
            )


def _with_last(
    scene: Scene,
    request: pb.CommitBlockSynchronizationRequestProto,
    file: INodeFile,
    path: str,
) -> EditPlan:
    cluster, last = scene.cluster, file.blocks[-1]
    storages = _storages(scene, request, path)
    blocks = (*file.blocks[:-1], Block(last.block_id, request.newLength, request.newGenStamp))
    if not request.closeFile:

        def reopened() -> pb.CommitBlockSynchronizationResponseProto:
            reopen(cluster, last.block_id, storages)
            return pb.CommitBlockSynchronizationResponseProto()

        return EditPlan((UpdateBlocks(path, blocks),), reopened)
    if not storages:
        raise errors.io_error(
            f"Block {_name(scene, request)} is recovered on no storage that this NameNode knows; "
            f"{path} stays open, and the recovery is tried again"
        )
    _check_before(scene, file.blocks[:-1], path)
    was = before(cluster.blocks, slot_of(scene, last))

    def completed() -> pb.CommitBlockSynchronizationResponseProto:
        take_recovered(cluster, last.block_id, storages, was)
        return pb.CommitBlockSynchronizationResponseProto()

    return EditPlan((close_edit(file, path, scene.now_ms, blocks),), completed)


def _storages(
    scene: Scene, request: pb.CommitBlockSynchronizationRequestProto, path: str
) -> tuple[NodeStorage, ...]:
    """Return the storages that have the recovered block; what is not known here is left out."""
    nodes, names = request.newTaragets, request.newTargetStorages
    if len(nodes) != len(names):
        raise errors.illegal_argument(
            f"Missing storageIDs: {len(nodes)} DataNodes and {len(names)} storages were told for "
            f"the recovered block of {path}"
        )
    found: dict[str, NodeStorage] = {}
    for told, name in zip(nodes, names, strict=True):
        node = scene.cluster.nodes.get(told.datanodeUuid)
        storage = None if node is None or not node.alive else node.storages.get(name)
        if storage is not None and storage.state is not StorageState.FAILED:
            found[told.datanodeUuid] = storage
    return tuple(found.values())
