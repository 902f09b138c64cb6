"""The identity of this DataNode, and the namespace of its blocks."""

from datanode.replicas.layout import LAYOUT_VERSION, PoolVersion
from ha.record import dataclass
from hadoop.block_tokens import NO_KEYS
from hadoop.blocks import PoolId
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import namenode_protocol_pb2 as nn

SOFTWARE_VERSION = "3.5.0-nnha"
"""The Hadoop release whose protocols we speak; the suffix marks the DataNodes that are nnha's."""
_MASK_32 = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Namespace:
    """What a NameNode says of its namespace; all NameNodes of a nameservice say the same."""

    namespace_id: int
    cluster_id: str
    ctime: int
    pool: PoolId

    @property
    def pool_version(self) -> PoolVersion:
        return PoolVersion(self.pool, self.namespace_id, self.ctime)


@dataclass(frozen=True, slots=True)
class Identity:
    """A DataNode as NameNodes and clients know it."""

    uuid: str
    host: str
    data_port: int
    http_port: int
    rpc_port: int
    namespace: Namespace

    @property
    def node_id(self) -> hdfs.DatanodeIDProto:
        return hdfs.DatanodeIDProto(
            ipAddr=self.host,
            hostName=self.host,
            datanodeUuid=self.uuid,
            xferPort=self.data_port,
            infoPort=self.http_port,
            ipcPort=self.rpc_port,
        )

    @property
    def registration(self) -> pb.DatanodeRegistrationProto:
        """The form of this in every call to a NameNode, which has the keys of block tokens."""
        space = self.namespace
        return pb.DatanodeRegistrationProto(
            datanodeID=self.node_id,
            storageInfo=nn.StorageInfoProto(
                layoutVersion=LAYOUT_VERSION & _MASK_32,
                namespceID=space.namespace_id,
                clusterID=space.cluster_id,
                cTime=space.ctime,
            ),
            keys=NO_KEYS,
            softwareVersion=SOFTWARE_VERSION,
        )


def namespace_of(info: nn.NamespaceInfoProto) -> Namespace:
    stored = info.storageInfo
    return Namespace(stored.namespceID, stored.clusterID, stored.cTime, PoolId(info.blockPoolID))
