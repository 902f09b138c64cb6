"""Storage policies as clients read them."""

from hadoop.proto import hdfs_types_pb2
from namenode_sim.datanodes.storage_policies import StoragePolicy, Types


def policy_proto(policy: StoragePolicy) -> hdfs_types_pb2.BlockStoragePolicyProto:
    return hdfs_types_pb2.BlockStoragePolicyProto(
        policyId=policy.id,
        name=policy.name,
        creationPolicy=_types(policy.creation),
        creationFallbackPolicy=_types(policy.creation_fallback),
        replicationFallbackPolicy=_types(policy.replication_fallback),
    )


def _types(types: Types) -> hdfs_types_pb2.StorageTypesProto:
    numbers = [hdfs_types_pb2.StorageTypeProto.ValueType(int(kind)) for kind in types]
    return hdfs_types_pb2.StorageTypesProto(storageTypes=numbers)
