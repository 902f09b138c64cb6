"""Pools of the centralized cache: whom they belong to, and how much may be cached in them.

See docs/reference/namenode.md#centralized-cache.
"""

from collections import defaultdict
from typing import Final

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import CachePoolEntryProto, CachePoolInfoProto, CachePoolStatsProto
from namenode_sim.client_protocol.words.errors import denied, invalid_request, io_error
from namenode_sim.client_protocol.words.model import Caller, EditPlan, Scene
from namenode_sim.client_protocol.words.new_inodes import MODE_BITS
from namenode_sim.client_protocol.words.permissions import READ, WRITE, check_superuser
from namenode_sim.edits import ops
from namenode_sim.edits.values import CachePool
from namenode_sim.namespace.caching import (
    KnownDirective,
    KnownPool,
    Statistics,
    covered,
    directives_of,
    has_expired,
    pools_of,
)

UNLIMITED: Final = 2**63 - 1
LONGEST_MS: Final = UNLIMITED // 4
"""The greatest relative expiry (CacheDirectiveInfo.Expiration.MAX_RELATIVE_EXPIRY_MS)."""

LISTED: Final = 100
"""dfs.namenode.list.cache.pools.num.responses, and that of directives."""

_DEFAULT_MODE = 0o755


def may(caller: Caller, pool: KnownPool, access: int) -> bool:
    """Return whether a pool's mode gives the caller all these bits (FSPermissionChecker)."""
    if caller.exempt:
        return True
    if caller.user == pool.owner:
        bits = pool.mode >> 6
    else:
        bits = pool.mode >> 3 if pool.group in caller.groups else pool.mode
    return bits & access == access


def writable(scene: Scene, name: str) -> KnownPool:
    """Return the pool of a directive that the caller changes; raise FsError."""
    if not name:
        raise invalid_request("Invalid empty pool name.")
    pool = pools_of(scene.namespace).get(name)
    if pool is None:
        raise invalid_request(f"Unknown pool {name}")
    if not may(scene.caller, pool, WRITE):
        raise denied(
            f"Permission denied while accessing pool {name}: user {scene.caller.user} does not "
            "have WRITE permissions."
        )
    return pool


def statistics_of(scene: Scene, directive: KnownDirective) -> Statistics:
    """Return what the last scan has counted of a directive; of a new one what it needs."""
    if has_expired(directive, scene.now_ms):
        return Statistics()
    counted = scene.cluster.cache.of(directive)
    return counted or need_of(scene, directive.path, directive.replication)


def need_of(scene: Scene, path: str, replication: int) -> Statistics:
    """Return the files at a path, and their bytes with that number of replicas."""
    lengths = [one.length() for one in covered(scene.namespace, path)]
    return Statistics(len(lengths), sum(lengths) * replication)


def statistics_of_pools(scene: Scene) -> defaultdict[str, Statistics]:
    """Return the sums over the directives of each pool."""
    sums: defaultdict[str, Statistics] = defaultdict(Statistics)
    for directive in directives_of(scene.namespace).values():
        sums[directive.pool] += statistics_of(scene, directive)
    return sums


def add(scene: Scene, request: calls.AddCachePoolRequestProto) -> EditPlan:
    """Create a pool, by the superuser; its owner is the caller unless another is named."""
    check_superuser(scene.caller)
    given = _parse_pool(request.info)
    if given.name in pools_of(scene.namespace):
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
    given = _parse_pool(request.info)
    if given.name not in pools_of(scene.namespace):
        raise invalid_request(f"Cache pool {given.name} does not exist.")
    op = ops.ModifyCachePool(given, scene.caller.rpc)
    return EditPlan((op,), calls.ModifyCachePoolResponseProto)


def remove(scene: Scene, request: calls.RemoveCachePoolRequestProto) -> EditPlan:
    """Remove a pool and its directives."""
    check_superuser(scene.caller)
    _check_name(request.poolName)
    if request.poolName not in pools_of(scene.namespace):
        raise invalid_request(f"Cannot remove non-existent cache pool {request.poolName}")
    op = ops.RemoveCachePool(request.poolName, scene.caller.rpc)
    return EditPlan((op,), calls.RemoveCachePoolResponseProto)


def listed(
    scene: Scene, request: calls.ListCachePoolsRequestProto
) -> calls.ListCachePoolsResponseProto:
    """Return pools by name; of those that the caller may not read, nothing but the name."""
    pools = pools_of(scene.namespace)
    names = sorted(name for name in pools if name > request.prevPoolName)
    sums = statistics_of_pools(scene)
    entries = [_entry(scene, pools[name], sums[name]) for name in names[:LISTED]]
    return calls.ListCachePoolsResponseProto(entries=entries, hasMore=len(names) > LISTED)


def _entry(scene: Scene, pool: KnownPool, counted: Statistics) -> CachePoolEntryProto:
    readable = may(scene.caller, pool, READ)
    shown = counted if readable else Statistics()
    stats = CachePoolStatsProto(
        bytesNeeded=shown.bytes_needed,
        bytesCached=shown.bytes_cached,
        bytesOverlimit=max(0, shown.bytes_needed - pool.limit),
        filesNeeded=shown.files_needed,
        filesCached=shown.files_cached,
    )
    if not readable:
        return CachePoolEntryProto(info=CachePoolInfoProto(poolName=pool.name), stats=stats)
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


def _parse_pool(info: CachePoolInfoProto) -> CachePool:
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


def check_limit(scene: Scene, pool: KnownPool, path: str, replication: int) -> None:
    """Refuse a directive that would want more than is left of its pool's limit."""
    if pool.limit == UNLIMITED:
        return  # without a look at what is needed
    need = need_of(scene, path, replication).bytes_needed
    left = pool.limit - statistics_of_pools(scene)[pool.name].bytes_needed
    if need > left:
        raise invalid_request(
            f"Caching path {path} of size {need // replication} bytes at replication {replication} "
            f"would exceed pool {pool.name}'s remaining capacity of {left} bytes."
        )
