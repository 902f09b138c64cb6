"""What /metrics says of the cache, of quotas, and of DataNodes that leave."""

from prometheus_client import REGISTRY

from namenode_sim.datanode_protocol.metrics import measure, measure_limits
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import AdminState
from tests.namenode_sim.cache.caching_nodes import Caching, prepared
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.datanodes.few_nodes import Few


def metric(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def looked_at(served: Served) -> None:
    measure_limits(served.cluster, served.namespace)
    measure(served.cluster, LivenessRules(), 0.0)


def cache_of(made: Caching) -> list[float | None]:
    looked_at(made.served)
    return [
        *(metric("nnha_cache_directives_bytes", what=what) for what in ("needed", "cached")),
        metric("nnha_cache_pools_over_limit"),
        *(metric("nnha_datanodes_cache_bytes", what=what) for what in ("capacity", "used")),
    ]


async def test_the_cache_is_shown_by_what_is_needed_and_what_is_there() -> None:
    made, _ = await prepared(100, 50, limit=1000)
    assert cache_of(made) == [0, 0, 0, 3000, 0]
    await made.add("/d/a", replication=2)
    made.scan()
    assert cache_of(made) == [300, 0, 0, 3000, 0]
    made.round()
    made.round()
    assert cache_of(made) == [300, 300, 0, 3000, 300]
    await made.served.call("modifyCachePool", info={"poolName": "p", "limit": 299})
    assert cache_of(made)[2] == 1
    await made.served.call("modifyCachePool", info={"poolName": "p", "limit": 300})
    assert cache_of(made)[2] == 0
    made.nodes()[0].alive = False
    assert cache_of(made)[3] == 2000
    await made.served.call("removeCachePool", poolName="p")
    assert cache_of(made)[2] == 0


async def test_directories_over_their_quota_are_counted() -> None:
    served = serve()
    for path in ("/names", "/space", "/good"):
        await served.mkdirs(path)
        await served.call("setQuota", path=path, namespaceQuota=4, storagespaceQuota=1000)
        await served.mkdirs(f"{path}/a")
        await served.mkdirs(f"{path}/b")
    looked_at(served)
    assert metric("nnha_directories_over_quota") == 0
    await served.call("setQuota", path="/names", namespaceQuota=2, storagespaceQuota=1000)
    looked_at(served)
    assert metric("nnha_directories_over_quota") == 1
    await served.call("setQuota", path="/names", namespaceQuota=3, storagespaceQuota=1000)
    looked_at(served)
    assert metric("nnha_directories_over_quota") == 0
    await served.call("delete", src="/names", recursive=True)
    looked_at(served)
    assert metric("nnha_directories_over_quota") == 0


def test_datanodes_are_counted_by_service_and_what_is_left_to_do() -> None:
    few = Few(["a", "b", "c"])
    few.nodes["a"].admin, few.nodes["a"].blocks_left = AdminState.DECOMMISSION_INPROGRESS, 7
    few.nodes["b"].admin, few.nodes["b"].blocks_left = AdminState.ENTERING_MAINTENANCE, 2
    few.nodes["b"].alive = False
    measure(few.cluster, LivenessRules(), few.now)
    shown = {
        state.name: metric("nnha_datanodes_service", service=state.name.lower())
        for state in AdminState
    }
    assert {name for name, count in shown.items() if count == 1} == {
        "NORMAL", "DECOMMISSION_INPROGRESS", "ENTERING_MAINTENANCE"
    }  # fmt: skip
    assert metric("nnha_leaving_blocks_left") == 9
