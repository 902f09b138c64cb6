"""Calls of a writer whose pipeline of DataNodes broke (FSNamesystem.updatePipeline and others).

See docs/reference/namenode.md#pipelines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.block_tokens import Mode
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.open_files.add_block import uuids, writer_node
from namenode_sim.client_protocol.open_files.open_files import by_id, check_lease
from namenode_sim.client_protocol.words.block_locations import block_at, blocks_now, slot_of
from namenode_sim.client_protocol.words.client_blocks import (
    block_from_message,
    check_pool,
    name_of,
    pooled_name,
)
from namenode_sim.client_protocol.words.errors import (
    FsError,
    illegal_argument,
    io_error,
    lease_expired,
)
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.words.paths import route_to
from namenode_sim.datanodes.placement import Place, Wish
from namenode_sim.datanodes.storage_policies import policy_of
from namenode_sim.edits.ops import SetGenstampV2, UpdateBlocks
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.snapshots.diffs import is_current

MOST_ADDED = 100
"""No pipeline is longer; a client that asks for more DataNodes gets these."""


def get_additional_datanode(
    scene: Scene, request: calls.GetAdditionalDatanodeRequestProto
) -> EditPlan:
    """Return the DataNodes of a pipeline in their order, then new ones.

    Nothing is logged; Hadoop counts it among the changes, and refuses it in safe mode.
    """
    check_pool(scene, request.blk)
    route = by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.clientName, request.fileId)
    there = [info.id.datanodeUuid for info in request.existings]
    existing = _places(scene, route.path, there, request.existingStorageUuids)
    wish = Wish(
        count=min(request.numAdditionalNodes, MOST_ADDED),
        size=file.preferred_block_size,
        policy=policy_of(file),
        writer=writer_node(scene, file),
        chosen=tuple(existing),
        excluded=uuids(request.excludes),
    )
    places = [*existing, *scene.cluster.choose(wish, scene.now).places]
    block = block_at(scene, block_from_message(request.blk), -1, places, Mode.COPY)
    return no_edits(calls.GetAdditionalDatanodeResponseProto(block=block))


def update_block_for_pipeline(
    scene: Scene, request: calls.UpdateBlockForPipelineRequestProto
) -> EditPlan:
    """Return a new generation stamp, which distinguishes a replica that missed the rest."""
    _open_block(scene, request.block, request.clientName)
    stamp = scene.namespace.counters.generation_stamp_v2 + 1
    block = replace(block_from_message(request.block), generation_stamp=stamp)
    answer = calls.UpdateBlockForPipelineResponseProto(
        block=block_at(scene, block, -1, (), Mode.WRITE)
    )
    return EditPlan((SetGenstampV2(stamp),), lambda: answer)


def update_pipeline(scene: Scene, request: calls.UpdatePipelineRequestProto) -> EditPlan:
    """Record the pipeline that was set up anew, under the stamp that the writer got for it.

    Hadoop takes any larger stamp; one that was never given out is refused here.
    """
    old, new = block_from_message(request.oldBlock), block_from_message(request.newBlock)
    check_pool(scene, request.newBlock)
    if old.block_id != new.block_id:
        raise FsError(
            ILLEGAL_ARGUMENT,
            f"{pooled_name(scene, old)} and {pooled_name(scene, new)} has different block "
            "identifier",
        )
    file = _open_block(scene, request.oldBlock, request.clientName)
    blocks = blocks_now(scene, file)
    last, given = blocks[-1], scene.namespace.counters.generation_stamp_v2
    if new.generation_stamp <= last.generation_stamp:
        raise io_error(
            f"Update {pooled_name(scene, old)} but the new block {pooled_name(scene, new)} does "
            f"not have a larger generation stamp than the last block {name_of(last)}"
        )
    if new.generation_stamp > given:
        raise io_error(
            f"Update {pooled_name(scene, old)} but the stamp of the new block "
            f"{pooled_name(scene, new)} was never given out: the last one is {given}"
        )
    if new.num_bytes < last.num_bytes:
        raise io_error(
            f"Update {pooled_name(scene, old)} (size={old.num_bytes}) to a smaller size block "
            f"{pooled_name(scene, new)} (size={new.num_bytes})"
        )
    path = route_to(file).path
    there = [node.datanodeUuid for node in request.newNodes]
    places = _places(scene, path, there, request.storageIDs)
    op = UpdateBlocks(path, (*blocks[:-1], new), rpc=scene.caller.rpc)
    return EditPlan((op,), lambda: _update(scene, new, places))


def _update(
    scene: Scene, block: Block, places: Iterable[Place]
) -> calls.UpdatePipelineResponseProto:
    scene.cluster.expect(slot_of(scene, block), [storage for _, storage in places])
    return calls.UpdatePipelineResponseProto()


def _open_block(scene: Scene, told: ExtendedBlockProto, client: str) -> INodeFile:
    """Return the file whose last block this is, being written by the caller (checkUCBlock)."""
    check_pool(scene, told)
    block, state = block_from_message(told), scene.cluster.blocks
    name = pooled_name(scene, block)
    slot = state.map.find(block.block_id)
    if slot is None:
        raise io_error(f"{name} does not exist.")
    stage = state.map.block(slot).stage
    if stage is not Stage.UNDER_CONSTRUCTION:
        raise io_error(
            f"Unexpected BlockUCState: {name} is {stage.name} but not UNDER_CONSTRUCTION"
        )
    file = scene.namespace.tree.inodes.get(state.map.block(slot).file_id)
    assert isinstance(file, INodeFile)
    writer = file.under_construction
    assert writer is not None
    if not is_current(file):
        raise io_error(
            f"The file {name_of(block)} belonged to does not exist or it is not under construction."
        )
    if writer.client_name != client:
        raise lease_expired(f"Lease mismatch: {name} is accessed by a non lease holder {client}")
    scene.leases.renew(client, scene.now)
    return file


def _places(scene: Scene, path: str, nodes: Sequence[str], storages: Sequence[str]) -> list[Place]:
    """Return the storages that a client names; what did not register here is left out.

    Its DataNode reports the replica once it is back.
    """
    try:
        named = list(zip(nodes, storages, strict=True))
    except ValueError as error:
        raise illegal_argument(
            f"Length mismatched: storageIDs.length={len(storages)} != "
            f"datanodeID.length={len(nodes)}, src={path}"
        ) from error
    found: list[Place] = []
    for uuid, storage_uuid in named:
        node = scene.cluster.nodes.get(uuid)
        if node is not None and storage_uuid in node.storages:
            found.append((node, node.storages[storage_uuid]))
    return found
