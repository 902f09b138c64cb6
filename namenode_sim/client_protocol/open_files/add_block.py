"""addBlock: the next block of an open file, and where it goes (FSDirWriteFileOp).

See docs/reference/namenode.md#adding-a-block.
"""

from collections.abc import Iterable, Sequence

from ha.rpc.java_names import NOT_REPLICATED_YET
from hadoop.block_tokens import Mode
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import AddBlockFlagProto, DatanodeInfoProto
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.open_files.open_files import by_id, check_lease
from namenode_sim.client_protocol.words import quotas
from namenode_sim.client_protocol.words.block_locations import (
    block_at,
    blocks_now,
    slot_of,
    stage_of,
)
from namenode_sim.client_protocol.words.client_blocks import (
    block_from_message,
    check_pool,
    committed,
    expected_places,
    name_of,
    pooled_name,
    same,
)
from namenode_sim.client_protocol.words.errors import FsError, io_error
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node
from namenode_sim.datanodes.placement import Choice, Place, Wish
from namenode_sim.datanodes.storage_policies import policy_of
from namenode_sim.edits.ops import AddBlock, AllocateBlockId, SetGenstampV2
from namenode_sim.edits.values import Block
from namenode_sim.namespace.file_numbers import pack_blocks
from namenode_sim.namespace.inode import STRIPED, INodeFile


def add_block(scene: Scene, request: calls.AddBlockRequestProto) -> EditPlan:
    """Give the writer its next block, and take the final length of the one before.

    A repeated call gets the block that the first one made, also from another NameNode.
    """
    previous = None
    if request.HasField("previous"):
        check_pool(scene, request.previous)
        previous = block_from_message(request.previous)
    route = by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.clientName, request.fileId)
    if file.block_type == STRIPED:
        raise io_error(f"{route.path} is striped; this NameNode writes no striped files")
    if is_retry(scene, route.path, file, previous):
        return _last_again(scene, route.path, file, request)
    blocks = blocks_now(scene, file)
    if len(blocks) > 1 and stage_of(scene, blocks[-2]) is not Stage.COMPLETE:
        raise FsError(NOT_REPLICATED_YET, f"Not replicated yet: {route.path}")
    if len(blocks) >= scene.settings.max_blocks:
        raise io_error(
            "File has reached the limit on maximum number of blocks "
            f"(dfs.namenode.fs-limits.max-blocks-per-file): {len(blocks)} >= "
            f"{scene.settings.max_blocks}"
        )
    before = committed(scene, file, previous) or (blocks[-1] if blocks else None)
    places = _new_places(scene, route.path, file, request)
    counters = scene.namespace.counters
    new = Block(counters.last_block_id + 1, 0, counters.generation_stamp_v2 + 1)
    after = (*blocks[:-1], *([before] if before else []), new)
    quotas.check_change(scene, file, file.changed(pack_blocks(after), file.traits))
    ops = (
        AllocateBlockId(new.block_id),
        SetGenstampV2(new.generation_stamp),
        AddBlock(route.path, before, new),
    )
    offset = sum(block.num_bytes for block in (*blocks[:-1], before) if block is not None)
    return EditPlan(ops, lambda: _add_response(scene, new, places, offset))


def is_retry(scene: Scene, path: str, file: INodeFile, previous: Block | None) -> bool:
    """Return whether the call was carried out before (FSDirWriteFileOp.analyzeFileState).

    Raises:
        FsError: if the caller goes on behind another block than the file's last one.
    """
    blocks = blocks_now(scene, file)
    last = blocks[-1] if blocks else None
    if same(previous, last):
        return False
    if last is None:
        raise _other_last(scene, path, previous, last)
    if previous is None and _is_whole(scene, file, last):
        return False
    before = blocks[-2] if len(blocks) > 1 else None
    if before is not None and previous is None and _is_whole(scene, file, before):
        # A client that appends behind a whole block names none; Hadoop fails its client here if the
        # answer to the first call was lost.
        before = None
    if not same(previous, before):
        raise _other_last(scene, path, previous, last)
    if last.num_bytes:
        raise io_error(
            f"Request looked like a retry to allocate block {name_of(last)} but it already "
            f"contains {last.num_bytes} bytes"
        )
    return True


def _is_whole(scene: Scene, file: INodeFile, block: Block) -> bool:
    """Return whether a block is complete and has its full size: no client writes to it any more."""
    complete = stage_of(scene, block) is Stage.COMPLETE
    return complete and block.num_bytes >= file.preferred_block_size


