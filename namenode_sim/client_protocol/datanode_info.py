"""A DataNode as clients read it."""

from namenode_sim.datanodes.model import Node
from namenode_sim.proto.hdfs_types_pb2 import DatanodeIDProto, DatanodeInfoProto

U64 = 2**64


def info_of(node: Node, now: float, now_ms: int) -> DatanodeInfoProto:
    """DatanodeInfo: who it is, its sizes summed over its storages, when it was last heard of.

    ``now`` and ``now_ms`` are the same moment, as monotonic seconds and as Unix milliseconds.
    """
    rooms = [storage.room for storage in node.storages.values()]
    who = node.id
    return DatanodeInfoProto(
        id=DatanodeIDProto(
            ipAddr=who.ip,
            hostName=who.host,
            datanodeUuid=who.uuid,
            xferPort=who.transfer_port,
            infoPort=who.info_port,
            ipcPort=who.ipc_port,
            infoSecurePort=who.info_secure_port,
        ),
        capacity=sum(room.capacity for room in rooms),
        dfsUsed=sum(room.used for room in rooms),
        remaining=sum(room.remaining for room in rooms),
        blockPoolUsed=sum(room.pool_used for room in rooms),
        nonDfsUsed=sum(room.non_dfs_used for room in rooms),
        lastUpdate=max(0, now_ms - int((now - node.last_heard) * 1000)),
        lastUpdateMonotonic=max(0, int(node.last_heard * 1000)),
        xceiverCount=node.transceivers,
        location=node.rack,
        numBlocks=sum(len(storage.held.slots) for storage in node.storages.values()),
        softwareVersion=node.software_version,
    )
