"""Storage policies as clients read them."""

from hadoop.proto.hdfs_types_pb2 import (
    BlockStoragePolicyProto,
    StorageTypeProto,
    StorageTypesProto,
)
from namenode_sim.datanodes.storage_policies import StoragePolicy, Types


def policy_proto(policy: StoragePolicy) -> BlockStoragePolicyProto:
    """Return a policy as clients read it."""
    return BlockStoragePolicyProto(
        policyId=policy.id,
        name=policy.name,
        creationPolicy=_types(policy.creation),
        creationFallbackPolicy=_types(policy.creation_fallback),
        replicationFallbackPolicy=_types(policy.replication_fallback),
    )


def _types(types: Types) -> StorageTypesProto:
    numbers = [StorageTypeProto.ValueType(int(kind)) for kind in types]
    return StorageTypesProto(storageTypes=numbers)
