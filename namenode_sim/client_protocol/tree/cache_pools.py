"""Pools of the centralized cache: whom they belong to, and how much may be cached in them.

See docs/reference/namenode.md#centralized-cache.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol, cast

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import CachePoolEntryProto, CachePoolInfoProto, CachePoolStatsProto
from namenode_sim.client_protocol.words.errors import FsError, denied, invalid_request, io_error
from namenode_sim.client_protocol.words.model import Caller, EditPlan, Scene
from namenode_sim.client_protocol.words.new_inodes import MODE_BITS
from namenode_sim.client_protocol.words.permissions import ACTIONS, READ, check_superuser
from namenode_sim.edits import ops
from namenode_sim.edits.values import CachePool
from namenode_sim.namespace import inode

UNLIMITED: Final = 2**63 - 1
LONGEST_MS: Final = UNLIMITED // 4
"""The greatest relative expiry (CacheDirectiveInfo.Expiration.MAX_RELATIVE_EXPIRY_MS)."""

LISTED: Final = 100
"""dfs.namenode.list.cache.pools.num.responses, and that of directives."""

_DEFAULT_MODE = 0o755


class KnownPool(Protocol):
    """A pool of the namespace, all of whose fields are set."""

    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def mode(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def max_relative_expiry(self) -> int: ...
    @property
    def default_replication(self) -> int: ...


class KnownDirective(Protocol):
    """A directive of the namespace, all of whose fields are set."""

    @property
    def id(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def replication(self) -> int: ...
    @property
    def pool(self) -> str: ...
    @property
    def expiration(self) -> int: ...


def pools_of(scene: Scene) -> Mapping[str, KnownPool]:
    return cast("Mapping[str, KnownPool]", scene.namespace.cache.pools)


def directives_of(scene: Scene) -> Mapping[int, KnownDirective]:
    return cast("Mapping[int, KnownDirective]", scene.namespace.cache.directives)


def may(caller: Caller, pool: KnownPool, access: int) -> bool:
    """Return whether a pool's mode gives the caller all these bits (FSPermissionChecker)."""
    if caller.exempt:
        return True
    if caller.user == pool.owner:
        bits = pool.mode >> 6
    else:
        bits = pool.mode >> 3 if pool.group in caller.groups else pool.mode
    return bits & access == access


def check_access(caller: Caller, pool: KnownPool, access: int) -> None:
    if not may(caller, pool, access):
        raise denied(
            f"Permission denied while accessing pool {pool.name}: user {caller.user} does not have "
            f"{ACTIONS[access]} permissions."
        )


def found(scene: Scene, name: str) -> KnownPool:
    """Return the pool of a directive; raise FsError."""
    if not name:
        raise invalid_request("Invalid empty pool name.")
    pool = pools_of(scene).get(name)
    if pool is None:
        raise invalid_request(f"Unknown pool {name}")
    return pool


def need_of(scene: Scene, path: str) -> tuple[int, int]:
    """Return how many files a directive covers, and their bytes: one, or those in a directory."""
    node = scene.namespace.tree.find(path)
    nodes: Iterable[inode.INode | None] = (node,)
    if isinstance(node, inode.INodeDirectory):
        nodes = node.children.values()
    lengths = [one.length() for one in nodes if isinstance(one, inode.INodeFile)]
    return len(lengths), sum(lengths)


def has_expired(directive: KnownDirective, now_ms: int) -> bool:
    return directive.expiration < now_ms


def needed_in(scene: Scene, name: str) -> tuple[int, int]:
    """Return files and bytes, with their replicas, that a pool's directives want cached."""
    files = size = 0
    for directive in directives_of(scene).values():
        if directive.pool == name and not has_expired(directive, scene.now_ms):
            covered, length = need_of(scene, directive.path)
            files, size = files + covered, size + length * directive.replication
    return files, size


def add(scene: Scene, request: calls.AddCachePoolRequestProto) -> EditPlan:
    """Create a pool, by the superuser; its owner is the caller unless another is named."""
    check_superuser(scene.caller)
    given = _checked(request.info)
    if given.name in pools_of(scene):
        raise invalid_request(f"Cache pool {given.name} already exists.")
    caller = scene.caller
    pool = CachePool(
        name=given.name,
        owner=caller.user if given.owner is None else given.owner,
        group=min(caller.groups, default=caller.user) if given.group is None else given.group,
        mode=_DEFAULT_MODE if given.mode is None else given.mode,
        limit=UNLIMITED if given.limit is None else given.limit,
        max_relative_expiry=(
            LONGEST_MS if given.max_relative_expiry is None else given.max_relative_expiry
        ),
        default_replication=1 if given.default_replication is None else given.default_replication,
    )
    return EditPlan((ops.AddCachePool(pool, caller.rpc),), calls.AddCachePoolResponseProto)


