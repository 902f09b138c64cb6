"""Which NameNode a DataNode asks first for a request over WebHDFS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ha.conf.topology import HostPort
from tests.datanode.test_webhdfs import web


@asynccontextmanager
async def dead_namenode() -> AsyncIterator[tuple[HostPort, list[int]]]:
    """Give an address that hangs up, and a list that grows with each connection."""
    asked = list[int]()

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        yield HostPort(*server.sockets[0].getsockname()), asked


async def test_the_namenode_that_answered_is_asked_first(tmp_path: Path) -> None:
    async with dead_namenode() as (dead, asked), web(tmp_path, before=[dead]) as site:
        for _ in range(3):
            assert (await site.ask("GET", "/", "OPEN", user__name="alice")).status == 404
    assert asked == [1]


async def test_a_transfer_that_began_before_does_not_bring_a_dead_namenode_back(
    tmp_path: Path,
) -> None:
    begun, ends = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        begun.set()
        await ends.wait()
        yield b"x"

    async with dead_namenode() as (dead, asked), web(tmp_path, before=[dead]) as site:
        slow = asyncio.create_task(site.ask("PUT", "/f", "CREATE", body()))
        await begun.wait()
        async with asyncio.timeout(30):
            while "hdfs" not in site.asked_for:
                await asyncio.sleep(0)
        assert (await site.ask("GET", "/", "OPEN", user__name="alice")).status == 404
        ends.set()
        assert (await slow).status == 201
        assert (await site.ask("GET", "/", "OPEN", user__name="alice")).status == 404
    assert asked == [1]
