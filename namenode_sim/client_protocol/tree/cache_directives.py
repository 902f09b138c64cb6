"""Directives of the centralized cache: which paths are to be in the memory of DataNodes.

See docs/reference/namenode.md#centralized-cache.
"""

from datetime import UTC, datetime
from typing import Final

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import (
    CacheDirectiveEntryProto,
    CacheDirectiveInfoExpirationProto,
    CacheDirectiveInfoProto,
    CacheDirectiveStatsProto,
)
from namenode_sim.client_protocol.tree import cache_pools
from namenode_sim.client_protocol.words.errors import invalid_request
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import is_valid_name
from namenode_sim.client_protocol.words.permissions import READ
from namenode_sim.edits import ops
from namenode_sim.edits.values import CacheDirective
from namenode_sim.namespace.caching import (
    KnownDirective,
    KnownPool,
    directives_of,
    has_expired,
    pools_of,
)
from namenode_sim.namespace.retry_cache import DirectiveAdded

_FORCE: Final = 1
"""CacheFlag.FORCE: the pool's limit does not count."""


def add(scene: Scene, request: calls.AddCacheDirectiveRequestProto) -> EditPlan:
    """Have a path cached, which need not be there yet; the answer is the directive's id."""
    info = request.info
    if not info.HasField("pool"):
        raise invalid_request("No pool specified.")
    pool = cache_pools.writable(scene, info.pool)
    if not info.HasField("path"):
        raise invalid_request("No path specified.")
    replication = info.replication if info.HasField("replication") else pool.default_replication
    path, replication = _checked_path(info.path), _checked_replication(replication)
    number = scene.namespace.cache.next_directive_id
    expiration = _expiration(scene, info, pool)
    if not request.cacheFlags & _FORCE:
        cache_pools.check_limit(scene, pool, path, replication)
    directive = CacheDirective(number, path, replication, pool.name, expiration)
    return EditPlan(
        (ops.AddCacheDirective(directive, scene.caller.rpc),),
        lambda: calls.AddCacheDirectiveResponseProto(id=number),
    )


def added_before(
    scene: Scene, _: calls.AddCacheDirectiveRequestProto
) -> calls.AddCacheDirectiveResponseProto:
    """Return the answer to a directive that was added already, for a client that missed it."""
    answer = scene.namespace.retry_cache.find(scene.caller.rpc)
    assert isinstance(answer, DirectiveAdded)
    return calls.AddCacheDirectiveResponseProto(id=answer.id)


def modify(scene: Scene, request: calls.ModifyCacheDirectiveRequestProto) -> EditPlan:
    """Change what is given of a directive; another pool must let the caller write, too."""
    info = request.info
    if not info.HasField("id"):
        raise invalid_request("Must supply an ID.")
    old = _by_id(scene, info.id)
    source = cache_pools.writable(scene, old.pool)
    path = _checked_path(info.path) if info.HasField("path") else None
    replication = None
    if info.HasField("replication"):
        replication = _checked_replication(info.replication)
    pool = cache_pools.writable(scene, info.pool) if info.HasField("pool") else source
    if pool is not source and not request.cacheFlags & _FORCE:
        cache_pools.check_limit(scene, pool, path or old.path, replication or old.replication)
    expiration = None
    if info.HasField("expiration"):
        expiration = _expiration(scene, info, pool)
    else:
        _check_expiry(old.expiration - scene.now_ms, _iso(old.expiration), pool)
    change = CacheDirective(
        old.id, path, replication, pool.name if info.HasField("pool") else None, expiration
    )
    op = ops.ModifyCacheDirective(change, scene.caller.rpc)
    return EditPlan((op,), calls.ModifyCacheDirectiveResponseProto)


def remove(scene: Scene, request: calls.RemoveCacheDirectiveRequestProto) -> EditPlan:
    directive = _by_id(scene, request.id)
    cache_pools.writable(scene, directive.pool)
    op = ops.RemoveCacheDirective(directive.id, scene.caller.rpc)
    return EditPlan((op,), calls.RemoveCacheDirectiveResponseProto)


