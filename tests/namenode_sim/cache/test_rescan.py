"""Which blocks are ordered into which memories, and what of the directives is counted."""

import pytest

from hadoop.proto.hdfs_types_pb2 import CacheDirectiveStatsProto, CachePoolStatsProto
from journal.model import TxId
from namenode_sim.blocks.model import CorruptMark, Reason
from namenode_sim.datanodes.commands import Cache, Uncache
from namenode_sim.datanodes.model import AdminState
from namenode_sim.namespace.caching import Statistics
from tests.namenode_sim.cache.caching_nodes import prepared
from tests.namenode_sim.client_protocol.datanodes_in_memory import locations, written
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields


def stats(files: int, needed: int, cached: int, whole: int) -> CacheDirectiveStatsProto:
    return CacheDirectiveStatsProto(
        bytesNeeded=needed, bytesCached=cached, filesNeeded=files, filesCached=whole,
        hasExpired=False,
    )  # fmt: skip


@pytest.mark.row("B28")
@pytest.mark.parametrize("path", ["/d/a", "/d"])
@pytest.mark.parametrize("replicas", [1, 2, 3])
async def test_each_block_is_cached_on_as_many_as_the_directive_asks_for(
    path: str, replicas: int
) -> None:
    made, blocks = await prepared(20, 10)
    await made.add(path, replication=replicas)
    made.round()
    assert [len(made.holding(block_id)) for block_id in blocks] == [replicas] * 2
    made.scan()
    needed = 30 * replicas
    assert await made.stats() == [stats(1, needed, needed, 1)]
    assert not any(made.orders(node) for node in made.nodes())


@pytest.mark.row("B28")
async def test_more_than_there_are_replicas_is_cached_as_far_as_it_goes() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=4)
    made.scan()
    made.scan()
    assert [node.cache.promised for node in made.nodes()] == [20] * 3
    made.round()
    made.scan()
    assert not any(node.cache.to_cache for node in made.nodes())
    assert len(made.holding(block_id)) == 3
    assert await made.stats() == [stats(1, 80, 60, 0)]


async def test_the_largest_of_several_directives_wins_and_what_is_too_much_goes() -> None:
    made, (block_id,) = await prepared(20)
    more = await made.add("/d/a", replication=3)
    await made.add("/d", replication=1)
    made.round()
    assert len(made.holding(block_id)) == 3
    made.scan()
    assert await made.stats() == [stats(1, 60, 60, 1), stats(1, 20, 20, 1)]
    await made.served.call("removeCacheDirective", id=more)
    made.round()
    assert len(made.holding(block_id)) == 1


@pytest.mark.row("B28")
async def test_what_no_directive_needs_goes() -> None:
    made, (one, two) = await prepared(20, 10)
    number = await made.add("/d/a", replication=2)
    made.round()
    await made.served.call("removeCacheDirective", id=number)
    made.scan()
    ordered = [order for node in made.nodes() for order in made.orders(node)]
    assert ordered
    assert all(isinstance(order, Uncache) for order in ordered)
    made.now += 30
    for node in made.nodes():
        made.obey(node)
        made.report(node)
    assert made.holding(one) == made.holding(two) == []
    assert not any(node.cache.to_uncache for node in made.nodes())


async def test_orders_that_are_not_needed_any_more_are_withdrawn() -> None:
    made, _ = await prepared(20, 10)
    number = await made.add("/d/a", replication=3)
    made.scan()
    assert {node.cache.room() for node in made.nodes()} == {970}
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 1})
    made.scan()
    assert sorted(node.cache.room() for node in made.nodes()) != [970] * 3
    assert sum(node.cache.promised for node in made.nodes()) == 30
    await made.served.call("removeCacheDirective", id=number)
    made.scan()
    assert {node.cache.room() for node in made.nodes()} == {1000}
    assert not any(made.orders(node) for node in made.nodes())


async def test_an_order_is_withdrawn_where_enough_have_done_theirs() -> None:
    made, _ = await prepared(20)
    number = await made.add("/d/a", replication=3)
    made.scan()
    made.obey(made.node("d1"))
    made.report(made.node("d1"))
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 2})
    made.scan()
    assert sum(node.cache.promised for node in made.nodes()) == 20
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 1})
    made.scan()
    assert sum(node.cache.promised for node in made.nodes()) == 0


