"""Decides which DataNodes are to cache which blocks (CacheReplicationMonitor).

See docs/reference/namenode.md#centralized-cache.
"""

from collections import Counter
from collections.abc import Generator, Iterator

from ha.record import dataclass, field
from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import AdminState, Node
from namenode_sim.datanodes.topology import drawn, is_stale
from namenode_sim.edits.values import Block
from namenode_sim.namespace.caching import (
    KnownDirective,
    Statistics,
    covered,
    directives_of,
    has_expired,
    pools_of,
)
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace


@dataclass(slots=True)
class _Scan:
    """One scan under way; ``needed`` is how many DataNodes are to cache a block, by its id."""

    cluster: Cluster
    namespace: Namespace
    needed: dict[int, int] = field(default_factory=dict)
    demand: Counter[str] = field(default_factory=Counter)


def rescan(cluster: Cluster, namespace: Namespace, now_ms: int, now: float) -> Iterator[int]:
    """Count what each directive has, then order what is missing and what is too much.

    A generator that yields how many blocks a step has dealt with; others may change everything in
    between, so each block is judged as it is at its step.  ``now_ms`` is wall time, ``now``
    monotonic.  In safe mode nothing is ordered: not all replicas are known.
    """
    scan = _Scan(cluster, namespace)
    counted: dict[int, tuple[KnownDirective, Statistics]] = {}
    for number in sorted(directives_of(namespace)):
        directive = directives_of(namespace).get(number)
        if directive is None or has_expired(directive, now_ms):
            continue
        counted[number] = directive, (yield from _count(scan, directive))
    cluster.cache.counted = counted
    if cluster.safe_mode.is_on():
        return
    for block_id, replicas in tuple(scan.needed.items()):
        if not _place(scan, block_id, replicas, now):
            del scan.needed[block_id]
        yield 1
    for node in tuple(cluster.nodes.values()):
        yield from _release(scan, node)


def _count(scan: _Scan, directive: KnownDirective) -> Generator[int, None, Statistics]:
    """Note the blocks that a directive needs; return its statistics.

    From the file on with which its pool's limit is passed, files are needed and not cached.
    """
    files_needed = bytes_needed = files_cached = bytes_cached = 0
    limit = pools_of(scan.namespace)[directive.pool].limit
    for file in covered(scan.namespace, directive.path):
        wanted = file.length() * directive.replication
        files_needed, bytes_needed = files_needed + 1, bytes_needed + wanted
        scan.demand[directive.pool] += wanted
        yield 1
        if scan.demand[directive.pool] > limit:
            continue
        cached = yield from _count_file(scan, file, directive.replication)
        files_cached, bytes_cached = files_cached + (cached == wanted), bytes_cached + cached
    return Statistics(files_needed, bytes_needed, files_cached, bytes_cached)


def _count_file(scan: _Scan, file: INodeFile, replicas: int) -> Generator[int, None, int]:
    """Note the blocks of one file; return how many bytes of it are cached."""
    cached = 0
    for block in file.blocks:
        slot = _complete(scan.cluster, block.block_id)
        if slot is not None and block.num_bytes:
            scan.needed[block.block_id] = max(replicas, scan.needed.get(block.block_id, replicas))
            cached += _cached_bytes(scan.cluster, slot, block, replicas)
        yield 1
    return cached


def _cached_bytes(cluster: Cluster, slot: Slot, block: Block, replicas: int) -> int:
    count = sum(block.block_id in node.cache.cached for node in _holders(cluster, slot))
    return min(count, replicas) * block.num_bytes


def _complete(cluster: Cluster, block_id: int) -> Slot | None:
    """Return where the map has a block that is not being written."""
    slot = cluster.blocks.map.find(block_id)
    if slot is None or cluster.blocks.map.block(slot).stage is not Stage.COMPLETE:
        return None
    return slot


def _holders(cluster: Cluster, slot: Slot) -> list[Node]:
    """Return the DataNodes with a replica that is not known to be corrupt."""
    blocks = cluster.blocks.map
    return [
        cluster.place(number)[0]
        for number in blocks.storages_of(slot)
        if blocks.is_good(slot, number)
    ]


def _place(scan: _Scan, block_id: int, replicas: int, now: float) -> bool:
    """Order what a block lacks or has too much; False if it is not to be cached any more."""
    cluster, cause = scan.cluster, scan.namespace.last_applied
    slot = _complete(cluster, block_id)
    if slot is None:
        return False
    holders = _holders(cluster, slot)
    cached = [node for node in holders if block_id in node.cache.cached]
    staying = [node for node in cached if block_id not in node.cache.to_uncache]
    for node in list(drawn(staying, cluster.draw))[replicas:]:
        node.cache.ask_to_drop(block_id, cause)
    lacking = replicas - len(staying[:replicas])
    coming = [node for node in holders if block_id in node.cache.to_cache]
    for node in coming[lacking:]:
        node.cache.withdraw(block_id)
    lacking -= len(coming[:lacking])
    taken_back = [node for node in cached if block_id in node.cache.to_uncache][:lacking]
    for node in taken_back:
        node.cache.to_uncache.discard(block_id)
    lacking -= len(taken_back)
    length = cluster.blocks.map.block(slot).length
    for node in _with_room(cluster, holders, block_id, length, now)[:lacking]:
        node.cache.ask_for(block_id, length, cause)
    return True


def _with_room(
    cluster: Cluster, holders: list[Node], block_id: int, length: int, now: float
) -> list[Node]:
    """Return the DataNodes that can cache a block as well, in the order to ask them.

    The more room one has, the likelier it comes first; stale ones come last.
    """
    able = [
        node
        for node in holders
        if node.alive
        and node.admin is AdminState.NORMAL
        and block_id not in node.cache.cached
        and block_id not in node.cache.to_cache
        and node.cache.room() >= length
    ]

    def key(node: Node) -> tuple[bool, float]:
        stale = is_stale(node, now, cluster.stale_seconds)
        return stale, -(cluster.draw.random() ** (node.cache.capacity / node.cache.room()))

    return sorted(able, key=key)


def _release(scan: _Scan, node: Node) -> Iterator[int]:
    """Order what no directive needs to be uncached; withdraw orders that make no sense any more."""
    cache = node.cache
    for block_id in cache.cached:
        if block_id not in scan.needed:
            cache.ask_to_drop(block_id, scan.namespace.last_applied)
        yield 1
    for block_id in tuple(cache.to_cache):
        slot = _complete(scan.cluster, block_id)
        if block_id not in scan.needed or slot is None or node not in _holders(scan.cluster, slot):
            cache.withdraw(block_id)
        yield 1
