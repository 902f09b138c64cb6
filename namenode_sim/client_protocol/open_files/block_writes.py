"""Calls by which a writer gives a block back, records its file's blocks, and closes it.

See docs/reference/namenode.md#closing-a-file.
"""

from collections.abc import Iterable
from dataclasses import replace

from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.blocks.apply_edits import commit, would_complete
from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.client_protocol.open_files.open_files import by_id, check_lease, close_edit
from namenode_sim.client_protocol.words import client_blocks
from namenode_sim.client_protocol.words.block_locations import blocks_now, slot_of, stage_of
from namenode_sim.client_protocol.words.client_blocks import committed
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits
from namenode_sim.edits.ops import UpdateBlocks
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import STRIPED, INode, INodeFile


def abandon_block(scene: Scene, request: calls.AbandonBlockRequestProto) -> EditPlan:
    """Take the last block back, which the writer could not write; another is none of its."""
    client_blocks.check_pool(scene, request.b)
    route = by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.holder, request.fileId)
    blocks, told = file.blocks, client_blocks.block_from_message(request.b)
    if not blocks or blocks[-1].block_id != told.block_id or file.block_type == STRIPED:
        return no_edits(calls.AbandonBlockResponseProto())
    places = client_blocks.expected_places(scene, blocks[-1])

    def answer() -> calls.AbandonBlockResponseProto:
        for _, storage in places:
            storage.held.scheduled.take(scene.now)
        return calls.AbandonBlockResponseProto()

    return EditPlan((UpdateBlocks(route.path, blocks[:-1]),), answer)


def complete(scene: Scene, request: calls.CompleteRequestProto) -> EditPlan:
    """Close a file; false while too few replicas are reported, and the client asks again.

    True also for a repeated call that succeeded before.
    """
    route = by_id(scene, request.src, request.fileId)
    told = client_blocks.block_from_message(request.last) if request.HasField("last") else None
    if _is_closed_with(route.last, told):
        return no_edits(calls.CompleteResponseProto(result=True))
    file = check_lease(scene, route, request.clientName, request.fileId)
    blocks = blocks_now(scene, file)
    if not _complete(scene, blocks[:-1]):
        return no_edits(calls.CompleteResponseProto(result=False))
    final = committed(scene, file, told)
    if final is None:
        if not _complete(scene, blocks):
            return no_edits(calls.CompleteResponseProto(result=False))
    else:
        slot = slot_of(scene, final)
        if not would_complete(scene.cluster.blocks, slot, final.num_bytes):
            return EditPlan((), lambda: _commit_block(scene, slot, final))
        blocks = (*blocks[:-1], final)
    op = close_edit(file, route.path, scene.now_ms, blocks)
    return EditPlan((op,), lambda: calls.CompleteResponseProto(result=True))


def _is_closed_with(node: INode | None, last: Block | None) -> bool:
    """Return whether a file is closed with this last block: the first answer was lost."""
    if not isinstance(node, INodeFile) or node.under_construction is not None:
        return False
    return client_blocks.same(last, node.blocks[-1] if node.blocks else None)


def _complete(scene: Scene, blocks: Iterable[Block]) -> bool:
    return all(stage_of(scene, block) is Stage.COMPLETE for block in blocks)


def _commit_block(scene: Scene, slot: Slot, final: Block) -> calls.CompleteResponseProto:
    commit(scene.cluster.blocks, slot, final.num_bytes)
    return calls.CompleteResponseProto(result=False)


def fsync(scene: Scene, request: calls.FsyncRequestProto) -> EditPlan:
    """Record an open file's blocks, with the last one's length if the writer sends it."""
    route = by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.client, request.fileId)
    blocks = file.blocks
    # Once the final length is reported, another would be a mistake of the caller's.
    growing = bool(blocks) and stage_of(scene, blocks[-1]) is Stage.UNDER_CONSTRUCTION
    if request.lastBlockLength > 0 and growing:
        blocks = (*blocks[:-1], replace(blocks[-1], num_bytes=request.lastBlockLength))
    return EditPlan((UpdateBlocks(route.path, blocks),), calls.FsyncResponseProto)
