"""A board and a lock's keeper with a fault at each await: no session, thread or member is left."""

import asyncio

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.lock_keeper import LockKeeper
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from ha.notices import store
from ha.notices.board import Board
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.notices.test_board import OURS

pytestmark = pytest.mark.zookeeper

KEPT = frozenset({"anon_inode:"})
"""The session of the test itself has one whenever kazoo waits for its server."""


def settings_of(zookeeper: ZooKeeper, name: str) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=30.0,
        scope=f"/hadoop-ha/{name}",
        acl=parse_acl("world:anyone:rwcda"),
    )


async def test_a_board_that_is_cut_short_takes_its_member_away(zookeeper: ZooKeeper) -> None:
    settings = settings_of(zookeeper, "cut-board")

    async def life() -> None:
        read = asyncio.Event()
        board = Board(settings, "nn1", lambda _: read.set(), poll_seconds=3600)
        board.publish(OURS)
        running = asyncio.create_task(board.run(), name="board")
        reading = asyncio.create_task(read.wait())
        try:
            await asyncio.wait([running, reading], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (running, reading):
                task.cancel()
            await asyncio.wait([running, reading])

    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)

        async def after(_: int) -> None:
            async with asyncio.timeout(20):
                while await store.read_members(session, settings):
                    await asyncio.sleep(0.01)

        cuts = Cuts(life, Fault.EVICT, evicts="board", kept=KEPT)
        assert await awaits.cut_at_each_await(cuts, after) > 10


async def test_a_lock_that_is_cut_short_goes_with_its_session(zookeeper: ZooKeeper) -> None:
    settings = settings_of(zookeeper, "cut-lock")
    keeper = LockKeeper(settings)

    async def life() -> None:
        async with connected(settings, deadline_seconds=30.0) as session:
            assert isinstance(await keeper.create(session, b"1"), Done)
            assert isinstance(await keeper.release(session), Done)

    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)

        async def after(_: int) -> None:
            async with asyncio.timeout(20):
                while await session.look(settings.lock) != Done(None):
                    await asyncio.sleep(0.01)

        assert await awaits.cut_at_each_await(Cuts(life, kept=KEPT), after) > 4
