"""A controller that is started while no ZooKeeper answers waits for one, and says so."""

import asyncio
import json
import signal
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ha.service.model import ServiceState
from tests.ha.zkfc.site import Site
from tests.ha.zkfc.test_zookeeper_away import Server, server
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port, until

__all__ = ["server"]

DEADLINE_SECONDS = 60.0
pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(180)]


@asynccontextmanager
async def started(site: Site) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await site.begin()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())


async def page(site: Site, path: str) -> str:
    while True:
        try:
            return await asyncio.to_thread(_get, f"http://127.0.0.1:{site.http_port}{path}")
        except OSError:
            await asyncio.sleep(0.02)


async def why_off(site: Site) -> str:
    return str(json.loads(await page(site, "/status"))["failover_off_because"])


async def test_it_comes_up_by_itself_when_zookeeper_does(server: Server, tmp_path: Path) -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    site = Site(tmp_path, server.zookeeper.connect, namenode.port)
    assert (await site.run("-formatZK"))[0] == 0
    await server.gone()
    async with started(site) as process:
        while "(" not in (told := await why_off(site)):
            await asyncio.sleep(0.02)
        assert told.startswith("waiting for ZooKeeper since the start")
        assert (
            f"no server of {server.zookeeper.connect} answers ({server.zookeeper.connect}" in told
        )
        status = json.loads(await page(site, "/status"))
        while status["health"] != "healthy":  # it watches its NameNode in the meantime
            status = json.loads(await page(site, "/status"))
        assert not status["in_election"]
        waiting = f'nnha_zkfc_waiting_for_zookeeper{{node="{site.nameservice}.nn1"}}'
        assert f"{waiting} 1.0" in await page(site, "/metrics")
        assert namenode.active_transitions == 0
        assert process.stderr is not None
        async with asyncio.timeout(DEADLINE_SECONDS):
            while b"zkfc.zookeeper.awaited" not in (line := await process.stderr.readline()):
                assert line, "it ended without a word"
        await server.back()
        await until(
            lambda: namenode.state is ServiceState.ACTIVE, "active", seconds=DEADLINE_SECONDS
        )
        assert f"{waiting} 0.0" in await page(site, "/metrics")
        assert await why_off(site) == "None"
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
        assert process.returncode == 0
    events = [json.loads(line)["event"] for line in err.decode().splitlines()]
    assert "zkfc.zookeeper.awaited" not in events, "said once, and then rarely"
    await namenode.die()


async def test_a_signal_ends_the_waiting_and_is_no_failure(tmp_path: Path) -> None:
    site = Site(tmp_path, f"127.0.0.1:{free_port()}")
    async with started(site) as process:
        assert "waiting for ZooKeeper" in await why_off(site)
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0


async def test_a_zookeeper_without_our_znode_ends_the_waiting(
    server: Server, tmp_path: Path
) -> None:
    """End it, as no waiting would mend that."""
    await server.gone()
    site = Site(tmp_path, server.zookeeper.connect)
    async with started(site) as process:
        assert "waiting for ZooKeeper" in await why_off(site)
        await server.back()
        _, err = await process.communicate()
        assert process.returncode == 3
        assert "run with --format-zk" in err.decode()
