"""Images on their way with a fault at each await, on both sides, and whole bootstraps."""

import shutil
from asyncio import StreamReader, StreamWriter
from contextlib import closing
from pathlib import Path

from ha.conf.topology import HostPort
from journal.model import TxId
from namenode_sim.checkpoint.image_upload import upload_image
from namenode_sim.transfer.image_fetch import fetch_image
from tests import awaits
from tests.awaits import Cuts
from tests.journal.node.process import until
from tests.namenode_sim.checkpoint.test_image_upload_stalls import GO_ON, TAKEN, image_of
from tests.namenode_sim.startup import startup_world
from tests.namenode_sim.startup.test_bootstrap import (
    IMAGE,
    assert_copied,
    bootstrap,
    facts,
    image_routes,
    saved,
    serving,
)
from tests.stand_in import HOST, stand_in
from tests.worlds.files import info

SIZE = 300_000
"""More than one piece."""
KEPT = frozenset({"timers", "ha.daemon.http", "ha.daemon.door"})
"""Looks at a connection go on for some seconds after its end."""


async def take(reader: StreamReader, writer: StreamWriter) -> None:
    with closing(writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(GO_ON)
        await reader.readexactly(SIZE)
        writer.write(TAKEN)


async def test_an_image_that_is_sent_is_closed(tmp_path: Path) -> None:
    image = image_of(SIZE, tmp_path)

    async def after(number: int) -> None:  # a thread that reads the digest may be at it still
        await until(lambda: not awaits.files_open_below(tmp_path), f"closed, at await {number}")

    async with stand_in(take) as port:

        async def life() -> None:
            await upload_image(HostPort(HOST, port), image, TxId(5), info(), stall_seconds=30)

        # The stand-in keeps its tasks.
        cuts = Cuts(life, kept=frozenset({"_asyncio.", "HostPort", "NamespaceInfo"}))
        assert await awaits.cut_at_each_await(cuts, after) > 4


async def test_an_image_that_is_served_is_closed(tmp_path: Path) -> None:
    directory, folder = saved(tmp_path / "peer"), tmp_path / "fetched"

    async def after(number: int) -> None:
        left = len(list(folder.iterdir()))
        assert left in (0, 2), number
        shutil.rmtree(folder)

    async with serving(*image_routes(directory)) as at:

        async def life() -> None:
            folder.mkdir()
            await fetch_image(at, folder, IMAGE.last_applied, info(), stall_seconds=30)

        assert await awaits.cut_at_each_await(Cuts(life, kept=KEPT), after) > 4


async def test_a_bootstrap_that_is_cut_short_can_be_repeated(
    at: startup_world.World, tmp_path: Path
) -> None:
    folder = tmp_path / "cut"
    async with startup_world.peer(facts(), saved(tmp_path / "peer")) as peers:
        overrides = [*peers, f"dfs.namenode.name.dir={folder}"]

        async def life() -> None:
            await bootstrap(at, overrides, check=False)

        async def after(number: int) -> None:
            assert awaits.files_open_below(folder) == [], number
            await bootstrap(at, overrides, startup_world.FORCE, check=False)
            assert_copied(folder)
            shutil.rmtree(folder)

        assert await awaits.cut_at_each_await(Cuts(life, kept=KEPT), after) > 4
