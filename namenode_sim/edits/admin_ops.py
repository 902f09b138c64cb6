"""Ops about no path: segments, tokens, cache pools, erasure coding and rolling upgrades."""

from typing import ClassVar

from ha.record import record
from namenode_sim.edits import values


@record
class StartLogSegment:
    """The first op of every segment."""

    opcode: ClassVar[int] = 24


@record
class EndLogSegment:
    """The last op of a segment that was closed in order."""

    opcode: ClassVar[int] = 23


@record
class GetDelegationToken:
    """A token is issued; times are Unix milliseconds."""

    opcode: ClassVar[int] = 18
    token: values.DelegationTokenIdentifier
    expiry_time: int


@record
class RenewDelegationToken:
    """A token lives longer."""

    opcode: ClassVar[int] = 19
    token: values.DelegationTokenIdentifier
    expiry_time: int


@record
class CancelDelegationToken:
    """A token is void."""

    opcode: ClassVar[int] = 20
    token: values.DelegationTokenIdentifier


@record
class UpdateMasterKey:
    """A key for signing tokens is added."""

    opcode: ClassVar[int] = 21
    key: values.DelegationKey


@record
class AddCacheDirective:
    """A path is to be cached."""

    opcode: ClassVar[int] = 34
    directive: values.CacheDirective
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class RemoveCacheDirective:
    """A path is no longer to be cached."""

    opcode: ClassVar[int] = 35
    directive_id: int
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class ModifyCacheDirective:
    """The given fields of a cache directive change."""

    opcode: ClassVar[int] = 39
    directive: values.CacheDirective
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class AddCachePool:
    """A cache pool is created."""

    opcode: ClassVar[int] = 36
    pool: values.CachePool
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class ModifyCachePool:
    """The given fields of a cache pool change."""

    opcode: ClassVar[int] = 37
    pool: values.CachePool
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class RemoveCachePool:
    """A cache pool goes away with its directives."""

    opcode: ClassVar[int] = 38
    name: str
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class AddErasureCodingPolicy:
    """An erasure coding policy is defined."""

    opcode: ClassVar[int] = 49
    policy: values.EcPolicy
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class EnableErasureCodingPolicy:
    """An erasure coding policy may be used."""

    opcode: ClassVar[int] = 50
    name: str
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class DisableErasureCodingPolicy:
    """An erasure coding policy may no longer be used for new files."""

    opcode: ClassVar[int] = 51
    name: str
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class RemoveErasureCodingPolicy:
    """A user's erasure coding policy goes away."""

    opcode: ClassVar[int] = 52
    name: str
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class RollingUpgradeStart:
    """A rolling upgrade begins; Unix milliseconds."""

    opcode: ClassVar[int] = 41
    start_time: int


@record
class RollingUpgradeFinalize:
    """A rolling upgrade ends; Unix milliseconds."""

    opcode: ClassVar[int] = 42
    finalize_time: int
