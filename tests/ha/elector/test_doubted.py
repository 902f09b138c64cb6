"""Breadcrumbs and terms that strangers could have written, on a real ZooKeeper."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Role, Term
from ha.elector.term import TermRecord, encode_term
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.errors import ZooKeeperUnavailable
from ha.elector.zookeeper.lock_check import untrusted_znodes
from ha.elector.zookeeper.outcome import value_of
from ha.elector.zookeeper.session_close import close_all
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, content_of, ensure_parent
from tests.ha.elector.people import people, seated

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count(1)


def _open(zookeeper: ZooKeeper) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=5.0,
        scope=f"/doubted{next(_numbers)}/ns1",
        acl=parse_acl("world:anyone:rwcda"),
    )


def _as(settings: ZooKeeperSettings, word: str, acl: str = "auth::rwcda") -> ZooKeeperSettings:
    return replace(settings, acl=parse_acl(acl), auth=parse_auth(f"digest:{word}"))


@asynccontextmanager
async def _inside(settings: ZooKeeperSettings) -> AsyncIterator[Session]:
    async with connected(settings, deadline_seconds=30.0) as session:
        yield session


@asynccontextmanager
async def _closed(settings: ZooKeeperSettings) -> AsyncIterator[Session]:
    ours = _as(settings, "nn:word")
    async with _inside(ours) as session:
        await ensure_parent(session, ours)
        yield session


async def test_our_own_name_by_a_strangers_hand_spares_nobody(zookeeper: ZooKeeper) -> None:
    """Doubt a breadcrumb of before the scope was closed: anybody can write our name into it."""
    settings = _open(zookeeper)
    ours = _as(settings, "nn:word")
    async with _inside(settings) as stranger, _closed(settings):
        async with _inside(replace(ours, acl=settings.acl)) as older:
            value_of(await older.create(settings.breadcrumb, b"b"), "create")
        value_of(await stranger.write(settings.breadcrumb, b"a", version=-1), "write")
        async with people(ours, "a") as (a,):
            await seated(a)
            assert a.told == ["fence a", "active"]
            assert a.terms == [Term.DOUBTED]


async def test_our_own_name_by_our_own_hand_needs_no_fence(zookeeper: ZooKeeper) -> None:
    settings = _open(zookeeper)
    async with _closed(settings) as session, people(_as(settings, "nn:word"), "a") as (a,):
        value_of(await session.create(settings.breadcrumb, b"a"), "create")
        await seated(a)
        assert a.told == ["active"]


@pytest.mark.parametrize("which", ["the scope", "the breadcrumb", "the term", "nothing"])
async def test_what_is_open_vouches_for_no_end(zookeeper: ZooKeeper, which: str) -> None:
    settings = _open(zookeeper)
    ours = _as(settings, "nn:word")
    async with _closed(settings) as session, _inside(replace(ours, acl=settings.acl)) as older:
        makers = {
            settings.breadcrumb: older if which == "the breadcrumb" else session,
            settings.term: older if which == "the term" else session,
        }
        value_of(await makers[settings.breadcrumb].create(settings.breadcrumb, b"b"), "create")
        written_by = value_of(await session.read(settings.breadcrumb), "read")[1].written_by
        record = encode_term(TermRecord(written_by, Term.ENDED, "it has ended, believe me"))
        value_of(await makers[settings.term].create(settings.term, record), "create")
        async with people(ours, "a") as (a,):
            if which == "the scope":  # which people() has given our ACL
                value_of(await older.set_acl(settings.scope, acl_version=-1), "open")
            await seated(a)
            assert a.told == ["fence b", "active"]  # whatever is in doubt, it is fenced
            expected = {"the term": Term.UNKNOWN, "nothing": Term.ENDED}
            assert a.terms == [expected.get(which, Term.DOUBTED)]


async def test_another_identitys_znode_that_all_may_read_is_in_doubt(zookeeper: ZooKeeper) -> None:
    settings = _open(zookeeper)
    ours = _as(settings, "nn:word")
    mallory = _as(settings, "mallory:word", "auth::rwcda,world:anyone:r")
    async with _inside(settings) as older, _inside(mallory) as other, _inside(ours) as session:
        await ensure_parent(older, settings)
        value_of(await other.create(settings.breadcrumb, b"b"), "create")
        done = await close_all(session, ours, force=False)
        assert done.refused == (settings.breadcrumb,)
        value_of(await session.create(settings.lock, b"a", ephemeral=True), "create")
        found = await untrusted_znodes(
            session, ours, settings.scope, settings.breadcrumb, own=settings.lock
        )
        assert list(found) == [settings.breadcrumb]
        assert "digest:mallory:" in found[settings.breadcrumb]


async def test_where_the_configured_acl_is_open_nothing_is_asked(zookeeper: ZooKeeper) -> None:
    settings = _open(zookeeper)
    never_opened = Session(settings, lambda _state, _why: None)
    assert await untrusted_znodes(never_opened, settings, settings.scope) == {}
    with pytest.raises(ZooKeeperUnavailable):
        await untrusted_znodes(never_opened, _as(settings, "nn:word"), settings.scope)


async def test_the_lock_of_another_acl_is_respected(zookeeper: ZooKeeper) -> None:
    """Respect Hadoop's controller, which knows no ACL of ours: the lock's holder may be active."""
    settings = _open(zookeeper)
    async with _closed(settings) as session, people(_as(settings, "nn:word"), "a") as (a,):
        async with _inside(_as(settings, "nn:word", "world:anyone:rwcda")) as java:
            value_of(await java.create(settings.lock, b"java", ephemeral=True), "create")
            a.join()
            await a.is_(Role.STANDBY)
            assert await content_of(session, settings.lock) == b"java"
        await a.is_(Role.ACTIVE)
