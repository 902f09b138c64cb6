"""Hadoop's block storage policies: names, numbers, and which one an inode has."""

from dataclasses import dataclass

from namenode_sim.namespace.attributes import storage_policy_of
from namenode_sim.namespace.inode import INode
from namenode_sim.proto.hdfs_types_pb2 import (
    BlockStoragePolicyProto,
    StorageTypeProto,
    StorageTypesProto,
)

DISK, SSD = StorageTypeProto.DISK, StorageTypeProto.SSD
ARCHIVE, RAM_DISK = StorageTypeProto.ARCHIVE, StorageTypeProto.RAM_DISK
PROVIDED, NVDIMM = StorageTypeProto.PROVIDED, StorageTypeProto.NVDIMM

Types = tuple[StorageTypeProto.ValueType, ...]


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """Where replicas go, and where instead when there is no room."""

    id: int
    name: str
    creation: Types
    creation_fallback: Types = ()
    replication_fallback: Types = ()

    def to_proto(self) -> BlockStoragePolicyProto:
        """The policy as clients read it."""
        return BlockStoragePolicyProto(
            policyId=self.id,
            name=self.name,
            creationPolicy=StorageTypesProto(storageTypes=self.creation),
            creationFallbackPolicy=StorageTypesProto(storageTypes=self.creation_fallback),
            replicationFallbackPolicy=StorageTypesProto(storageTypes=self.replication_fallback),
        )


DEFAULT_POLICY_ID = 7

POLICIES = {
    policy.id: policy
    for policy in (
        StoragePolicy(1, "PROVIDED", (PROVIDED, DISK), (PROVIDED, DISK), (PROVIDED, DISK)),
        StoragePolicy(2, "COLD", (ARCHIVE,)),
        StoragePolicy(5, "WARM", (DISK, ARCHIVE), (DISK, ARCHIVE), (DISK, ARCHIVE)),
        StoragePolicy(7, "HOT", (DISK,), (), (ARCHIVE,)),
        StoragePolicy(10, "ONE_SSD", (SSD, DISK), (SSD, DISK), (SSD, DISK)),
        StoragePolicy(12, "ALL_SSD", (SSD,), (DISK,), (DISK,)),
        StoragePolicy(14, "ALL_NVDIMM", (NVDIMM,), (DISK,), (DISK,)),
        StoragePolicy(15, "LAZY_PERSIST", (RAM_DISK, DISK), (DISK,), (DISK,)),
    )
}
"""BlockStoragePolicySuite.createDefaultSuite, by id."""

BY_NAME = {policy.name: policy for policy in POLICIES.values()}


def effective_policy_id(node: INode) -> int:
    """The policy set on the inode or on the nearest directory above it; 0 if none is."""
    step: INode | None = node
    while step is not None:
        policy_id = storage_policy_of(step)
        if policy_id:
            return policy_id
        step = step.parent
    return 0
