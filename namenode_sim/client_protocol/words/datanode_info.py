"""A DataNode as clients read it."""

from hadoop.proto.hdfs_types_pb2 import DatanodeIDProto, DatanodeInfoProto
from namenode_sim.datanodes.model import DatanodeId, Node


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
    capacity = used = remaining = pool_used = non_dfs_used = blocks = 0
    for storage in node.storages.values():  # one loop: every located block needs this thrice
        room = storage.room
        capacity += room.capacity
        used += room.used
        remaining += room.remaining
        pool_used += room.pool_used
        non_dfs_used += room.non_dfs_used
        blocks += len(storage.held.slots)
    info = DatanodeInfoProto(
        id=id_of(node.id),
        capacity=capacity,
        dfsUsed=used,
        remaining=remaining,
        blockPoolUsed=pool_used,
        nonDfsUsed=non_dfs_used,
        lastUpdate=max(0, now_ms - int((now - node.last_heard) * 1000)),
        lastUpdateMonotonic=max(0, int(node.last_heard * 1000)),
        cacheCapacity=node.cache.capacity,
        cacheUsed=node.cache.used,
        xceiverCount=node.transceivers,
        location=node.rack,
        adminState=DatanodeInfoProto.AdminState.ValueType(int(node.admin)),
        numBlocks=blocks,
        softwareVersion=node.software_version,
    )
    if node.last_report is not None:  # without, Hadoop's commands say "Never"
        info.lastBlockReportTime = max(0, now_ms - int((now - node.last_report) * 1000))
        info.lastBlockReportMonotonic = max(0, int(node.last_report * 1000))
    return info
