"""Calls about cache pools and directives, and a NameNode that has some."""

from typing import Any

from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.tree import cache_pools
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served, serve

INVALID = "org.apache.hadoop.fs.InvalidRequestException"
DENIED = "org.apache.hadoop.security.AccessControlException"
IO = "java.io.IOException"
LONGEST = cache_pools.LONGEST_MS
Y2100 = 4_102_444_800_000
"""2100-01-01 00:00 UTC, in milliseconds since 1970."""


async def prepared() -> Served:
    """``/d`` has ``a`` of 30 bytes and ``b`` of 10, ``/d/e/c`` has 5; one pool is bob's."""
    served = datanodes_in_memory.with_datanodes(serve())
    await datanodes_in_memory.written(served, "/d/a", 20, 10)
    await datanodes_in_memory.written(served, "/d/b", 10)
    await datanodes_in_memory.written(served, "/d/e/c", 5)
    await pool(served, "open", mode=0o777)
    await pool(served, "bobs", ownerName="bob", groupName="staff", mode=0o750)
    await pool(served, "small", limit=100, defaultReplication=2)
    await pool(served, "short", maxRelativeExpiry=1000)
    return served


async def pool(served: Served, name: str, **more: Any) -> None:  # noqa: ANN401 - as messages have them
    await served.call("addCachePool", info={"poolName": name, **more})


async def add(served: Served, path: str, name: str, **more: Any) -> int:  # noqa: ANN401
    user, flags = more.pop("user", SUPERUSER), more.pop("flags", 0)
    info = {"path": path, "pool": name, **more}
    answer = await served.call("addCacheDirective", user=user, info=info, cacheFlags=flags)
    assert isinstance(answer, calls.AddCacheDirectiveResponseProto)
    return answer.id


async def pools(served: Served, user: str = SUPERUSER, after: str = "") -> Any:  # noqa: ANN401
    return await served.call("listCachePools", user=user, prevPoolName=after)


async def directives(
    served: Served, user: str = SUPERUSER, after: int = 0, **wanted: object
) -> Any:  # noqa: ANN401
    return await served.call("listCacheDirectives", user=user, prevId=after, filter=wanted)