@pytest.mark.parametrize("first", [1, 3])
async def test_the_largest_wins_whichever_comes_first(first: int) -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=first)
    await made.add("/d", replication=4 - first)
    made.round()
    assert len(made.holding(block_id)) == 3


@pytest.mark.parametrize(
    ("held", "leaves", "replicas", "leaving", "asked"),
    [("123", "3", 1, 2, 0), ("1", "1", 2, 0, 1), ("12", "2", 1, 1, 0), ("12", "12", 1, 1, 0)],
)
async def test_what_goes_counts_before_another_is_asked(
    held: str, leaves: str, replicas: int, leaving: int, asked: int
) -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=replicas)
    for name in held:
        made.memory[f"d{name}"][block_id] = 20
        made.report(made.node(f"d{name}"))
    for name in leaves:
        made.node(f"d{name}").cache.ask_to_drop(block_id, TxId(0))
    made.scan()
    assert sum(len(node.cache.to_uncache) for node in made.nodes()) == leaving
    assert sum(len(node.cache.to_cache) for node in made.nodes()) == asked


async def test_one_that_is_to_go_is_taken_back_and_others_are_asked_for_the_rest() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=3)
    for name in ("d1", "d2"):
        made.memory[name][block_id] = 20
        made.report(made.node(name))
    made.node("d2").cache.ask_to_drop(block_id, TxId(0))
    made.scan()
    assert not any(node.cache.to_uncache for node in made.nodes())
    assert [len(node.cache.to_cache) for node in made.nodes()] == [0, 0, 1]


async def test_an_empty_block_needs_no_memory() -> None:
    made, _ = await prepared(0)
    made.node("d1").cache.capacity = 0
    await made.add("/d/a", replication=3)
    made.scan()
    assert not any(node.cache.to_cache for node in made.nodes())
    assert await made.stats() == [stats(1, 0, 0, 1)]


async def test_what_was_to_go_and_is_needed_again_stays() -> None:
    made, (block_id,) = await prepared(20)
    number = await made.add("/d/a", replication=3)
    made.round()
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 1})
    made.scan()
    assert sum(len(node.cache.to_uncache) for node in made.nodes()) == 2
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 2})
    made.scan()
    assert sum(len(node.cache.to_uncache) for node in made.nodes()) == 1
    made.round()
    assert len(made.holding(block_id)) == 2


@pytest.mark.parametrize("cause", ["no room", "dead", "leaving", "corrupt", "gone", "promised"])
async def test_a_datanode_that_cannot_is_not_asked(cause: str) -> None:
    made, (block_id,) = await prepared(20)
    node, cluster = made.node("d1"), made.served.cluster
    slot = cluster.blocks.map.find(block_id)
    assert slot is not None
    (storage,) = node.storages.values()
    match cause:
        case "no room":
            node.cache.capacity = 19
        case "dead":
            node.alive = False
        case "leaving":
            cluster.set_admin(node, AdminState.DECOMMISSION_INPROGRESS)
        case "corrupt":
            mark = CorruptMark(Reason.CORRUPTION_REPORTED, None)
            cluster.blocks.mark_corrupt(slot, storage.held, mark)
        case "gone":
            cluster.blocks.empty_storage(storage.held)
        case _:
            node.cache.capacity = 39
            (other,) = await written(made.served, "/d/b", 20)
            await made.add("/d/b", replication=1)
            node.cache.ask_for(other.blockId, 20, TxId(0))
    await made.add("/d/a", replication=3)
    made.scan()
    asked = [one.id.uuid for one in made.nodes() if block_id in one.cache.to_cache]
    assert asked == ["d2", "d3"]


@pytest.mark.row("B28")
async def test_a_datanode_with_just_enough_room_is_asked() -> None:
    made, (block_id,) = await prepared(20)
    made.node("d1").cache.capacity = 20
    await made.add("/d/a", replication=3)
    made.scan()
    assert block_id in made.node("d1").cache.to_cache


@pytest.mark.row("B28")
async def test_an_order_to_one_that_has_lost_its_replica_is_withdrawn() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=3)
    made.scan()
    node = made.node("d1")
    (storage,) = node.storages.values()
    made.served.cluster.blocks.empty_storage(storage.held)
    made.scan()
    assert block_id not in node.cache.to_cache
    assert node.cache.room() == 1000


