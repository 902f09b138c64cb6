"""When directives are looked through, and a DataNode whose memory two NameNodes hear of."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.datanode_protocol.cache_watch import CacheRules
from namenode_sim.datanode_protocol.messages import MAX_CACHED
from namenode_sim.datanodes.commands import Cache, Uncache
from namenode_sim.datanodes.errors import NotRegistered
from namenode_sim.edits import ops
from namenode_sim.edits.values import NO_RPC_IDS, CacheDirective, CachePool
from namenode_sim.term.role import Role
from tests.datanode import name_nodes
from tests.datanode.block_client import write_whole
from tests.datanode.stores import block
from tests.namenode_sim.datanode_protocol.scripted import FIRST, DataNode, with_blocks
from tests.namenode_sim.datanode_protocol.served import (
    RULES,
    Clock,
    NameNode,
    calls,
    data_node,
    given,
    in_memory,
    seen,
)
from tests.namenode_sim.datanode_protocol.test_face import identity

NEVER = 1 << 60
POOL = ops.AddCachePool(CachePool("p", "hdfs", "hdfs", 0o777, 1 << 40, 1 << 60, 1), NO_RPC_IDS)


def directive(number: int, path: str = "/f0") -> ops.AddCacheDirective:
    return ops.AddCacheDirective(CacheDirective(number, path, 1, "p", NEVER), NO_RPC_IDS)


async def caching(clock: Clock) -> tuple[NameNode, DataNode]:
    """Return an active NameNode, and a DataNode with two blocks and room in memory."""
    made, datanode = await with_blocks(2, clock=clock)
    datanode.cache_capacity = 1000
    datanode.heartbeat()
    made.apply(POOL)
    return made, datanode


async def test_a_new_directive_is_looked_through_at_once_and_others_by_the_clock() -> None:
    clock = Clock()
    made, datanode = await caching(clock)
    watch = made.keeper.cache_watch
    made.apply(directive(1))
    await watch.look()
    assert datanode.heartbeat().commands == (Cache((FIRST,)),)
    made.apply(ops.RenameOld("/f0", "/gone", 5))
    clock.now += 29.9
    await watch.look()
    assert datanode.node.cache.to_cache
    clock.now += 0.2
    await watch.look()
    assert not datanode.node.cache.to_cache


async def test_a_cache_report_with_news_is_followed_by_a_scan() -> None:
    made, datanode = await caching(Clock())
    made.keeper.intake.cached(datanode.id, frozenset())
    await made.keeper.cache_watch.look()
    made.keeper.intake.cached(datanode.id, frozenset({FIRST}))
    await made.keeper.cache_watch.look()
    assert datanode.heartbeat().commands == (Uncache((FIRST,)),)
    made.keeper.intake.cached(datanode.id, frozenset())
    assert not datanode.node.cache.to_uncache


@pytest.mark.row("B28")
async def test_only_an_active_looks_and_a_new_one_begins_with_what_was_reported() -> None:
    made, datanode = await caching(Clock())
    made.apply(directive(1))
    made.keeper.intake.cached(datanode.id, frozenset({FIRST}))
    await made.keeper.cache_watch.look()
    assert made.cluster.cache.counted[1][1].bytes_cached == 10
    made.become(Role.STANDBY)
    assert made.cluster.cache.counted == {}
    made.apply(directive(2, "/f1"))
    await made.keeper.cache_watch.look()
    assert datanode.heartbeat().commands == ()
    made.become_active()
    await made.keeper.cache_watch.look()
    assert made.cluster.cache.counted[1][1].bytes_cached == 10
    assert datanode.heartbeat().commands == (Cache((FIRST + 1,)),)


async def test_a_change_of_the_role_ends_a_scan_and_its_orders() -> None:
    made, datanode = await caching(Clock())
    for number in range(1, 2500):
        made.apply(directive(number, "/f0"))
    looking = asyncio.create_task(made.keeper.cache_watch.look())
    await asyncio.sleep(0)
    made.become(Role.STANDBY)
    await looking
    assert made.cluster.cache.counted == {}
    assert not datanode.node.cache.to_cache


@pytest.mark.row("B28")
async def test_nothing_is_looked_through_where_caching_is_off() -> None:
    made = in_memory(rules=replace(RULES, cache=CacheRules(enabled=False)))
    await made.keeper.cache_watch.run()


async def test_what_registers_anew_or_dies_has_nothing_cached() -> None:
    clock = Clock()
    made, datanode = await caching(clock)
    made.keeper.intake.cached(datanode.id, frozenset({FIRST}))
    datanode.register()
    assert not datanode.node.cache.cached
    made.keeper.intake.cached(datanode.id, frozenset({FIRST}))
    while datanode.node.alive:
        assert datanode.node.cache.cached
        clock.now += 5
        made.keeper.look()
    assert not datanode.node.cache.cached
    with pytest.raises(NotRegistered):
        made.keeper.intake.cached(datanode.id, frozenset({FIRST}))


async def test_a_cache_report_without_end_is_refused(active: NameNode) -> None:
    async with calls(active) as namenode:
        await namenode.register(identity())
        await namenode.cache_report(identity(), [block().block_id])
        with pytest.raises(RemoteFault, match="at most"):
            await namenode.cache_report(identity(), [block().block_id] * (MAX_CACHED + 1))


async def test_a_datanode_stays_cached_through_a_failover(
    active: NameNode, standby: NameNode, tmp_path: Path
) -> None:
    for one in (active, standby):
        one.apply(*given(block().block_id, 1001, 10, "/f"))

    def cached(by: NameNode) -> bool:
        nodes = by.cluster.nodes.values()
        return any(node.cache.cached == {block().block_id} for node in nodes)

    def counted(by: NameNode) -> bool:
        found = by.cluster.cache.counted.get(1)
        return found is not None and found[1].files_cached == 1

    async with data_node(tmp_path, active, standby, locked_memory=1 << 16) as node:
        await write_whole([name_nodes.place(node)], block(), bytes(10))
        # A scan before the replica is known would order nothing, and the next is 30 s later.
        await seen(lambda: active.holders(block().block_id))
        for one in (active, standby):
            one.apply(POOL, directive(1, "/f"))
        await seen(lambda: cached(active), lambda: cached(standby), lambda: counted(active))
        active.become(Role.STANDBY)
        standby.apply(ops.SetGenstampV2(1002))
        standby.become_active()
        await seen(lambda: counted(standby))
        assert cached(standby)
        (known,) = standby.cluster.nodes.values()
        assert known.cache.used > 0
        standby.apply(ops.RemoveCacheDirective(1, NO_RPC_IDS))
        await seen(lambda: known.cache.cached == frozenset())
