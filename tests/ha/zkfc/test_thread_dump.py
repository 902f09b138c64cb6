"""The thread dump comes after the election is left, and delays nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from ha.service.model import ServiceState
from ha.zkfc.record.thread_dump import KEPT_FILES, LIMIT_BYTES, ThreadDump
from ha.zkfc.settings.settings import DumpSettings, ZkfcSettings
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.zkfc_world import Worlds, until, world
from tests.log_lines import captured
from tests.stand_in import stand_in

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _at_once() -> None:
    """Return at once: the election is left already."""


@asynccontextmanager
async def _http(serve: Serve) -> AsyncIterator[HostPort]:
    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.transport.abort()

    async with stand_in(one) as port:
        yield HostPort(HOST, port)


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the other side gives up


async def _endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nServer: toy\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def _taken(dump: ThreadDump, count: int = 1) -> None:
    await until(lambda: dump.taken >= count, f"{count} dumps")


async def test_a_daemons_stacks_are_kept_in_a_file_and_the_newest_ten_of_them(
    tmp_path: Path,
) -> None:
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    port = await endpoint.start(HOST, 0)
    dump = ThreadDump("nn1", HostPort(HOST, port), DumpSettings(directory=tmp_path / "dumps"))
    for number in range(KEPT_FILES + 2):
        dump.begin(_at_once, because="it is slow")
        await _taken(dump, number + 1)
        task = dump._task
        assert task is not None
        await task
    files = sorted((tmp_path / "dumps").iterdir())
    assert len(files) == KEPT_FILES
    text = files[-1].read_text()
    assert 'Thread "MainThread"' in text
    assert "thread dump" in text, "the tasks are missing"
    await endpoint.stop()


@pytest.mark.row("8.13 5")
async def test_8_13_5_hung_stacks_are_given_up_and_only_warned_of() -> None:
    async with _http(_hang) as address:
        dump = ThreadDump("nn1", address, DumpSettings(timeout_seconds=0.05))
        with captured("zkfc.thread_dump") as logs:
            dump.begin(_at_once, because="it hangs")
            dump.begin(_at_once, because="a second one while the first is under way")
            await until(lambda: logs, "a line")
        assert [one["event"] for one in logs] == ["zkfc.thread_dump.failed"]
        assert logs[0]["because"] == "it hangs"


@pytest.mark.row("W6")
async def test_w6_a_dump_is_bounded_in_bytes() -> None:
    async with _http(_endless) as address:
        dump = ThreadDump("nn1", address, DumpSettings())
        with captured("zkfc.thread_dump") as logs:
            dump.begin(_at_once, because="it is slow")
            await _taken(dump)
        assert logs[-1]["bytes"] == LIMIT_BYTES
        assert len(logs[0]["stacks"]) < LIMIT_BYTES


@pytest.mark.row("W6")
async def test_w6_a_dump_waits_until_the_election_is_left() -> None:
    asked = asyncio.Event()
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()

    async def leaving() -> None:
        await left.wait()

    async with _http(serve) as address:
        dump = ThreadDump("nn1", address, DumpSettings())
        dump.begin(leaving, because="it is slow")
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asked.is_set()
        left.set()
        await until(asked.is_set, "asked")
        dump.stop()


@pytest.mark.row("8.11 ZK.testThreadDumpCaptureAfterNNStateChange")
@pytest.mark.zookeeper
async def test_row_8_11_zk_thread_dump_capture_after_nn_state_change(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Make the active unhealthy: it is replaced and demoted, and its stacks are kept."""
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    port = await endpoint.start(HOST, 0)

    def with_http(settings: ZkfcSettings) -> ZkfcSettings:
        own = replace(settings.own, http=HostPort(HOST, port))
        return replace(settings, own=own, thread_dump=DumpSettings(directory=tmp_path / "dumps"))

    async with world(zookeeper.connect, tmp_path, "nn1", "nn2", settings_hook=with_http) as here:
        one, two = here.nodes
        one.namenode.healthy = False
        await here.active(two)
        assert one.namenode.state is ServiceState.STANDBY
        await _taken(one.zkfc.thread_dump)
        assert len(list((tmp_path / "dumps").glob("stacks-nn1-*"))) == 1
        assert two.zkfc.thread_dump.taken == 0
    await endpoint.stop()


@pytest.mark.row("W6")
@pytest.mark.zookeeper
async def test_w6_hung_stacks_do_not_delay_the_failover(worlds: Worlds) -> None:
    async with _http(_hang) as address:

        def with_http(settings: ZkfcSettings) -> ZkfcSettings:
            own = replace(settings.own, http=address)
            return replace(settings, own=own, thread_dump=DumpSettings(timeout_seconds=60.0))

        async with worlds("nn1", "nn2", settings_hook=with_http) as here:
            one, two = here.nodes
            one.namenode.healthy = False
            await here.active(two)  # within a quarter of what the dump may take
            assert one.zkfc.thread_dump.taken == 0
