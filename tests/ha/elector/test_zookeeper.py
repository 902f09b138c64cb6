"""The elector and its ZooKeeper client against a real ZooKeeper."""

import asyncio
import itertools
from dataclasses import replace
from functools import partial

import pytest
from kazoo.client import KazooClient
from prometheus_client import REGISTRY

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.actions import CloseSession, OpenSession, ReleaseLock
from ha.elector.events import Event, SessionOpened
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Role, SessionNumber
from ha.elector.zookeeper import znodes
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.open_sessions import OpenSessions
from ha.elector.zookeeper.outcome import Done, Refusal, Refused, SessionState, Unknown
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected
from ha.zkfc.surroundings.surroundings import REAL_WORLD
from tests.ha.elector.people import people, seated
from tests.ha.zkfc.zkfc_world import free_port, until

pytestmark = pytest.mark.zookeeper

_scopes = itertools.count(1)


def _settings(zookeeper: ZooKeeper, *, timeout: float = 5.0) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=timeout,
        scope=f"/hadoop-ha/elector{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )


async def test_active_and_standby_change_places(zookeeper: ZooKeeper) -> None:
    async with people(_settings(zookeeper), "a", "b") as (a, b):
        await seated(a, b)
        a.elector.quit(keep_breadcrumb=True)
        await b.is_(Role.ACTIVE)
        a.join()
        await a.is_(Role.STANDBY)
        b.elector.quit(keep_breadcrumb=False)
        await a.is_(Role.ACTIVE)
        assert a.told == ["active", "standby", "active"]  # b left no breadcrumb
        assert b.told == ["standby", "fence a", "active"]


async def test_after_quitting_there_is_no_lock_and_nobody_returns(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper)
    async with people(settings, "a") as (a,):
        await seated(a)
        a.elector.quit(keep_breadcrumb=False)
        await a.elector.wait_idle()
        assert a.role is Role.INIT
        async with connected(settings, deadline_seconds=5.0) as session:
            assert await session.look(settings.lock) == Done(None)
            assert await session.look(settings.breadcrumb) == Done(None)


async def test_who_leaves_deletes_no_lock_but_its_own(zookeeper: ZooKeeper) -> None:
    """Play the schedule: ours was deleted by hand, another has it, and we have not heard of it."""
    settings, one = _settings(zookeeper), SessionNumber(1)
    events: list[Event] = []
    keeper = KazooKeeper(settings, events.append)
    async with connected(settings, deadline_seconds=5.0) as other:
        await znodes.ensure_parent(other, settings)
        keeper.perform(OpenSession(one))
        await until(lambda: SessionOpened(one) in events, "opened")
        assert isinstance(await other.create(settings.lock, b"b", ephemeral=True), Done)
        keeper.perform(ReleaseLock(one))
        keeper.perform(CloseSession(one))
        await keeper.wait_idle()
        assert await znodes.content_of(other, settings.lock) == b"b"


async def test_a_failed_takeover_leaves_the_election(zookeeper: ZooKeeper) -> None:
    async with people(_settings(zookeeper), "a", "b") as (a, b):
        await seated(a)
        b.refuse_to_fence = True
        b.join()
        await b.is_(Role.STANDBY)
        a.elector.quit(keep_breadcrumb=True)
        await until(lambda: "failed: switched off" in b.told, "failed")
        await b.is_(Role.INIT)
        await seated(a)
        assert not any(word.startswith("fence") for word in a.told)  # its own breadcrumb


async def test_a_lock_deleted_by_hand_is_taken_again(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper)
    async with people(settings, "a") as (a,):
        await seated(a)
        async with connected(settings, deadline_seconds=5.0) as session:
            assert await session.delete(settings.lock) == Done(None)
        await until(lambda: a.told == ["active", "neutral", "active"], "again")


async def test_looking_often_leaves_one_watch(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper)
    async with people(settings, "a", "b") as (a, b):
        await seated(a, b)
        client = next(iter(b.keeper._sessions.values()))._client
        await until(lambda: len(client._data_watchers[settings.lock]) == 1, "watched")
        await asyncio.sleep(0.7)  # three looks; their number is what is tested
        assert len(client._data_watchers[settings.lock]) == 1


async def test_no_server_is_told_within_the_deadline() -> None:
    settings = ZooKeeperSettings(
        hosts=f"127.0.0.1:{free_port()}", session_timeout_seconds=5.0, scope="/hadoop-ha/none"
    )
    with pytest.raises(ZooKeeperUnavailable, match=r"ha\.zookeeper\.quorum"):
        async with connected(settings, deadline_seconds=0.5):
            pass


async def test_credentials_that_no_server_knows_are_told_at_once(zookeeper: ZooKeeper) -> None:
    settings = replace(_settings(zookeeper), auth=parse_auth("nosuch:secret"))
    with pytest.raises(ZooKeeperRefused, match=r"ha\.zookeeper\.auth"):
        async with connected(settings, deadline_seconds=5.0):
            pass


@pytest.mark.row("8.1 testFormatSetsAcls", because="the row's three words in a sentence")
async def test_format_sets_the_acl_and_strangers_see_nothing(zookeeper: ZooKeeper) -> None:
    settings = replace(
        _settings(zookeeper),
        scope=f"/private{next(_scopes)}/ns1",
        acl=parse_acl("auth::rwcda"),
        auth=parse_auth("digest:owner:secret"),
    )
    async with connected(settings, deadline_seconds=5.0) as session:
        await znodes.ensure_parent(session, settings)
        assert await znodes.parent_exists(session, settings)
        await znodes.ensure_parent(session, settings)  # again: no change, no error
    stranger = replace(settings, auth=(), acl=parse_acl("world:anyone:rwcda"))
    async with connected(stranger, deadline_seconds=5.0) as session:
        outcome = await session.read(settings.scope.rsplit("/", 1)[0])
        assert isinstance(outcome, Refused)
        assert outcome.why is Refusal.NO_RIGHTS
        with pytest.raises(ZooKeeperRefused, match="no rights"):
            await znodes.clear_parent(session, stranger)
    async with connected(settings, deadline_seconds=5.0) as session:
        assert await session.create(f"{settings.scope}/below") == Done(None)
        await znodes.clear_parent(session, settings)
        assert not await znodes.parent_exists(session, settings)