def modify(scene: Scene, request: calls.ModifyCachePoolRequestProto) -> EditPlan:
    check_superuser(scene.caller)
    given = _checked(request.info)
    if given.name not in pools_of(scene):
        raise invalid_request(f"Cache pool {given.name} does not exist.")
    op = ops.ModifyCachePool(given, scene.caller.rpc)
    return EditPlan((op,), calls.ModifyCachePoolResponseProto)


def remove(scene: Scene, request: calls.RemoveCachePoolRequestProto) -> EditPlan:
    """Remove a pool and its directives."""
    check_superuser(scene.caller)
    _check_name(request.poolName)
    if request.poolName not in pools_of(scene):
        raise invalid_request(f"Cannot remove non-existent cache pool {request.poolName}")
    op = ops.RemoveCachePool(request.poolName, scene.caller.rpc)
    return EditPlan((op,), calls.RemoveCachePoolResponseProto)


def listed(
    scene: Scene, request: calls.ListCachePoolsRequestProto
) -> calls.ListCachePoolsResponseProto:
    """Return pools by name; of those that the caller may not read, nothing but the name."""
    pools = pools_of(scene)
    names = sorted(name for name in pools if name > request.prevPoolName)
    entries = [_entry(scene, pools[name]) for name in names[:LISTED]]
    return calls.ListCachePoolsResponseProto(entries=entries, hasMore=len(names) > LISTED)


def _entry(scene: Scene, pool: KnownPool) -> CachePoolEntryProto:
    stats = CachePoolStatsProto(
        bytesNeeded=0, bytesCached=0, bytesOverlimit=0, filesNeeded=0, filesCached=0
    )
    if not may(scene.caller, pool, READ):
        return CachePoolEntryProto(info=CachePoolInfoProto(poolName=pool.name), stats=stats)
    stats.filesNeeded, stats.bytesNeeded = needed_in(scene, pool.name)
    stats.bytesOverlimit = max(0, stats.bytesNeeded - pool.limit)
    info = CachePoolInfoProto(
        poolName=pool.name,
        ownerName=pool.owner,
        groupName=pool.group,
        mode=pool.mode,
        limit=pool.limit,
        maxRelativeExpiry=pool.max_relative_expiry,
        defaultReplication=pool.default_replication,
    )
    return CachePoolEntryProto(info=info, stats=stats)


def _checked(info: CachePoolInfoProto) -> CachePool:
    """Return what a caller gives of a pool; raise FsError (CachePoolInfo.validate)."""
    if info.limit < 0:
        raise invalid_request("Limit is negative.")
    if info.maxRelativeExpiry < 0:
        raise invalid_request("Max relative expiry is negative.")
    if info.maxRelativeExpiry > LONGEST_MS:
        raise invalid_request("Max relative expiry is too big.")
    _check_name(info.poolName)

    def given(name: str) -> bool:
        return info.HasField(name)  # type: ignore[arg-type]

    return CachePool(
        name=info.poolName,
        owner=info.ownerName if given("ownerName") else None,
        group=info.groupName if given("groupName") else None,
        mode=info.mode & MODE_BITS if given("mode") else None,
        limit=info.limit if given("limit") else None,
        max_relative_expiry=info.maxRelativeExpiry if given("maxRelativeExpiry") else None,
        default_replication=info.defaultReplication if given("defaultReplication") else None,
    )


def _check_name(name: str) -> None:
    if not name:
        raise io_error("invalid empty cache pool name")


def over_limit(scene: Scene, pool: KnownPool, path: str, replication: int) -> FsError | None:
    """Return the refusal of a directive that would want more than is left of its pool's limit."""
    if pool.limit == UNLIMITED:
        return None  # without a look at what is needed
    _, size = need_of(scene, path)
    left = pool.limit - needed_in(scene, pool.name)[1]
    if size * replication <= left:
        return None
    return invalid_request(
        f"Caching path {path} of size {size} bytes at replication {replication} would exceed pool "
        f"{pool.name}'s remaining capacity of {left} bytes."
    )
