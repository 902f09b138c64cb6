"""What a balancer asks: which blocks of a DataNode it may move, and where else they are.

See docs/reference/datanodes.md#moves.
"""

from typing import Final

import numpy as np

from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.longs import signed
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import namenode_protocol_pb2 as pb
from namenode_sim.blocks.index import Slots
from namenode_sim.blocks.model import BlockInfo, Slot
from namenode_sim.client_protocol.words.errors import FsError, illegal_argument
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node
from namenode_sim.namespace.inode import INodeFile

MOST_BLOCKS: Final = 2000
"""In one answer; a balancer asks again for what is lacking."""

MOST_LOOKED_AT: Final = 20_000
"""For one answer, of those that are long enough."""


def get_blocks(scene: Scene, request: pb.GetBlocksRequestProto) -> pb.GetBlocksResponseProto:
    """Return blocks of a DataNode, of this many bytes together, from a random one on.

    Those of files that are in use come last, if a ``timeInterval`` says since when they count so.

    Raises:
        FsError: if a number is below 0, or the DataNode is not known.
    """
    size, least = signed(request.size), signed(request.minBlockSize)
    if size <= 0 or least < 0:
        raise FsError(ILLEGAL_ARGUMENT, f"Unexpected not positive size: {size}")
    node = _node(scene.cluster, request.datanode)
    slots = _slots(scene, node, request)
    cold, hot, since = list[Slot](), list[Slot](), scene.now_ms - request.timeInterval
    fit = slots[scene.cluster.blocks.map.movable(slots, least)]
    for slot in map(Slot, fit[:MOST_LOOKED_AT].tolist()):
        is_hot = request.timeInterval > 0 and _is_hot(scene, slot, since)
        (hot if is_hot else cold).append(slot)
    answer, total = pb.BlocksWithLocationsProto(), 0
    for slot in (*cold, *hot):
        if total >= size or len(answer.blocks) == MOST_BLOCKS:
            break
        block = scene.cluster.blocks.map.block(slot)
        located = _locate(scene.cluster, slot, block)
        if node.id.uuid in located.datanodeUuids:
            answer.blocks.append(located)
            total += block.length
    return pb.GetBlocksResponseProto(blocks=answer)


def _node(cluster: Cluster, named: hdfs.DatanodeIDProto) -> Node:
    node, address = cluster.nodes.get(named.datanodeUuid), f"{named.ipAddr}:{named.xferPort}"
    if node is None or node.id.transfer_address != address:
        raise illegal_argument(f"Datanode {address} not found.")
    return node


def _slots(scene: Scene, node: Node, request: pb.GetBlocksRequestProto) -> Slots:
    """Return what is certain to be on a DataNode's storages, of the type that is asked for."""
    found = [
        scene.cluster.blocks.map.held_by(storage.held)[1]
        for storage in node.storages.values()
        if storage.held.confirmed
        and (not request.HasField("storageType") or int(storage.type) == request.storageType)
    ]
    slots = np.concatenate(found) if found else np.zeros(0, np.int64)
    return np.roll(slots, -scene.cluster.draw.randrange(len(slots))) if len(slots) else slots


def _is_hot(scene: Scene, slot: Slot, since: int) -> bool:
    """Return whether a block's file is being written, or was read or written since then (ms)."""
    file_id = scene.cluster.blocks.map.block(slot).file_id
    file = scene.namespace.tree.inodes.get(file_id)
    if not isinstance(file, INodeFile):
        return False
    if file.under_construction is not None:
        return True
    return max(file.atime, file.mtime) > since


def _locate(cluster: Cluster, slot: Slot, block: BlockInfo) -> pb.BlockWithLocationsProto:
    """Describe a block with its replicas but for those that are to be deleted."""
    known = cluster.blocks.map
    places = [
        cluster.place(number)
        for number in known.storages_of(slot)
        if not known.is_pending_deletion(slot, number)
    ]
    return pb.BlockWithLocationsProto(
        block=types.BlockProto(blockId=block.id, genStamp=block.stamp, numBytes=block.length),
        datanodeUuids=[node.id.uuid for node, _ in places],
        storageUuids=[storage.uuid for _, storage in places],
        storageTypes=[hdfs.StorageTypeProto.ValueType(int(storage.type)) for _, storage in places],
    )
