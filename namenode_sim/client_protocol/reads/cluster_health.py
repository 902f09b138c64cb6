"""Calls about DataNodes, and about blocks that lack replicas."""

from typing import Final

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.state import BlockState
from namenode_sim.client_protocol.words.client_blocks import block_from_message, check_pool
from namenode_sim.client_protocol.words.datanode_info import info_of
from namenode_sim.client_protocol.words.errors import io_error
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.permissions import check_superuser
from namenode_sim.datanodes.damage import Damaged, check_known, note_damage
from namenode_sim.datanodes.errors import UnknownDatanode
from namenode_sim.datanodes.membership.admin import Kind
from namenode_sim.datanodes.model import AdminState, Node, NodeStorage, StorageState
from namenode_sim.namespace.inode import full_path

MOST_CORRUPT_FILES: Final = 100
"""dfs.corruptfilesreturned.max: the most that one call lists."""

MOST_DIGITS: Final = 20

MOST_DAMAGED: Final = 1000
"""The most replicas that one call may report."""


def get_fs_stats(scene: Scene, _: calls.GetFsStatusRequestProto) -> calls.GetFsStatsResponseProto:
    """Return the sizes of the DataNodes in service, and how many blocks lack replicas."""
    blocks, room = scene.cluster.blocks, scene.cluster.room()
    return calls.GetFsStatsResponseProto(
        capacity=room.capacity,
        used=room.used,
        remaining=room.remaining,
        under_replicated=len(blocks.needed),
        **_counts(blocks),
    )


def get_fs_replicated_block_stats(
    scene: Scene, _: calls.GetFsReplicatedBlockStatsRequestProto
) -> calls.GetFsReplicatedBlockStatsResponseProto:
    """Return how many replicated blocks lack replicas; no others are counted here."""
    blocks = scene.cluster.blocks
    return calls.GetFsReplicatedBlockStatsResponseProto(
        low_redundancy=len(blocks.needed),
        highest_prio_low_redundancy_blocks=blocks.needed.size(Priority.HIGHEST),
        badly_distributed_blocks=blocks.needed.size(Priority.BADLY_DISTRIBUTED),
        **_counts(blocks),
    )


def _counts(blocks: BlockState) -> dict[str, int]:
    """Return what both statistics say of blocks, by the names of their fields."""
    return {
        "corrupt_blocks": blocks.map.corrupt_count(),
        "missing_blocks": blocks.needed.size(Priority.MISSING),
        "missing_repl_one_blocks": blocks.needed.missing_single(),
        "blocks_in_future": blocks.map.safe_counts()[2],
        "pending_deletion_blocks": len(blocks.invalidations),
    }


def get_fs_ec_block_group_stats(
    _: Scene, __: calls.GetFsECBlockGroupStatsRequestProto
) -> calls.GetFsECBlockGroupStatsResponseProto:
    """Return zeros for erasure coded block groups, whose health is not observed here."""
    fields = calls.GetFsECBlockGroupStatsResponseProto.DESCRIPTOR.fields_by_name
    return calls.GetFsECBlockGroupStatsResponseProto(**dict.fromkeys(fields, 0))


def get_datanode_report(
    scene: Scene, request: calls.GetDatanodeReportRequestProto
) -> calls.GetDatanodeReportResponseProto:
    check_superuser(scene.caller)
    infos = [info_of(node, scene.now, scene.now_ms) for node in _of_kind(scene, request.type)]
    return calls.GetDatanodeReportResponseProto(di=infos)


def get_slow_datanode_report(
    scene: Scene, _: calls.GetSlowDatanodeReportRequestProto
) -> calls.GetSlowDatanodeReportResponseProto:
    """Return no DataNode: they are not asked which of their peers are slow, Hadoop's default."""
    check_superuser(scene.caller)
    return calls.GetSlowDatanodeReportResponseProto()


def get_datanode_storage_report(
    scene: Scene, request: calls.GetDatanodeStorageReportRequestProto
) -> calls.GetDatanodeStorageReportResponseProto:
    check_superuser(scene.caller)
    return calls.GetDatanodeStorageReportResponseProto(
        datanodeStorageReports=[
            types.DatanodeStorageReportProto(
                datanodeInfo=info_of(node, scene.now, scene.now_ms),
                storageReports=map(_storage_report, node.storages.values()),
            )
            for node in _of_kind(scene, request.type)
        ]
    )


_ADMIN_STATES: Final = {
    types.DatanodeReportTypeProto.DECOMMISSIONING: AdminState.DECOMMISSION_INPROGRESS,
    types.DatanodeReportTypeProto.ENTERING_MAINTENANCE: AdminState.ENTERING_MAINTENANCE,
    types.DatanodeReportTypeProto.IN_MAINTENANCE: AdminState.IN_MAINTENANCE,
}