def _other_last(scene: Scene, path: str, previous: Block | None, last: Block | None) -> FsError:
    return io_error(
        f"Cannot allocate block in {path}: passed 'previous' block "
        f"{pooled_name(scene, previous)} does not match actual last block in file {name_of(last)}"
    )


def _last_again(
    scene: Scene, path: str, file: INodeFile, request: calls.AddBlockRequestProto
) -> EditPlan:
    """Answer with the block that the same call has made before.

    After a failover its places may be unknown here, and no DataNode may have heard of it.
    """
    blocks = blocks_now(scene, file)
    last, offset = blocks[-1], sum(block.num_bytes for block in blocks)
    known = expected_places(scene, last)
    if known:
        answer = calls.AddBlockResponseProto(block=block_at(scene, last, offset, known, Mode.WRITE))
        return no_edits(answer)
    places = _new_places(scene, path, file, request)
    return EditPlan((), lambda: _add_response(scene, last, places, offset))


def _add_response(
    scene: Scene, block: Block, places: Sequence[Place], offset: int
) -> calls.AddBlockResponseProto:
    scene.cluster.expect(slot_of(scene, block), [storage for _, storage in places])
    for _, storage in places:
        storage.held.scheduled.add(scene.now)
    return calls.AddBlockResponseProto(block=block_at(scene, block, offset, places, Mode.WRITE))


def _new_places(
    scene: Scene, path: str, file: INodeFile, request: calls.AddBlockRequestProto
) -> tuple[Place, ...]:
    """Choose the places for a new block.

    Raises:
        FsError: if fewer DataNodes are fit for it than dfs.namenode.replication.min.
    """
    cluster, flags = scene.cluster, set(request.flags)
    is_local = AddBlockFlagProto.IGNORE_CLIENT_LOCALITY not in flags
    writer = writer_node(scene, file) if is_local else None
    wish = Wish(
        count=file.replication,
        size=file.preferred_block_size,
        policy=policy_of(file),
        writer=writer,
        rack=_writer_rack(scene, file) if is_local and writer is None else None,
        excluded=uuids(request.excludeNodes),
        favored=_favored_nodes(cluster, request.favoredNodes),
        local_write=AddBlockFlagProto.NO_LOCAL_WRITE not in flags,
    )
    choice = cluster.choose(wish, scene.now)
    if len(choice.places) < scene.settings.min_replication:
        raise _nowhere(scene, path, choice, len(wish.excluded))
    return choice.places


def _nowhere(scene: Scene, path: str, choice: Choice, excluded: int) -> FsError:
    """Return Hadoop's error, with a second line that counts the reasons against DataNodes."""
    running = sum(node.alive for node in scene.cluster.nodes.values())
    why = ", ".join(f"{count} {reason.value}" for reason, count in choice.reasons.items())
    return io_error(
        f"File {path} could only be written to {len(choice.places)} of the "
        f"{scene.settings.min_replication} minReplication nodes. There are {running} datanode(s) "
        f"running and {excluded or 'no'} node(s) are excluded in this operation."
        + (f"\nDataNodes not taken: {why}." if why else "")
    )


def _favored_nodes(cluster: Cluster, names: Iterable[str]) -> tuple[Node, ...]:
    """Return the DataNodes that a client asks for, each as "host:port" or "host".

    One at another port of the host will do (DatanodeManager.getDatanodeDescriptor); for an unknown
    host Hadoop favors one that is drawn, and here none is.
    """
    found: list[Node] = []
    for name in names:
        host, _, port = name.partition(":")
        beside = [node for node in cluster.local_to(host) if node.alive]
        fit = [node for node in beside if port == str(node.id.transfer_port)] or beside
        if fit:
            found.append(fit[cluster.draw.randrange(len(fit))])
    return tuple(found)


def writer_node(scene: Scene, file: INodeFile) -> Node | None:
    """Return the DataNode on the writer's machine; one that is drawn if there are several."""
    writer = file.under_construction
    assert writer is not None, f"file {file.id} is not open"
    beside = scene.cluster.local_to(writer.client_machine)
    local = [node for node in beside if node.alive]
    return local[scene.cluster.draw.randrange(len(local))] if local else None


def _writer_rack(scene: Scene, file: INodeFile) -> str | None:
    """Return the rack of a writer whose machine has no DataNode; None if it is not known yet."""
    writer = file.under_construction
    return None if writer is None else scene.cluster.rack_of_host(writer.client_machine)


def uuids(infos: Iterable[DatanodeInfoProto]) -> frozenset[str]:
    return frozenset(info.id.datanodeUuid for info in infos)
