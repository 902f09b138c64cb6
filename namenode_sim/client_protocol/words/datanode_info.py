"""A DataNode as clients read it."""

from typing import Final

from ha.rpc.frames import varint
from hadoop.proto.hdfs_types_pb2 import DatanodeIDProto, DatanodeInfoProto
from namenode_sim.datanodes.model import DatanodeId, Node

_NUM_BLOCKS: Final = b"\x88\x01"
"""The tag of the last field but the version."""


def id_of(who: DatanodeId) -> DatanodeIDProto:
    return DatanodeIDProto(
        ipAddr=who.ip,
        hostName=who.host,
        datanodeUuid=who.uuid,
        xferPort=who.transfer_port,
        infoPort=who.info_port,
        ipcPort=who.ipc_port,
        infoSecurePort=who.info_secure_port,
    )


def info_of(node: Node, now: float, now_ms: int) -> DatanodeInfoProto:
    """Return a DatanodeInfo: its id, its sizes summed over its storages, when it was last heard of.

    ``now`` and ``now_ms`` are the same moment, as monotonic seconds and as Unix milliseconds.
    """
    return DatanodeInfoProto.FromString(info_bytes(node, now, now_ms))


def info_bytes(node: Node, now: float, now_ms: int) -> bytes:
    """Return the bytes of ``info_of``.

    All but the count of its blocks is the same from one heartbeat to the next, and is kept: every
    located block needs it thrice.
    """
    rooms, blocks = [], 0
    for storage in node.storages.values():
        rooms.append(storage.room)
        blocks += len(storage.held.slots)
    seen = (
        node.id, node.last_heard, node.last_report, node.rack, node.admin, node.transceivers,
        node.software_version, node.cache.capacity, node.cache.used, rooms,
    )  # fmt: skip
    if node.shown is None or node.shown[0] != seen:
        version = DatanodeInfoProto(softwareVersion=node.software_version)
        info = _without_last_fields(node, now, now_ms)
        node.shown = (
            seen, info.SerializeToString() + _NUM_BLOCKS, version.SerializePartialToString()
        )  # fmt: skip
    _, before, behind = node.shown
    return before + varint(blocks) + behind


def _without_last_fields(node: Node, now: float, now_ms: int) -> DatanodeInfoProto:
    """Return a DatanodeInfo without the fields from ``numBlocks`` on."""
    room = node.room()
    info = DatanodeInfoProto(
        id=id_of(node.id),
        capacity=room.capacity,
        dfsUsed=room.used,
        remaining=room.remaining,
        blockPoolUsed=room.pool_used,
        nonDfsUsed=room.non_dfs_used,
        lastUpdate=max(0, now_ms - int((now - node.last_heard) * 1000)),
        lastUpdateMonotonic=max(0, int(node.last_heard * 1000)),
        cacheCapacity=node.cache.capacity,
        cacheUsed=node.cache.used,
        xceiverCount=node.transceivers,
        location=node.rack,
        adminState=DatanodeInfoProto.AdminState.ValueType(int(node.admin)),
    )
    if node.last_report is not None:  # without, Hadoop's commands say "Never"
        info.lastBlockReportTime = max(0, now_ms - int((now - node.last_report) * 1000))
        info.lastBlockReportMonotonic = max(0, int(node.last_report * 1000))
    return info
