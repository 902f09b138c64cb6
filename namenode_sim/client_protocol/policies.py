"""Storage policies as clients read them, and which one an inode has."""

from namenode_sim.datanodes.storage_policies import (
    DEFAULT_POLICY_ID,
    POLICIES,
    StoragePolicy,
    Types,
)
from namenode_sim.namespace.attributes import storage_policy_of
from namenode_sim.namespace.inode import INode
from namenode_sim.proto.hdfs_types_pb2 import (
    BlockStoragePolicyProto,
    StorageTypeProto,
    StorageTypesProto,
)


def policy_proto(policy: StoragePolicy) -> BlockStoragePolicyProto:
    """A policy as clients read it."""
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


def effective_policy_id(node: INode) -> int:
    """The policy set on the inode or on the nearest directory above it; 0 if none is."""
    step: INode | None = node
    while step is not None:
        policy_id = storage_policy_of(step)
        if policy_id:
            return policy_id
        step = step.parent
    return 0


def policy_of(node: INode) -> StoragePolicy:
    """The policy by which an inode's blocks are placed; an unknown one is the default."""
    return POLICIES.get(effective_policy_id(node), POLICIES[DEFAULT_POLICY_ID])
