"""Hadoop's own shell and file system take, read, rename and drop snapshots of ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from ha.rpc.server import RpcServer
from tests.namenode_sim.client_protocol.hadoop_shell import HadoopShell, Ran, hadoop_shell
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served, serve
from tests.namenode_sim.namespace.dump import differences

pytestmark = pytest.mark.interop

Shell = Callable[..., Any]


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopShell]:
    with hadoop_shell(tmp_path_factory.mktemp("conf"), SUPERUSER) as shell:
        yield shell


@pytest.fixture
async def served() -> AsyncIterator[tuple[Served, int]]:
    namenode = serve()
    server = RpcServer([namenode.face.protocol()])
    yield namenode, await server.start("127.0.0.1", 0)
    await server.stop()


@pytest.fixture
def shell(jvm: HadoopShell, served: tuple[Served, int]) -> Shell:
    async def run(*command: str, code: int = 0) -> Ran:
        ran = await asyncio.to_thread(jvm.run, served[1], *command)
        assert ran.code == code, f"{command}: {ran.err}"
        return ran

    return run


def listed(out: str) -> list[str]:
    return [line.split()[-1] for line in out.splitlines() if line[:1] in {"d", "-"}]


async def test_the_shell_works_with_snapshots(
    jvm: HadoopShell, served: tuple[Served, int], shell: Shell
) -> None:
    namenode, port = served
    await shell("-mkdir", "-p", "/d/e")
    await shell("-touchz", "/d/f")
    fs = await asyncio.to_thread(jvm.file_system, port)
    await asyncio.to_thread(fs.allowSnapshot, jvm.path("/d"))
    ran = await shell("-createSnapshot", "/d", "s0")
    assert ran.out.strip().endswith("Created snapshot /d/.snapshot/s0")
    await shell("-mv", "/d/f", "/g")
    await shell("-rm", "-r", "-skipTrash", "/d/e")
    await shell("-touchz", "/d/h")
    assert listed((await shell("-ls", "/d/.snapshot/s0")).out) == [
        "/d/.snapshot/s0/e",
        "/d/.snapshot/s0/f",
    ]
    assert listed((await shell("-ls", "/d")).out) == ["/d/h"]
    await shell("-test", "-e", "/d/.snapshot/s0/f")
    refused = await shell("-touchz", "/d/.snapshot/s0/new", code=1)
    assert "Modification on a read-only snapshot is disallowed" in refused.err
    await shell("-renameSnapshot", "/d", "s0", "s1")
    assert listed((await shell("-ls", "/d/.snapshot")).out) == ["/d/.snapshot/s1"]
    assert (await shell("-count", "/d/.snapshot/s1")).out.split()[:2] == ["2", "1"]
    (status,) = await asyncio.to_thread(fs.getSnapshottableDirListing)
    assert (str(status.getFullPath()), status.getSnapshotNumber()) == ("/d", 1)
    (one,) = await asyncio.to_thread(fs.getSnapshotListing, jvm.path("/d"))
    assert (str(one.getFullPath()), one.getSnapshotID()) == ("/d/.snapshot/s1", 0)
    await shell("-deleteSnapshot", "/d", "s1")
    await asyncio.to_thread(fs.disallowSnapshot, jvm.path("/d"))
    await asyncio.to_thread(fs.close)
    assert differences(namenode.namespace, namenode.log.replayed()) == []
