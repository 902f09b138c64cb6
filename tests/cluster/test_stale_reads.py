"""An active that is stopped and goes on again never shows the past.

See docs/reference/quorum-journal.md#read-lease.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from ha.conf.topology import HostPort
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.service.client import ServiceClient
from ha.service.model import RequestSource
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto

pytestmark = pytest.mark.cluster

DEADLINE = 20.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """JournalNodes and NameNodes without ZKFCs: the test itself decides who is active, and
    nothing fences."""
    with open_cluster(tmp_path) as cluster:
        cluster.up()
        for zkfc in ("zkfc-nn1", "zkfc-nn2"):
            cluster.kill(zkfc)
        yield cluster


def address(cluster: Cluster, name: str) -> HostPort:
    return HostPort("127.0.0.1", cluster.layout.namenodes[name].rpc)


async def client_of(cluster: Cluster, name: str) -> RpcConnection:
    where = address(cluster, name)
    return await RpcConnection.open(
        where.host, where.port, protocol=CLIENT_PROTOCOL, user=None, deadline_seconds=DEADLINE
    )


async def make(client: RpcConnection, path: str) -> None:
    request = calls.MkdirsRequestProto(
        src=path, masked=FsPermissionProto(perm=0o755), createParent=True
    )
    await client.call("mkdirs", request, calls.MkdirsResponseProto, deadline_seconds=DEADLINE)


async def there(client: RpcConnection, path: str, *, deadline_seconds: float = DEADLINE) -> bool:
    answer = await client.call(
        "getFileInfo",
        calls.GetFileInfoRequestProto(src=path),
        calls.GetFileInfoResponseProto,
        deadline_seconds=deadline_seconds,
    )
    return answer.HasField("fs")


async def make_active(cluster: Cluster, name: str) -> None:
    service = await ServiceClient.open(address(cluster, name), deadline_seconds=DEADLINE)
    await service.transition_to_active(RequestSource.ZKFC, deadline_seconds=DEADLINE)
    await service.close()


async def test_a_stopped_active_serves_no_stale_read_when_it_goes_on(cluster: Cluster) -> None:
    old = cluster.wait_for_active()
    new = "nn2" if old == "nn1" else "nn1"
    client = await client_of(cluster, old)
    readers = [await client_of(cluster, old) for _ in range(8)]
    await make(client, "/before")
    assert await there(client, "/before")
    process = cluster.process(old)
    process.freeze()
    began = asyncio.get_running_loop().time()
    # These lie in the stopped process's sockets when it goes on: it reads them before anything.
    early = [asyncio.create_task(there(reader, "/after")) for reader in readers]
    await make_active(cluster, new)
    took = asyncio.get_running_loop().time() - began
    successor = await client_of(cluster, new)
    await make(successor, "/after")
    late = [asyncio.create_task(there(reader, "/after")) for reader in readers]
    process.thaw()
    answers = await asyncio.gather(*early, *late, return_exceptions=True)
    # Nothing, or an error that sends the client elsewhere; never "there is no /after".
    for answer in answers:
        assert isinstance(answer, RpcError | RemoteFault), answer
    assert await there(successor, "/after")
    # The lease, and not the deadline of a call to the stopped process.
    assert took < 1.05 + 4.0
    for connection in (client, successor, *readers):
        await connection.close()
