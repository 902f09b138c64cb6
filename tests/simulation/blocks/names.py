"""Names in this simulation, as clients and DataNodes write them."""

from typing import Final

from hadoop.proto.hdfs_types_pb2 import DatanodeIDProto
from tests.simulation.blocks.datanode import Datanode

POOL: Final = "BP-1-10.0.0.1-1"


def id_of(owner: Datanode) -> DatanodeIDProto:
    who = owner.id
    return DatanodeIDProto(
        ipAddr=who.ip,
        hostName=who.host,
        datanodeUuid=who.uuid,
        xferPort=who.transfer_port,
        infoPort=who.info_port,
        ipcPort=who.ipc_port,
        infoSecurePort=who.info_secure_port,
    )
