"""append: an old file is opened again (FSDirAppendOp).

See docs/reference/namenode.md#append-and-truncate.
"""

from ha.rpc.java_names import NOT_REPLICATED_YET, RETRIABLE, UNSUPPORTED_OPERATION
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.open_files import lease_recovery
from namenode_sim.client_protocol.open_files.open_files import opened_before
from namenode_sim.client_protocol.words import block_locations, quotas
from namenode_sim.client_protocol.words.client_blocks import name_of
from namenode_sim.client_protocol.words.errors import FsError, already_exists, io_error, not_found
from namenode_sim.client_protocol.words.model import EditPlan, Scene, refused
from namenode_sim.client_protocol.words.permissions import WRITE, check_path, find
from namenode_sim.client_protocol.words.status import status_of
from namenode_sim.edits.ops import Append
from namenode_sim.edits.values import Block
from namenode_sim.leases.taking import Intent
from namenode_sim.namespace.inode import STRIPED, INodeDirectory, INodeFile
from namenode_sim.namespace.snapshots.diffs import has_more_behind
from namenode_sim.namespace.usage import effective_policy_id

NEW_BLOCK = 32


def append(scene: Scene, request: calls.AppendRequestProto) -> EditPlan:
    """Open a file for its caller; the answer has the last block, unless that is full.

    A block that a snapshot has more of the file behind does not grow: what is read there would be
    shifted.  A new one follows it, as it does a full one.
    """
    route = find(scene, request.src)
    if isinstance(route.last, INodeDirectory):
        raise already_exists(
            f"Cannot append to directory {route.path}; already exists as a directory."
        )
    check_path(scene.caller, route, WRITE)
    if not isinstance(route.last, INodeFile):
        raise not_found(
            f"Failed to append to non-existent file {route.path} for client {scene.caller.host}"
        )
    file = route.last
    if file.block_type == STRIPED:
        raise FsError(
            UNSUPPORTED_OPERATION, f"Cannot append to files with striped block {route.path}"
        )
    if effective_policy_id(file) == lease_recovery.LAZY_PERSIST_POLICY:
        raise FsError(UNSUPPORTED_OPERATION, f"Cannot append to lazy persist file {route.path}")
    taken = lease_recovery.take_lease(scene, route, request.clientName, Intent.APPEND)
    if isinstance(taken, lease_recovery.StillOpen):
        return taken.plan
    asked = bool(request.flag & NEW_BLOCK)
    new_block = asked or (bool(taken.blocks) and has_more_behind(file, taken.blocks[-1].block_id))
    if taken.blocks:
        try:
            _check_last(scene, route.path, file, taken.blocks, new_block=new_block)
        except FsError as unfit:
            if not taken.ops:
                raise
            # The former writer has lost the file all the same.
            return refused(taken.ops, unfit)
    op = Append(
        route.path, request.clientName, scene.caller.host, new_block=new_block, rpc=scene.caller.rpc
    )

    def answer() -> calls.AppendResponseProto:
        scene.leases.renew(request.clientName, scene.now)
        return _append_response(scene, file, new_block=asked)

    return EditPlan((*taken.ops, op), answer)


def _check_last(
    scene: Scene, path: str, file: INodeFile, blocks: tuple[Block, ...], *, new_block: bool
) -> None:
    """Check the last block's replicas, and the room for what it may grow to."""
    _check_replicas(scene, blocks[-1], path)
    if not new_block:
        quotas.check_change(scene, file, quotas.opened(file, blocks))


def _check_replicas(scene: Scene, last: Block, path: str) -> None:
    """Check that the last block has the replicas that a complete one needs, or all possible."""
    state, slot = scene.cluster.blocks, block_locations.slot_of(scene, last)
    where = f"append: lastBlock={name_of(last)} of src={path} is"
    if block_locations.stage_of(scene, last) is Stage.COMMITTED:
        raise FsError(RETRIABLE, f"{NOT_REPLICATED_YET}: {where} COMMITTED but not yet COMPLETE.")
    alive = sum(node.alive for node in scene.cluster.nodes.values())
    if not state.map.has_minimum(state.map.live(slot), alive):
        raise io_error(f"{where} not sufficiently replicated yet.")


def _append_response(
    scene: Scene, file: INodeFile, *, new_block: bool
) -> calls.AppendResponseProto:
    """Return the file, and the block to go on with.

    A client that is to begin a new block gets the last one, without locations: where the file ends.
    """
    answer = calls.AppendResponseProto(stat=status_of(scene.namespace, file))
    gone = scene.namespace.tree.inodes.get(file.id) is not file  # since a call that is repeated
    if gone or not file.blocks:
        return answer
    last = file.blocks[-1]
    if new_block:
        answer.block.CopyFrom(block_locations.block_at(scene, last, -1, ()))
    elif block_locations.stage_of(scene, last) is not Stage.COMPLETE:
        starts = file.length() - last.num_bytes
        answer.block.CopyFrom(block_locations.located_for_writing(scene, last, starts))
    return answer


def appended_before(scene: Scene, request: calls.AppendRequestProto) -> calls.AppendResponseProto:
    """Return the answer to an append that was carried out already."""
    return _append_response(scene, opened_before(scene), new_block=bool(request.flag & NEW_BLOCK))
