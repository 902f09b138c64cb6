"""What the namespace holds in addition to the tree: counters, secrets, cache pools, EC, snapshots.

Each class mirrors one section of the fsimage.
"""

from collections import Counter
from enum import IntEnum

from ha.record import dataclass, field
from namenode_sim.edits import values
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import ROOT_ID, INodeDirectory

FIRST_BLOCK_ID = 2**30
"""SequentialBlockIdGenerator.LAST_RESERVED_BLOCK_ID: the first block is one more."""

NO_STRIPED_BLOCK_ID = -(2**63)
FIRST_GENERATION_STAMP = 1000


@dataclass(slots=True)
class Counters:
    """The numbers given out so far (NS_INFO and INodeSection)."""

    last_inode_id: int = ROOT_ID
    generation_stamp_v1: int = FIRST_GENERATION_STAMP
    generation_stamp_v2: int = FIRST_GENERATION_STAMP
    generation_stamp_v1_limit: int = 0
    last_block_id: int = FIRST_BLOCK_ID
    last_striped_block_id: int = NO_STRIPED_BLOCK_ID

    def allocate_block_id(self, block_id: int) -> None:
        """Note a block id as given out; the ids of each kind only ever grow."""
        striped = block_id < 0
        last = self.last_striped_block_id if striped else self.last_block_id
        if block_id < last:
            raise ApplyError(f"block id {block_id} comes after {last}")
        if striped:
            self.last_striped_block_id = block_id
        else:
            self.last_block_id = block_id


@dataclass(slots=True)
class Secrets:
    """Delegation keys by id, and tokens with the time they expire (ms)."""

    current_key_id: int = 0
    token_sequence_number: int = 0
    keys: dict[int, values.DelegationKey] = field(default_factory=dict)
    tokens: dict[values.DelegationTokenIdentifier, int] = field(default_factory=dict)
    tokens_of: Counter[str] = field(default_factory=Counter, compare=False)
    """How many tokens each owner has."""

    def add(self, token: values.DelegationTokenIdentifier, expiry: int) -> None:
        """Keep a token; one that is known already gets another end."""
        self.tokens_of[token.owner] += token not in self.tokens
        self.tokens[token] = expiry

    def remove(self, token: values.DelegationTokenIdentifier) -> None:
        """Drop a token, if it is known."""
        if self.tokens.pop(token, None) is not None:
            self.tokens_of[token.owner] -= 1
            if not self.tokens_of[token.owner]:
                del self.tokens_of[token.owner]


@dataclass(slots=True)
class CacheState:
    """Centralized cache management: pools by name, directives by id, every field set.

    ``changes`` counts the edits, for those that look whether there was one.
    """

    next_directive_id: int = 1
    pools: dict[str, values.CachePool] = field(default_factory=dict)
    directives: dict[int, values.CacheDirective] = field(default_factory=dict)
    changes: int = field(default=0, compare=False)


class EcState(IntEnum):
    """What may be done with an erasure coding policy; the image's numbers."""

    DISABLED = 1
    ENABLED = 2
    REMOVED = 3


@dataclass(slots=True)
class ErasureCodingPolicy:
    """A policy the cluster knows."""

    id: int
    name: str
    policy: values.EcPolicy
    state: EcState = EcState.DISABLED


FIRST_USER_EC_ID = 64
_CELL = 1024 * 1024


def policy_name(policy: values.EcPolicy) -> str:
    """Return Hadoop's name for a policy: CODEC-d-p-cellk."""
    units = f"{policy.data_units}-{policy.parity_units}"
    return f"{policy.codec.upper()}-{units}-{policy.cell_size // 1024}k"


def system_ec_policies() -> dict[int, ErasureCodingPolicy]:
    """Return the five policies of every Hadoop 3 (SystemErasureCodingPolicies), all disabled."""
    schemas = [("rs", 6, 3), ("rs", 3, 2), ("rs-legacy", 6, 3), ("xor", 2, 1), ("rs", 10, 4)]
    policies = [values.EcPolicy(codec, data, parity, _CELL) for codec, data, parity in schemas]
    return {
        number: ErasureCodingPolicy(number, policy_name(policy), policy)
        for number, policy in enumerate(policies, start=1)
    }


@dataclass(slots=True, eq=False)
class Snapshot:
    """One snapshot; ``root`` is its directory as it was then, without children, named after it."""

    id: int
    name: str
    root: INodeDirectory


@dataclass(frozen=True, slots=True)
class SnapshotRules:
    """What the configuration says; a log means something else under other rules.

    The fields are dfs.namenode.snapshot.capture.openfiles,
    dfs.namenode.snapshot.skip.capture.accesstime-only-change and
    dfs.namenode.snapshot.deletion.ordered, with Hadoop's defaults.
    """

    capture_open_files: bool = False
    skip_access_time: bool = False
    deletion_ordered: bool = False


@dataclass(slots=True)
class Snapshots:
    """Snapshottable directories by inode id, each with its snapshots, oldest first."""

    counter: int = 0
    snapshottable: dict[int, list[Snapshot]] = field(default_factory=dict)
    rules: SnapshotRules = SnapshotRules()

    def count(self) -> int:
        return sum(len(snapshots) for snapshots in self.snapshottable.values())
