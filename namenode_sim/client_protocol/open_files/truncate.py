"""truncate: a file loses its end (FSDirTruncateOp).

See docs/reference/namenode.md#append-and-truncate.
"""

from ha.rpc.java_names import ALREADY_BEING_CREATED, UNSUPPORTED_OPERATION
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.open_files import lease_recovery
from namenode_sim.client_protocol.words import quotas
from namenode_sim.client_protocol.words.block_locations import slot_of
from namenode_sim.client_protocol.words.errors import FsError, illegal_argument, io_error
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits, refused
from namenode_sim.client_protocol.words.paths import Route, as_file
from namenode_sim.client_protocol.words.permissions import WRITE, check_path, find
from namenode_sim.datanodes.recovery import begin
from namenode_sim.edits.ops import AllocateBlockId, Op, SetGenstampV2, Truncate
from namenode_sim.edits.values import Block
from namenode_sim.leases.taking import Intent
from namenode_sim.namespace.inode import STRIPED, INodeFile
from namenode_sim.namespace.snapshots.diffs import keeps_block
from namenode_sim.namespace.usage import effective_policy_id


def truncate(scene: Scene, request: calls.TruncateRequestProto) -> EditPlan:
    """Cut a file; the answer is false while DataNodes cut its last block."""
    route = find(scene, request.src)
    check_path(scene.caller, route, WRITE)
    file = as_file(route)
    if file.block_type == STRIPED:
        raise FsError(
            UNSUPPORTED_OPERATION, f"Cannot truncate file with striped block {route.path}"
        )
    if effective_policy_id(file) == lease_recovery.LAZY_PERSIST_POLICY:
        raise FsError(UNSUPPORTED_OPERATION, f"Cannot truncate lazy persist file {route.path}")
    running = _length_when_cut(scene, file)
    if running is not None:
        return _while_running(scene, route, request, running)
    taken = lease_recovery.take_lease(scene, route, request.clientName, Intent.TRUNCATE)
    if isinstance(taken, lease_recovery.StillOpen):
        return taken.plan
    length = sum(block.num_bytes for block in taken.blocks)
    if request.newLength > length:
        error = illegal_argument(
            f"Cannot truncate to a larger file size. Current size: {length}, "
            f"truncate size: {request.newLength}."
        )
        return refused(taken.ops, error)
    if request.newLength == length:
        return EditPlan(taken.ops, lambda: calls.TruncateResponseProto(result=True))
    return _cut(scene, route, request, taken)


def _length_when_cut(scene: Scene, file: INodeFile) -> int | None:
    """Return the length that a file is being truncated to; None if it is not."""
    if not file.blocks:
        return None
    last = file.blocks[-1]
    construction = scene.cluster.blocks.map.find_construction(slot_of(scene, last))
    if construction is None or construction.cut is None:
        return None
    return file.length() - last.num_bytes + construction.cut.length


def _while_running(
    scene: Scene, route: Route, request: calls.TruncateRequestProto, length: int
) -> EditPlan:
    """Let a repeated call wait with the first; refuse another one."""
    if request.newLength == length:
        return no_edits(calls.TruncateResponseProto(result=False))
    raise FsError(
        ALREADY_BEING_CREATED,
        f"Failed to {Intent.TRUNCATE.value} {route.path} for {request.clientName} on "
        f"{scene.caller.host} because {route.path} is being truncated.",
    )


def _cut(
    scene: Scene, route: Route, request: calls.TruncateRequestProto, taken: lease_recovery.Taken
) -> EditPlan:
    def edit(block: Block | None) -> Truncate:
        return Truncate(
            route.path,
            request.clientName,
            scene.caller.host,
            request.newLength,
            scene.now_ms,
            block,
        )

    last = _cut_inside(taken.blocks, request.newLength)
    if last is None:
        done = calls.TruncateResponseProto(result=True)
        return EditPlan((*taken.ops, edit(None)), lambda: done)
    numbers, block = _new_numbers(scene, route, last)
    try:
        _check_room(scene, route, taken.blocks, last, block)
    except FsError as unfit:
        return refused(taken.ops, unfit)

    def answer() -> calls.TruncateResponseProto:
        scene.leases.renew(request.clientName, scene.now)
        cause = scene.namespace.last_applied
        begin(scene.cluster, block.block_id, block.generation_stamp, cause, scene.now)
        return calls.TruncateResponseProto(result=False)

    return EditPlan((*taken.ops, *numbers, edit(block)), answer)


def _check_room(
    scene: Scene, route: Route, blocks: tuple[Block, ...], last: Block, block: Block
) -> None:
    """Check the quotas for a file that is to end with ``block``; raise FsError.

    What snapshots keep of the rest goes on counting.
    """
    tree, file, end = scene.namespace.tree, as_file(route), blocks.index(last)
    held = [one for one in blocks[end:] if keeps_block(tree, route.path, file, one.block_id)]
    quotas.check_change(scene, file, quotas.opened(file, (*blocks[:end], *held, block)))


def _cut_inside(blocks: tuple[Block, ...], length: int) -> Block | None:
    """Return the block in which a file of this length ends; None where it ends with a block."""
    for block in blocks:
        if length <= 0:
            return None
        if length < block.num_bytes:
            return block
        length -= block.num_bytes
    return None


def _new_numbers(scene: Scene, route: Route, last: Block) -> tuple[tuple[Op, ...], Block]:
    """Return the block for the edit: the same with a new stamp, or a new one if in a snapshot.

    In a rolling upgrade Hadoop copies too, since the DataNodes may be rolled back; it keeps the old
    block in memory alone.
    """
    counters = scene.namespace.counters
    stamp = counters.generation_stamp_v2 + 1
    if keeps_block(scene.namespace.tree, route.path, as_file(route), last.block_id):
        block = Block(counters.last_block_id + 1, 0, stamp)
        return (AllocateBlockId(block.block_id), SetGenstampV2(stamp)), block
    if scene.namespace.rolling_upgrade_start is not None:
        raise io_error(
            f"Cannot truncate {route.path} to {last.num_bytes} bytes or less inside block "
            f"{last.block_id} while a rolling upgrade is in progress: a rollback could not bring "
            "the bytes back.  Truncate it after the upgrade is finalized"
        )
    return (SetGenstampV2(stamp),), Block(last.block_id, last.num_bytes, stamp)
