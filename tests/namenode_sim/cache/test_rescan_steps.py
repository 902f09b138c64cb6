"""What changes while a scan of directives is under way."""

import pytest

from namenode_sim.cache.rescan import rescan
from tests.namenode_sim.cache.caching_nodes import prepared
from tests.namenode_sim.client_protocol.datanodes_in_memory import written


async def test_a_scan_takes_a_step_for_each_file_block_and_order() -> None:
    made, _ = await prepared(20, 10)
    await made.add("/d", replication=3)
    namespace = made.served.scene("hdfs").namespace
    assert sum(rescan(made.served.cluster, namespace, made.now_ms, made.now)) == 3 + 2 + 3 * 2
    made.round()
    assert sum(rescan(made.served.cluster, namespace, made.now_ms, made.now)) == 3 + 2 + 3 * 2


@pytest.mark.parametrize("what", ["the directive", "the pool", "the file", "a replica"])
async def test_what_goes_in_the_midst_of_a_scan_is_not_asked_for(what: str) -> None:
    for step in range(20):
        made, (block_id, _) = await prepared(20, 10)
        await made.add("/d/b", replication=3)
        await written(made.served, "/d/b", 1)
        number = await made.add("/d/a", replication=3)
        made.scan()
        namespace, cluster = made.served.scene("hdfs").namespace, made.served.cluster
        steps = rescan(cluster, namespace, made.now_ms, made.now)
        for _ in zip(range(step), steps, strict=False):
            pass
        match what:
            case "the directive":
                await made.served.call("removeCacheDirective", id=number)
            case "the pool":
                await made.served.call("removeCachePool", poolName="p")
            case "the file":
                await made.served.call("delete", src="/d/a", recursive=False)
            case _:
                (storage,) = made.node("d1").storages.values()
                cluster.blocks.empty_storage(storage.held)
        for _ in steps:
            pass
        made.scan()
        asked = {node.id.uuid for node in made.nodes() if block_id in node.cache.to_cache}
        assert asked == ({"d2", "d3"} if what == "a replica" else set()), step


async def test_what_was_opened_since_it_was_counted_goes_with_the_same_scan() -> None:
    made, _ = await prepared(20)
    await made.add("/d/a", replication=3)
    made.round()
    namespace = made.served.scene("hdfs").namespace
    steps = rescan(made.served.cluster, namespace, made.now_ms, made.now)
    assert [next(steps), next(steps)] == [1, 1]
    await made.served.call("append", src="/d/a", clientName="writer")
    for _ in steps:
        pass
    assert all(node.cache.to_uncache for node in made.nodes())