@pytest.mark.parametrize(
    ("below", "told"),
    [
        ("/ns1", r"refused to create /closed\d+/ns1: no rights"),
        ("/apart/ns1", r"refused to create /closed\d+/apart: no rights"),
        ("", r"refused to set the ACL of /closed\d+: no rights"),
    ],
)
async def test_a_format_without_the_rights_to_it_is_refused(
    zookeeper: ZooKeeper, below: str, told: str
) -> None:
    above = f"/closed{next(_scopes)}"
    settings = replace(_settings(zookeeper), scope=f"{above}{below}")
    owner = replace(
        settings,
        acl=parse_acl("auth::rwcda,world:anyone:r"),
        auth=parse_auth("digest:owner:secret"),
    )
    async with connected(owner, deadline_seconds=5.0) as session:
        assert await session.create(above) == Done(None)
    async with connected(settings, deadline_seconds=5.0) as session:
        with pytest.raises(ZooKeeperRefused, match=told):
            await znodes.ensure_parent(session, settings)
        assert await znodes.parent_exists(session, settings) is (below == "")


async def test_an_existing_parent_gets_our_acl_and_the_one_above_keeps_its_own(
    zookeeper: ZooKeeper,
) -> None:
    # HADOOP-14543: the ACL's version counts, not the data's.  /shared belongs to others, too.
    scope = f"/shared{next(_scopes)}/ns1"
    settings = replace(_settings(zookeeper), scope=scope, acl=parse_acl("world:anyone:cdra"))
    async with connected(_settings(zookeeper), deadline_seconds=5.0) as session:
        for path in (scope.rsplit("/", 1)[0], scope):
            assert await session.create(path) == Done(None)
            assert await session.write(path, b"x", version=0) == Done(1)
    async with connected(settings, deadline_seconds=5.0) as session:
        await znodes.ensure_parent(session, settings)
        own = await session.acl(scope)
        above = await session.acl(scope.rsplit("/", 1)[0])
    assert isinstance(own, Done)
    assert isinstance(above, Done)
    assert own.value[0] == frozenset(settings.acl)
    assert above.value[0] == frozenset(parse_acl("world:anyone:rwcda"))


async def test_who_is_active_is_read_from_the_lock(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper)
    info = ActiveNodeInfo("ns", "nn1", "host", 8020, 8019)
    async with connected(settings, deadline_seconds=5.0) as session:
        await znodes.ensure_parent(session, settings)
        assert await znodes.read_active(settings, deadline_seconds=5.0) is None
        await session.create(settings.lock, encode(info), ephemeral=True)
        assert await znodes.read_active(settings, deadline_seconds=5.0) == info
    assert await znodes.read_active(settings, deadline_seconds=5.0) is None


async def test_requests_without_a_connection_are_not_queued(zookeeper: ZooKeeper) -> None:
    # kazoo would carry them out later, perhaps in another session.
    states: list[SessionState] = []
    session = Session(_settings(zookeeper), lambda state, _reason: states.append(state))
    assert isinstance(await session.create("/ghost", ephemeral=True), Unknown)
    session.open()
    await until(lambda: SessionState.CONNECTED in states, "connected")
    assert await session.look("/ghost") == Done(None)
    assert await session.close(deadline_seconds=5.0)


async def test_sessions_of_a_daemon_are_measured(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper)

    def measured() -> float:
        words = {"op": "exists", "result": "done"}
        return REGISTRY.get_sample_value("nnha_zk_request_duration_seconds_count", words) or 0.0

    before = measured()
    opened = partial(connected, settings, deadline_seconds=5.0)
    async with opened(open_session=OpenSessions().open) as session:
        assert not await znodes.parent_exists(session, settings)
        once = measured()
        assert once > before
    async with opened(open_session=REAL_WORLD.session) as session:
        assert not await znodes.parent_exists(session, settings)
        twice = measured()
        assert twice > once
    async with opened() as session:  # a command's
        assert not await znodes.parent_exists(session, settings)
        assert measured() == twice


async def test_an_expired_session_reports_that_once_and_is_over(zookeeper: ZooKeeper) -> None:
    # D.1: kazoo opens another session by itself; nothing of that one may reach us.
    states: list[SessionState] = []
    session = Session(_settings(zookeeper), lambda state, _reason: states.append(state))
    session.open()
    await until(lambda: SessionState.CONNECTED in states, "connected")
    client_id = session._client.client_id

    def end() -> None:
        thief = KazooClient(hosts=zookeeper.connect, client_id=client_id, timeout=5)
        thief.start()
        thief.stop()
        thief.close()

    await asyncio.to_thread(end)
    await until(lambda: SessionState.EXPIRED in states, "expired")
    await until(lambda: session._client.connected, "kazoo's own second session")
    assert isinstance(await session.create("/ghost", ephemeral=True), Unknown)
    assert states[-1] is SessionState.EXPIRED
    await session.close(deadline_seconds=5.0)


async def test_the_negotiated_timeout_is_known(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper, timeout=60.0)
    async with connected(settings, deadline_seconds=5.0) as session:
        await until(lambda: session.timeout_seconds is not None, "known")
        assert session.timeout_seconds == 10.0  # 20 ticks of 0.5 s is the server's limit
