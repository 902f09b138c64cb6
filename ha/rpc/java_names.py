"""Java's names for the exceptions and protocols that cross the wire (Hadoop 3.5.0)."""

from typing import Final

IO_EXCEPTION: Final = "java.io.IOException"
FILE_NOT_FOUND: Final = "java.io.FileNotFoundException"
ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
UNSUPPORTED_OPERATION: Final = "java.lang.UnsupportedOperationException"

RPC_SERVER: Final = "org.apache.hadoop.ipc.RpcServerException"
IPC_EXCEPTION: Final = "org.apache.hadoop.ipc.IpcException"
NO_SUCH_METHOD: Final = "org.apache.hadoop.ipc.RpcNoSuchMethodException"
NO_SUCH_PROTOCOL: Final = "org.apache.hadoop.ipc.RpcNoSuchProtocolException"
VERSION_MISMATCH: Final = "org.apache.hadoop.ipc.RPC$VersionMismatch"
STANDBY_EXCEPTION: Final = "org.apache.hadoop.ipc.StandbyException"
RETRIABLE: Final = "org.apache.hadoop.ipc.RetriableException"
AUTHORIZATION: Final = "org.apache.hadoop.security.authorize.AuthorizationException"
ACCESS_CONTROL: Final = "org.apache.hadoop.security.AccessControlException"
INVALID_TOKEN: Final = "org.apache.hadoop.security.token.SecretManager$InvalidToken"

HEALTH_CHECK_FAILED: Final = "org.apache.hadoop.ha.HealthCheckFailedException"
SERVICE_FAILED: Final = "org.apache.hadoop.ha.ServiceFailedException"

FILE_ALREADY_EXISTS: Final = "org.apache.hadoop.fs.FileAlreadyExistsException"
PARENT_NOT_DIRECTORY: Final = "org.apache.hadoop.fs.ParentNotDirectoryException"
PATH_IS_NOT_DIRECTORY: Final = "org.apache.hadoop.fs.PathIsNotDirectoryException"
PATH_IS_NOT_EMPTY_DIRECTORY: Final = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"
INVALID_PATH: Final = "org.apache.hadoop.fs.InvalidPathException"

ACL: Final = "org.apache.hadoop.hdfs.protocol.AclException"
ALREADY_BEING_CREATED: Final = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException"
NAMESPACE_QUOTA_EXCEEDED: Final = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"
SPACE_QUOTA_EXCEEDED: Final = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"
TYPE_QUOTA_EXCEEDED: Final = "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException"
LEASE_EXPIRED: Final = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"
NOT_REPLICATED_YET: Final = "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException"

HA_SERVICE_PROTOCOL: Final = "org.apache.hadoop.ha.HAServiceProtocol"
ZKFC_PROTOCOL: Final = "org.apache.hadoop.ha.ZKFCProtocol"
JOURNAL_WITNESS: Final = "nnha.JournalWitness"
"""Ours: see ``ha.service.journal_witness``."""
CLIENT_PROTOCOL: Final = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
NAMENODE_PROTOCOL: Final = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol"
DATANODE_PROTOCOL: Final = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol"
DATANODE_LIFELINE_PROTOCOL: Final = (
    "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol"
)
INTER_DATANODE_PROTOCOL: Final = "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol"
CLIENT_DATANODE_PROTOCOL: Final = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"
RECONFIGURATION: Final = "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol"
REFRESH_USER_MAPPINGS: Final = "org.apache.hadoop.security.RefreshUserMappingsProtocol"
REFRESH_AUTHORIZATION_POLICY: Final = (
    "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol"
)

RECOVERY_IN_PROGRESS: Final = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException"
REPLICA_NOT_FOUND: Final = "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException"

UNREGISTERED_NODE: Final = "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException"
INCORRECT_VERSION: Final = "org.apache.hadoop.hdfs.server.common.IncorrectVersionException"
DISALLOWED_DATANODE: Final = "org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException"
INVALID_TOPOLOGY: Final = "org.apache.hadoop.net.NetworkTopology$InvalidTopologyException"
UNRESOLVED_TOPOLOGY: Final = (
    "org.apache.hadoop.hdfs.server.blockmanagement.UnresolvedTopologyException"
)
INVALID_REPORT_LEASE: Final = (
    "org.apache.hadoop.hdfs.server.protocol.InvalidBlockReportLeaseException"
)
SAFE_MODE_EXCEPTION: Final = "org.apache.hadoop.hdfs.server.namenode.SafeModeException"
