"""Which DataNode takes in a new file, of several on the caller's host."""

import asyncio
from dataclasses import replace

from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import serve
from tests.namenode_sim.webhdfs.web_client import web_client


async def test_a_datanode_that_was_just_heard_of_is_asked_before_a_silent_one() -> None:
    served = serve()
    datanodes_in_memory.with_datanodes(served)
    nodes = list(served.cluster.nodes.values())
    for node in nodes:
        node.id = replace(node.id, ip="127.0.0.1")
    async with asyncio.timeout(60), web_client(served) as client:
        for node in nodes:
            node.last_heard += 1 + max(one.last_heard for one in nodes)
            created = await client.ask("PUT", "/n", "CREATE")
            host = created.headers["Location"].split("/")[2].rpartition(":")[0]
            assert host == node.id.host
