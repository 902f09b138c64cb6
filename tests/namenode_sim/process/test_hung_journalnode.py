"""A JournalNode that hangs, or an address that swallows everything, keeps no one waiting.

See HDFS-17223: NameNodes of Hadoop waited for half an hour.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.ports import HOST, free_ports
from ha.conf.topology import HostPort
from ha.service.client import ServiceClient
from ha.service.errors import ServiceUnreachable
from ha.service.model import RequestSource, ServiceState
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.daemon import run_namenode
from tests.namenode_sim.startup.startup_world import world, write_site
from tests.stand_in import say_nothing, stand_in
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

SECONDS = 30.0
"""A quarter of the deadline of a single step of the recovery, a half of that of an RPC probe."""


@asynccontextmanager
async def accepts_and_is_silent(_: Path) -> AsyncIterator[int]:
    async with stand_in(say_nothing) as port:
        yield port


@asynccontextmanager
async def swallows_connections(_folder: Path) -> AsyncIterator[int]:
    """Fill the backlog: the kernel drops further SYNs, as a firewall does."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex((HOST, port))
        yield port


@asynccontextmanager
async def stopped_process(folder: Path) -> AsyncIterator[int]:
    """Stop a JournalNode after its start, as by SIGSTOP or a hung hypervisor."""
    rpc, http = free_ports(2)
    site = {
        "dfs.journalnode.edits.dir": str(folder / "stopped"),
        "dfs.journalnode.rpc-address": f"{HOST}:{rpc}",
        "dfs.journalnode.http-address": f"{HOST}:{http}",
    }
    write_site(folder / "stopped-conf", site)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ha.cli.main", "journalnode",
        "--conf-dir", str(folder / "stopped-conf"),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    _, writer = await asyncio.open_connection(HOST, http)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    break
        os.kill(process.pid, signal.SIGSTOP)
        yield rpc
    finally:
        process.kill()
        await process.wait()


HUNG: dict[str, Callable[[Path], AbstractAsyncContextManager[int]]] = {
    "a process that is stopped": stopped_process,
    "an address that takes connections and says nothing": accepts_and_is_silent,
    "an address that swallows connections": swallows_connections,
}


@pytest.mark.parametrize("kind", HUNG)
async def test_start_and_takeovers_wait_for_a_majority_only(tmp_path: Path, kind: str) -> None:
    rpc, http = free_ports(2)
    keys = {
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.http-address.ns1.nn1": f"{HOST}:{http}",
    }
    async with world(tmp_path, **keys) as servers, HUNG[kind](tmp_path) as port:
        format_name_dirs([servers.name_dir], info(), Namespace.empty("hdfs"))
        writer = servers.writer(info())
        await writer.format()
        await writer.close()
        await servers.nodes.stop(1)
        addresses = list(servers.nodes.addresses)
        addresses[1] = (HOST, port)
        uri = ";".join(f"{host}:{port}" for host, port in addresses)
        conf = servers.conf(f"dfs.namenode.shared.edits.dir=qjournal://{uri}/ns1")
        stop = asyncio.Event()
        running = asyncio.create_task(run_namenode(conf, stop))
        try:
            async with asyncio.timeout(SECONDS):
                client = await a_standby(servers.place().address.service)
                for _ in range(2):
                    await client.transition_to_active(RequestSource.USER, deadline_seconds=SECONDS)
                    await client.transition_to_standby(RequestSource.USER, deadline_seconds=SECONDS)
                await client.close()
        finally:
            stop.set()
            await running


async def a_standby(address: HostPort) -> ServiceClient:
    while True:
        try:
            client = await ServiceClient.open(address, deadline_seconds=SECONDS)
        except ServiceUnreachable:
            await asyncio.sleep(0.02)
            continue
        while (await client.status(deadline_seconds=SECONDS)).state is not ServiceState.STANDBY:
            await asyncio.sleep(0.02)
        return client
