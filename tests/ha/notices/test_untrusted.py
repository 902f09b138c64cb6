"""Notices that strangers could have written are reported and not obeyed."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from kazoo.security import make_digest_acl_credential

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.outcome import value_of
from ha.elector.zookeeper.session_close import close_all
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from ha.notices import store
from ha.notices.board import Board
from ha.notices.model import Drain, encode_member, encode_pause
from ha.notices.seen import Notices
from tests.ha.notices.test_model import MEMBER, NOON, PAUSE
from tests.ha.zkfc.zkfc_world import until

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count(1)
LASTING = replace(PAUSE, until=None)
DRAIN = Drain(owner="bob@ops1", reason="disk", since=NOON, until=None)
OURS = replace(MEMBER, namenode="nn1", zkfc_rpc="host1:8019", host="h1")


@dataclass
class Place:
    """A closed nameservice: we are its controller, and strangers reach its ZooKeeper."""

    ours: ZooKeeperSettings
    session: Session
    """Under our identity, and with our ACL."""
    older: Session
    """Under our identity, and with the open ACL of before."""
    stranger: Session
    """Without any credentials."""
    told: list[Notices] = field(default_factory=list)

    @asynccontextmanager
    async def board(self) -> AsyncIterator[Board]:
        board = Board(self.ours, "nn1", self.told.append, clock=_noon, poll_seconds=0.05)
        board.publish(OURS)
        running = asyncio.create_task(board.run())
        try:
            yield board
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def seen(self, **expected: object) -> None:
        def met() -> bool:
            last = self.told[-1] if self.told else None
            return last is not None and all(
                getattr(last, name) == value for name, value in expected.items()
            )

        await until(met, f"{expected}", seconds=30.0)

    def untrusted(self) -> list[str]:
        paths = [one.partition(": ")[0] for one in self.told[-1].untrusted]
        return [path.removeprefix(self.ours.scope) for path in paths]


def _noon() -> datetime:
    return NOON


@asynccontextmanager
async def _place(zookeeper: ZooKeeper, acl: str = "auth::rwcda") -> AsyncIterator[Place]:
    opened = ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=5.0,
        scope=f"/untrusted{next(_numbers)}/ns1",
        acl=parse_acl("world:anyone:rwcda"),
    )
    ours = replace(opened, acl=parse_acl(acl), auth=parse_auth("digest:nn:word"))
    async with (
        connected(ours, deadline_seconds=30.0) as session,
        connected(replace(ours, acl=opened.acl), deadline_seconds=30.0) as older,
        connected(opened, deadline_seconds=30.0) as stranger,
    ):
        await ensure_parent(session, ours)
        yield Place(ours, session, older, stranger)


async def test_notices_of_ours_are_obeyed(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper) as place, place.board():
        await store.write_pause(place.session, place.ours, LASTING)
        await store.write_drain(place.session, place.ours, "nn1", DRAIN)
        await place.seen(pause=LASTING, drain=DRAIN, untrusted=())
        await store.clear_pause(place.session, place.ours)
        await place.seen(pause=None, drain=DRAIN)


async def test_a_pause_and_a_drain_that_anybody_can_write_stop_no_failover(
    zookeeper: ZooKeeper,
) -> None:
    async with _place(zookeeper) as place:
        await _create(place.older, store.pause_path(place.ours), encode_pause(LASTING))
        await _create(place.older, store.drains_path(place.ours), b"")
        await _create(place.stranger, f"{store.drains_path(place.ours)}/nn1", encode_pause(DRAIN))
        async with place.board():
            await place.seen(pause=None, drain=None)
            assert place.untrusted() == ["/NnhaDrain", "/NnhaDrain/nn1", "/NnhaPause"]
            assert "anybody could do everything" in place.told[-1].untrusted[0]
            # Once closed they hold again: the operator that closes them has read them.
            assert (await close_all(place.session, place.ours, force=False)).refused == ()
            await place.seen(pause=LASTING, drain=DRAIN, untrusted=())


async def test_an_acl_that_looks_like_ours_proves_nothing_in_an_open_parent(
    zookeeper: ZooKeeper,
) -> None:
    """Distrust it: a creator may give a znode any ACL, one for us alone, too."""
    async with _place(zookeeper) as place:
        await _create(place.older, store.drains_path(place.ours), b"")
        await _create(place.session, f"{store.drains_path(place.ours)}/nn1", encode_pause(DRAIN))
        async with place.board():
            await place.seen(drain=None)
            assert place.untrusted() == ["/NnhaDrain"]


async def test_an_open_scope_makes_all_notices_doubtful(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper) as place:
        await store.write_pause(place.session, place.ours, LASTING)
        value_of(await place.older.set_acl(place.ours.scope, acl_version=-1), "open")
        async with place.board():
            await place.seen(pause=None)
            assert place.untrusted() == [""]
        for write in (
            store.write_pause(place.session, place.ours, LASTING),
            store.write_drain(place.session, place.ours, "nn1", DRAIN),
        ):
            with pytest.raises(ZooKeeperRefused, match=r"would not obey a (pause|drain): .*--keep"):
                await write


async def test_a_pause_in_place_of_an_open_one_is_obeyed(zookeeper: ZooKeeper) -> None:
    async with _place(zookeeper) as place, place.board():
        await _create(place.older, store.pause_path(place.ours), encode_pause(LASTING))
        await place.seen(pause=None)
        mine = replace(LASTING, reason="mine")
        await store.write_pause(place.session, place.ours, mine)
        await place.seen(pause=mine, untrusted=())


@pytest.mark.parametrize("acl", ["auth::rwcda", "digest:nn:HASH:rwcda"])
async def test_another_identity_s_pause_is_not_obeyed(zookeeper: ZooKeeper, acl: str) -> None:
    """Make it while the scope is open; closing the scope could not change its ACL."""
    _, _, sha1 = make_digest_acl_credential("nn", "word").partition(":")
    async with _place(zookeeper, acl.replace("HASH", sha1)) as place:
        value_of(await place.older.set_acl(place.ours.scope, acl_version=-1), "open")
        mallory = replace(
            place.ours,
            acl=parse_acl("auth::rwcda,world:anyone:r"),
            auth=parse_auth("digest:mallory:word"),
        )
        async with connected(mallory, deadline_seconds=30.0) as other:
            await _create(other, store.pause_path(place.ours), encode_pause(LASTING))
            assert (await close_all(place.session, place.ours, force=False)).refused
            async with place.board():
                await place.seen(pause=None)
                await until(lambda: place.untrusted() == ["/NnhaPause"], "told", seconds=30.0)
                assert "digest:mallory:" in place.told[-1].untrusted[0]


async def test_what_must_be_respected_is_respected_and_told(zookeeper: ZooKeeper) -> None:
    """Respect a lock of Hadoop's, and a namesake of ours: not to believe them is worse."""
    async with _place(zookeeper) as place:
        await _create(place.older, store.members_path(place.ours), b"")
        namesake = replace(OURS, zkfc_rpc="host9:8019", host="h9", pid=77)
        async with connected(
            replace(place.ours, acl=parse_acl("world:anyone:rwcda")), deadline_seconds=30.0
        ) as theirs:
            path = f"{store.members_path(place.ours)}/nn1"
            value_of(await theirs.create(path, encode_member(namesake), ephemeral=True), "create")
            lock = encode(ActiveNodeInfo("ns1", "nn2", "h2", 1, 2))
            value_of(await theirs.create(place.ours.lock, lock, ephemeral=True), "create")
            async with place.board():
                await place.seen(lock_holder="nn2")
                assert "process 77 on h9" in place.told[-1].namesake
                assert place.untrusted() == ["/ActiveStandbyElectorLock", "/NnhaMembers"]


async def _create(session: Session, path: str, data: bytes) -> None:
    value_of(await session.create(path, data), f"create {path}")
