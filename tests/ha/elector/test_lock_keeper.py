"""Another's lock is removed only if it is the very one that was seen; on a real server."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.lock_keeper import LockKeeper
from ha.elector.model import Removal
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.outcome import Done, Outcome, Refusal, Refused, ZnodeFacts
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.transaction import Delete, Part
from ha.elector.zookeeper.znodes import connected, ensure_parent

pytestmark = pytest.mark.zookeeper

_scopes = itertools.count(1)


class Two:
    """The owner of the lock and the one who would remove it, each in a session of its own."""

    def __init__(self, settings: ZooKeeperSettings, owner: Session, other: Session) -> None:
        self.settings, self.keeper = settings, LockKeeper(settings)
        self.owner, self.other = owner, other

    async def made(self) -> int:
        seen = await self.other.look(self.settings.lock)
        assert isinstance(seen, Done)
        assert seen.value is not None
        return seen.value.written_by

    async def stands(self) -> bool:
        seen = await self.other.look(self.settings.lock)
        return isinstance(seen, Done) and seen.value is not None


@pytest.fixture
async def two(zookeeper: ZooKeeper) -> AsyncIterator[Two]:
    settings = ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=6.0,
        scope=f"/hadoop-ha/lock{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )
    async with AsyncExitStack() as open_:
        sessions = [
            await open_.enter_async_context(connected(settings, deadline_seconds=30.0))
            for _ in range(2)
        ]
        await ensure_parent(sessions[0], settings)
        yield Two(settings, *sessions)


async def test_a_lock_that_was_seen_is_removed_and_the_next_one_can_be_made(two: Two) -> None:
    assert isinstance(await two.keeper.create(two.owner, b"1"), Done)
    assert await two.keeper.remove(two.other, await two.made()) is Removal.REMOVED
    assert not await two.stands()
    assert isinstance(await two.keeper.create(two.other, b"2"), Done)
    again = await two.keeper.create(two.owner, b"1")
    assert isinstance(again, Refused)
    assert again.why is Refusal.NODE_EXISTS


async def test_a_lock_stands_where_a_bar_was_seen_after_the_decision(two: Two) -> None:
    await two.keeper.create(two.owner, b"1")
    removal = await two.keeper.remove(two.other, await two.made(), lambda: False)
    assert removal is Removal.TOO_LATE
    assert await two.stands()


async def test_a_lock_that_was_made_anew_stands_though_its_version_is_the_same(two: Two) -> None:
    await two.keeper.create(two.owner, b"1")
    seen = await two.made()
    await two.owner.delete(two.settings.lock)
    await two.keeper.create(two.owner, b"1")
    assert await two.keeper.remove(two.other, seen) is Removal.NOT_THAT_LOCK
    assert await two.stands()


async def test_a_lock_that_is_made_anew_in_the_last_moment_stands(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remake it after the look, before the transaction: only the count distinguishes the locks."""
    await two.keeper.create(two.owner, b"1")
    seen = await two.made()
    transact = Session.transact

    async def late(session: Session, parts: Sequence[Part]) -> Outcome[None]:
        await two.owner.delete(two.settings.lock)
        await two.keeper.create(two.owner, b"1")
        return await transact(session, parts)

    def overtaken(session: Session, parts: Sequence[Part]) -> "asyncio.Future[Outcome[None]]":
        if not any(isinstance(part, Delete) for part in parts):
            return transact(session, parts)
        return asyncio.ensure_future(late(session, parts))

    monkeypatch.setattr(Session, "transact", overtaken)
    assert await two.keeper.remove(two.other, seen) is Removal.NOT_THAT_LOCK
    assert await two.stands()


async def test_a_lock_of_a_controller_that_does_not_count_is_left(two: Two) -> None:
    """Leave a lock as Hadoop's makes it; also where an earlier one was counted."""
    await two.keeper.create(two.owner, b"1")
    await two.owner.delete(two.settings.lock)
    await two.owner.create(two.settings.lock, b"1", ephemeral=True)
    assert await two.keeper.remove(two.other, await two.made()) is Removal.UNCOUNTED
    assert await two.stands()


async def test_our_own_lock_is_never_removed(two: Two) -> None:
    await two.keeper.create(two.other, b"1")
    assert await two.keeper.remove(two.other, await two.made()) is Removal.NOT_THAT_LOCK


async def test_no_right_is_told(zookeeper: ZooKeeper) -> None:
    """Report that another user sees the owner's znodes, and may not touch them."""
    scope = f"/hadoop-ha/lock{next(_scopes)}"
    acl = parse_acl("auth::rwcda,world:anyone:r")

    def of(user: str) -> ZooKeeperSettings:
        return ZooKeeperSettings(
            hosts=zookeeper.connect,
            session_timeout_seconds=6.0,
            scope=scope,
            acl=acl,
            auth=parse_auth(f"digest:{user}:secret"),
        )

    async with (
        connected(of("one"), deadline_seconds=30.0) as owner,
        connected(of("two"), deadline_seconds=30.0) as other,
    ):
        await ensure_parent(owner, of("one"))
        assert isinstance(await LockKeeper(of("one")).create(owner, b"1"), Done)
        seen = await other.look(of("one").lock)
        assert isinstance(seen, Done)
        assert isinstance(seen.value, ZnodeFacts)
        removal = await LockKeeper(of("two")).remove(other, seen.value.written_by)
        assert removal is Removal.FORBIDDEN
