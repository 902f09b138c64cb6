"""Calls by which the writer of a file gets its blocks and closes it."""

from namenode_sim.client_protocol.errors import io_error, no_datanodes
from namenode_sim.client_protocol.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.open_files import by_id, check_lease, close_edit
from namenode_sim.edits.ops import UpdateBlocks
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.proto import client_namenode_pb2 as calls


def add_block(scene: Scene, request: calls.AddBlockRequestProto) -> EditPlan:
    """Refused: there is no DataNode in this build to put a block on."""
    route = by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.clientName, request.fileId)
    if len(file.blocks) >= scene.settings.max_blocks:
        raise io_error(
            "File has reached the limit on maximum number of blocks "
            f"(dfs.namenode.fs-limits.max-blocks-per-file): {len(file.blocks)} >= "
            f"{scene.settings.max_blocks}"
        )
    raise no_datanodes(route.path)


def complete(scene: Scene, request: calls.CompleteRequestProto) -> EditPlan:
    """Close a file; true also for a repeated call that succeeded before."""
    route = by_id(scene, request.src, request.fileId)
    node = route.last
    closed = isinstance(node, INodeFile) and node.under_construction is None
    if closed and _same_last_block(request, node):
        # The file is closed and ends in the very block that the caller says: its first call
        # got through and the answer was lost.
        return no_edits(calls.CompleteResponseProto(result=True))
    file = check_lease(scene, route, request.clientName, request.fileId)
    if request.HasField("last") or file.blocks:
        return no_edits(calls.CompleteResponseProto(result=False))
    op = close_edit(file, route.path, scene.now_ms)
    return EditPlan((op,), lambda: calls.CompleteResponseProto(result=True))


def _same_last_block(request: calls.CompleteRequestProto, file: object) -> bool:
    assert isinstance(file, INodeFile)
    if not request.HasField("last"):
        return not file.blocks
    last = (request.last.blockId, request.last.generationStamp)
    return bool(file.blocks) and last == (
        file.blocks[-1].block_id % 2**64,
        file.blocks[-1].generation_stamp,
    )


def fsync(scene: Scene, request: calls.FsyncRequestProto) -> EditPlan:
    """Record the blocks of an open file."""
    route = by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.client, request.fileId)
    return EditPlan((UpdateBlocks(route.path, file.blocks),), calls.FsyncResponseProto)