def _of_kind(scene: Scene, kind: types.DatanodeReportTypeProto.ValueType) -> list[Node]:
    """Return the DataNodes of a kind.

    Of dead ones those on the include list, also if they never came (getDatanodeListForReport).
    """
    known, hosts = scene.cluster.nodes.values(), scene.cluster.hosts
    nodes = [node for node in known if node.alive or hosts.includes(node.id)]
    for never in hosts.unseen(node.id for node in known):
        leaves = hosts.asked(never).kind is Kind.DECOMMISSION
        state = AdminState.DECOMMISSIONED if leaves else AdminState.NORMAL
        never_heard = scene.now - scene.now_ms / 1000
        nodes.append(Node(never, "", never_heard, alive=False, admin=state))
    match kind:
        case types.DatanodeReportTypeProto.ALL:
            return nodes
        case types.DatanodeReportTypeProto.LIVE:
            return [node for node in nodes if node.alive]
        case types.DatanodeReportTypeProto.DEAD:
            return [node for node in nodes if not node.alive]
        case _:
            wanted = _ADMIN_STATES.get(kind)
            return [node for node in nodes if node.alive and node.admin is wanted]


def _storage_report(storage: NodeStorage) -> types.StorageReportProto:
    room, shared = storage.room, storage.state is StorageState.READ_ONLY_SHARED
    states = types.DatanodeStorageProto
    return types.StorageReportProto(
        storageUuid=storage.uuid,
        failed=storage.state is StorageState.FAILED,
        capacity=room.capacity,
        dfsUsed=room.used,
        remaining=room.remaining,
        blockPoolUsed=room.pool_used,
        nonDfsUsed=room.non_dfs_used,
        storage=types.DatanodeStorageProto(
            storageUuid=storage.uuid,
            state=states.READ_ONLY_SHARED if shared else states.NORMAL,
            storageType=types.StorageTypeProto.ValueType(int(storage.type)),
        ),
    )


def list_corrupt_file_blocks(
    scene: Scene, request: calls.ListCorruptFileBlocksRequestProto
) -> calls.ListCorruptFileBlocksResponseProto:
    """Return the files below a path with missing blocks, a path for each block."""
    found, seen = missing_blocks(scene, request.path, request.cookie)
    return calls.ListCorruptFileBlocksResponseProto(
        corrupt=types.CorruptFileBlocksProto(files=[path for _, path in found], cookie=str(seen))
    )


def missing_blocks(scene: Scene, top: str, cookie: str) -> tuple[list[tuple[int, str]], int]:
    """Return a page of the missing blocks below a path, with their files, and the next cookie.

    A cookie is the number of blocks that earlier calls have looked at (FSNamesystem).
    """
    check_superuser(scene.caller)
    blocks = scene.cluster.blocks
    if not blocks.rechecks.is_started():
        raise io_error(
            "Cannot run listCorruptFileBlocks because replication queues have not been initialized."
        )
    seen = int(cookie) if cookie.isdecimal() and len(cookie) < MOST_DIGITS else 0
    found: list[tuple[int, str]] = []
    for slot in blocks.needed.listed(Priority.MISSING)[seen:]:
        seen += 1
        block = blocks.map.block(slot)
        path = full_path(scene.namespace.tree.inodes[block.file_id])
        if _is_at_or_below(path, top):
            found.append((block.id, path))
        if len(found) == MOST_CORRUPT_FILES:
            break
    return found, seen


def _is_at_or_below(path: str, top: str) -> bool:
    """Return whether a path is ``top`` or something in it (DFSUtil.isParentEntry)."""
    return top in {"/", path} or path.startswith(f"{top}/")


def report_bad_blocks(scene: Scene, request: calls.ReportBadBlocksRequestProto) -> EditPlan:
    damaged = [
        Damaged(
            block_from_message(located.b).block_id, located.b.generationStamp, info.id.datanodeUuid
        )
        for located in request.blocks
        for info in located.locs
    ]
    if len(damaged) > MOST_DAMAGED:
        raise io_error(
            f"{len(damaged)} replicas are reported to be damaged, at most {MOST_DAMAGED} may be "
            f"with one call; none was marked. Report fewer at a time"
        )
    for located in request.blocks:
        check_pool(scene, located.b)
    try:
        for one in damaged:
            check_known(scene.cluster, one)
    except UnknownDatanode as unknown:
        raise io_error(str(unknown)) from unknown

    def answer() -> calls.ReportBadBlocksResponseProto:
        for one in damaged:
            note_damage(scene.cluster, one)
        return calls.ReportBadBlocksResponseProto()

    return EditPlan((), answer)