async def test_those_with_more_room_are_asked_more_and_stale_ones_last() -> None:
    counts: dict[str, int] = {"d1": 0, "d2": 0, "d3": 0}
    made, (block_id,) = await prepared(20)
    number = await made.add("/d/a", replication=1)
    made.node("d1").cache.used = 950
    made.node("d3").last_heard = made.now - 31
    for _ in range(200):
        made.scan()
        (asked,) = (node for node in made.nodes() if block_id in node.cache.to_cache)
        counts[asked.id.uuid] += 1
        asked.cache.withdraw(block_id)
    assert counts["d3"] == 0
    assert 0 < counts["d1"] < 40
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 3})
    made.scan()
    assert block_id in made.node("d3").cache.to_cache


async def test_files_behind_a_pools_limit_are_needed_and_not_cached() -> None:
    made, (first,) = await prepared(60, limit=100)
    (second,) = await written(made.served, "/d/b", 50)
    await made.add("/d", replication=1)
    made.round()
    made.scan()
    assert await made.stats() == [stats(2, 110, 60, 1)]
    assert (len(made.holding(first)), made.holding(second.blockId)) == (1, [])
    answer = await made.served.call("listCachePools", prevPoolName="")
    assert answer.entries[0].stats == CachePoolStatsProto(  # type: ignore[attr-defined]
        bytesNeeded=110, bytesCached=60, bytesOverlimit=10, filesNeeded=2, filesCached=1
    )
    await made.served.call("modifyCachePool", info={"poolName": "p", "limit": 110})
    made.round()
    assert len(made.holding(second.blockId)) == 1


async def test_what_is_being_written_is_not_cached() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=1)
    made.round()
    assert made.holding(block_id)
    await made.served.call("append", src="/d/a", clientName="writer")
    made.round()
    assert made.holding(block_id) == []


EXPIRED: Fields = {"expiration": {"millis": 1000, "isRelative": True}}


@pytest.mark.row("B28")
async def test_an_expired_directive_counts_for_nothing() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=1, **EXPIRED)
    made.round()
    assert made.holding(block_id)
    made.now_ms += 60_000
    made.round()
    assert made.holding(block_id) == []


async def test_in_safe_mode_all_is_counted_and_nothing_ordered() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=1)
    made.round()
    await made.served.call("setSafeMode", action=2)
    made.scan()
    assert await made.stats() == [stats(1, 20, 20, 1)]
    made.memory["d1"][8] = 1
    made.report(made.node("d1"))
    made.scan()
    assert not any(node.cache.to_uncache | node.cache.to_cache.keys() for node in made.nodes())
    assert made.holding(block_id)


async def test_orders_wait_for_their_cause_and_are_given_again_until_a_report_shows_them() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=3)
    made.scan()
    node, last = made.node("d1"), made.served.scene("hdfs").namespace.last_applied
    assert made.orders(node, durable=last - 1) == ()
    assert made.orders(node, durable=last) == (Cache((block_id,)),)
    made.now += 29.9
    made.scan()
    assert made.orders(node) == ()
    made.now += 0.1
    assert made.orders(node) == (Cache((block_id,)),)
    node.cache.report(frozenset({block_id}))
    made.now += 30
    assert made.orders(node) == ()


async def test_a_new_order_does_not_wait_for_the_old_ones() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=3)
    made.scan()
    assert made.orders(made.node("d1"))
    (other,) = await written(made.served, "/b", 5)
    await made.add("/b", replication=3)
    made.scan()
    assert made.orders(made.node("d1")) == (Cache((block_id, other.blockId)),)


async def test_readers_see_where_a_block_is_cached() -> None:
    made, (block_id,) = await prepared(20)
    await made.add("/d/a", replication=2)
    made.round()
    (located,) = (await locations(made.served, "/d/a")).blocks
    shown = {
        place.id.datanodeUuid
        for place, cached in zip(located.locs, located.isCached, strict=True)
        if cached
    }
    assert sorted(shown) == made.holding(block_id)


async def test_a_directive_that_has_changed_is_counted_anew_and_a_sum_keeps_its_columns() -> None:
    made, _ = await prepared(20)
    number = await made.add("/d/a", replication=1)
    made.round()
    made.scan()
    assert await made.stats() == [stats(1, 20, 20, 1)]
    await made.served.call("modifyCacheDirective", info={"id": number, "replication": 2})
    assert await made.stats() == [stats(1, 40, 0, 0)]
    assert Statistics(1, 2, 3, 4) + Statistics(10, 20, 30, 40) == Statistics(11, 22, 33, 44)
