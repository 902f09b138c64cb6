"""Block storage policies: on which types of storage the replicas of a block go.

See docs/reference/datanodes.md#storage-policies.
"""

from collections.abc import Collection, Iterable
from typing import Final

from ha.record import dataclass
from namenode_sim.datanodes.model import StorageType
from namenode_sim.namespace.inode import INode
from namenode_sim.namespace.usage import effective_policy_id

DISK, SSD, ARCHIVE = StorageType.DISK, StorageType.SSD, StorageType.ARCHIVE
RAM_DISK, PROVIDED, NVDIMM = StorageType.RAM_DISK, StorageType.PROVIDED, StorageType.NVDIMM

Types = tuple[StorageType, ...]

UNSERVED: Final = frozenset({RAM_DISK, PROVIDED})
"""Types that no replica is put on: one loses what it holds, the other belongs to somebody else."""


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """Where replicas go, and where instead when there is no room.

    The last of the ``creation`` types stands for all replicas beyond it.
    """

    id: int
    name: str
    creation: Types
    creation_fallback: Types = ()
    replication_fallback: Types = ()

    def types(self, count: int) -> list[StorageType]:
        """Return the types of ``count`` replicas, in the order in which they are chosen."""
        served = [kind for kind in self.creation if kind not in UNSERVED]
        return (served + served[-1:] * count)[:count]

    def wanted(
        self,
        count: int,
        have: Iterable[StorageType],
        unavailable: Collection[StorageType],
        *,
        copy: bool,
    ) -> list[StorageType]:
        """Return the types still to be chosen for a block that is to have ``count`` replicas.

        A type that is ``unavailable`` is replaced by the first fallback that is not; with none,
        that replica is left out.
        """
        present = list(have)
        left: list[StorageType] = []
        for kind in self.types(count):
            if kind in present:
                present.remove(kind)
            else:
                left.append(kind)
        # Replicas on other types than the policy's count, too: what is there need not be made.
        left = left[: max(0, len(left) - len(present))]
        fallbacks = self.replication_fallback if copy else self.creation_fallback
        barred = UNSERVED | set(unavailable)
        instead = next((kind for kind in fallbacks if kind not in barred), None)
        chosen = [kind if kind not in barred else instead for kind in left]
        return [kind for kind in chosen if kind is not None]


DEFAULT_POLICY_ID: Final = 7

POLICIES: Final = {
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

BY_NAME: Final = {policy.name: policy for policy in POLICIES.values()}


def policy_of(node: INode) -> StoragePolicy:
    """Return the policy by which an inode's blocks are placed; an unknown one is the default."""
    return POLICIES.get(effective_policy_id(node), POLICIES[DEFAULT_POLICY_ID])