def listed(
    scene: Scene, request: calls.ListCacheDirectivesRequestProto
) -> calls.ListCacheDirectivesResponseProto:
    """Return the directives behind an id that fit the filter and whose pool may be read."""
    wanted, known = request.filter, directives_of(scene.namespace)
    if wanted.HasField("path"):
        _checked_path(wanted.path)
    if wanted.HasField("replication"):
        raise invalid_request("Filtering by replication is unsupported.")
    numbers = sorted(number for number in known if number > request.prevId)
    if wanted.HasField("id"):
        if wanted.id not in known:
            raise invalid_request(f"Did not find requested id {wanted.id}")
        numbers = [wanted.id]
    fitting = [
        directive
        for directive in map(known.__getitem__, numbers)
        if (not wanted.HasField("pool") or directive.pool == wanted.pool)
        and (not wanted.HasField("path") or directive.path == wanted.path)
        and cache_pools.may(scene.caller, pools_of(scene.namespace)[directive.pool], READ)
    ]
    elements = [_entry(scene, directive) for directive in fitting[: cache_pools.LISTED]]
    return calls.ListCacheDirectivesResponseProto(
        elements=elements, hasMore=len(fitting) > cache_pools.LISTED
    )


def _entry(scene: Scene, directive: KnownDirective) -> CacheDirectiveEntryProto:
    counted = cache_pools.statistics_of(scene, directive)
    return CacheDirectiveEntryProto(
        info=CacheDirectiveInfoProto(
            id=directive.id,
            path=directive.path,
            replication=directive.replication,
            pool=directive.pool,
            expiration=CacheDirectiveInfoExpirationProto(
                millis=directive.expiration, isRelative=False
            ),
        ),
        stats=CacheDirectiveStatsProto(
            bytesNeeded=counted.bytes_needed,
            bytesCached=counted.bytes_cached,
            filesNeeded=counted.files_needed,
            filesCached=counted.files_cached,
            hasExpired=has_expired(directive, scene.now_ms),
        ),
    )


def _by_id(scene: Scene, number: int) -> KnownDirective:
    if number <= 0:
        raise invalid_request("Invalid negative ID.")
    directive = directives_of(scene.namespace).get(number)
    if directive is None:
        raise invalid_request(f"No directive with ID {number} found.")
    return directive


def _checked_path(path: str) -> str:
    if not is_valid_name(path):
        raise invalid_request(f"Invalid path '{path}'.")
    return path


def _checked_replication(replication: int) -> int:
    """Return a replication as Java's short; raise FsError unless it is positive."""
    short = (replication + 0x8000) % 0x10000 - 0x8000
    if short <= 0:
        raise invalid_request(f"Invalid replication factor {short} <= 0")
    return short


def _expiration(scene: Scene, info: CacheDirectiveInfoProto, pool: KnownPool) -> int:
    """Return when a directive ends, in milliseconds since 1970; raise FsError."""
    if not info.HasField("expiration"):
        return scene.now_ms + pool.max_relative_expiry
    asked = info.expiration
    if asked.millis < 0:
        raise invalid_request(f"Cannot set a negative expiration: {asked.millis}")
    if asked.isRelative:
        _check_expiry(asked.millis, _duration(asked.millis), pool)
        return scene.now_ms + asked.millis
    _check_expiry(asked.millis - scene.now_ms, _iso(asked.millis), pool)
    return asked.millis


def _check_expiry(relative_ms: int, shown: str, pool: KnownPool) -> None:
    if relative_ms > cache_pools.LONGEST_MS:
        raise invalid_request(f"Expiration {shown} is too far in the future!")
    if relative_ms > pool.max_relative_expiry:
        raise invalid_request(
            f"Expiration {shown} exceeds the max relative expiration time of "
            f"{pool.max_relative_expiry} ms."
        )


def _duration(millis: int) -> str:
    """Return a time span as Hadoop writes it (DFSUtil.durationToString)."""
    seconds, millis = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days:03}:{hours:02}:{minutes:02}:{seconds:02}.{millis:03}"


def _iso(millis: int) -> str:
    """Return a time as Hadoop writes it (DFSUtil.dateToIso8601String), of this host's zone UTC."""
    try:
        return f"{datetime.fromtimestamp(millis // 1000, UTC):%Y-%m-%dT%H:%M:%S}+0000"
    except (OverflowError, ValueError):
        return f"{millis} ms"
