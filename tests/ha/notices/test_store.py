"""Notices in a real ZooKeeper: several writers, missing parents, znodes that are gone."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import clear_parent, connected, ensure_parent, parent_exists
from ha.notices import store
from ha.notices.model import BadNotice, Drain, encode_member
from tests.ha.notices.test_model import MEMBER, NOON, PAUSE, RECORD

pytestmark = pytest.mark.zookeeper

_scopes = itertools.count(1)
DRAIN = Drain(owner="bob@ops1", reason="disk", since=NOON, until=NOON + timedelta(minutes=30))


def _settings(zookeeper: ZooKeeper) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=10.0,
        scope=f"/hadoop-ha/notices{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )


@asynccontextmanager
async def _formatted(zookeeper: ZooKeeper) -> AsyncIterator[tuple[Session, ZooKeeperSettings]]:
    settings = _settings(zookeeper)
    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)
        yield session, settings


async def test_a_pause_is_written_replaced_and_ended(zookeeper: ZooKeeper) -> None:
    async with _formatted(zookeeper) as (session, settings):
        assert await store.read_pause(session, settings) is None
        assert not await store.clear_pause(session, settings)
        await store.write_pause(session, settings, PAUSE)
        longer = replace(PAUSE, until=None)
        await store.write_pause(session, settings, longer)
        noted = await store.read_pause(session, settings)
        assert noted is not None
        assert noted.value == longer
        assert not await store.clear_pause(session, settings, version=noted.version - 1)
        assert await store.clear_pause(session, settings, version=noted.version)
        assert await store.read_pause(session, settings) is None


async def test_drains_are_of_one_namenode_each(zookeeper: ZooKeeper) -> None:
    async with _formatted(zookeeper) as (session, settings):
        assert await store.read_drains(session, settings) == {}
        assert not await store.clear_drain(session, settings, "nn1")
        await store.write_drain(session, settings, "nn1", DRAIN)
        await store.write_drain(session, settings, "nn2", replace(DRAIN, reason="fan"))
        one = await store.read_drain(session, settings, "nn2")
        assert one is not None
        assert one.value.reason == "fan"
        assert await store.clear_drain(session, settings, "nn2")
        assert list(await store.read_drains(session, settings)) == ["nn1"]


async def test_a_scope_that_is_not_formatted_says_so(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper)
    async with connected(settings, deadline_seconds=30.0) as session:
        with pytest.raises(ZooKeeperRefused, match="--format-zk"):
            await store.write_pause(session, settings, PAUSE)
        with pytest.raises(ZooKeeperRefused, match="--format-zk"):
            await store.write_drain(session, settings, "nn1", DRAIN)
        assert await store.read_history(session, settings) == ()
        assert await store.read_members(session, settings) == {}


async def test_garbage_names_its_znode_and_does_not_hide_the_others(zookeeper: ZooKeeper) -> None:
    async with _formatted(zookeeper) as (session, settings):
        assert await session.create(store.pause_path(settings), b"hello") == Done(None)
        with pytest.raises(BadNotice, match="NnhaPause: no pause: 5 bytes, b'hello'"):
            await store.read_pause(session, settings)
        assert await session.create(store.members_path(settings)) == Done(None)
        for name, data in (("nn1", encode_member(MEMBER)), ("nn2", b"?")):
            path = f"{store.members_path(settings)}/{name}"
            assert await session.create(path, data, ephemeral=True) == Done(None)
        members = await store.read_members(session, settings)
        assert members["nn1"] == MEMBER
        assert isinstance(members["nn2"], BadNotice)
        await store.append_history(session, settings, RECORD)
        await session.create_numbered(f"{store.history_path(settings)}/r-", b"?")
        assert await session.create(f"{store.history_path(settings)}/other") == Done(None)
        newest, older = await store.read_history(session, settings)
        assert newest.record is None
        assert "no record of a failover" in newest.unreadable
        assert older.record == RECORD


async def test_history_keeps_the_newest_with_several_writers(zookeeper: ZooKeeper) -> None:
    async with _formatted(zookeeper) as (session, settings):

        async def write(writer: int) -> None:
            async with connected(settings, deadline_seconds=30.0) as own:
                for serial in range(40):
                    record = replace(RECORD, epoch=writer * 1000 + serial)
                    await store.append_history(own, settings, record)

        await asyncio.gather(*(write(writer) for writer in (1, 2, 3)))
        entries = await store.read_history(session, settings)
        assert len(entries) == store.KEPT_RECORDS
        left = await session.children(store.history_path(settings))
        assert isinstance(left, Done)
        assert len(left.value) == store.KEPT_RECORDS
        numbers = [entry.number for entry in entries]
        assert numbers == sorted(numbers, reverse=True)
        epochs = [entry.record.epoch for entry in entries if entry.record is not None]
        assert {1039, 2039, 3039} <= set(epochs)  # each writer's last
        assert len(await store.read_history(session, settings, 3)) == 3


async def test_clearing_the_nameservice_takes_the_notices_along(zookeeper: ZooKeeper) -> None:
    async with _formatted(zookeeper) as (session, settings):
        await store.write_drain(session, settings, "nn1", DRAIN)
        await store.append_history(session, settings, RECORD)
        await clear_parent(session, settings)
        assert not await parent_exists(session, settings)
