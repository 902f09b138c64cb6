"""Rows that need a real server: TestActiveStandbyElectorRealZK, and what else is left."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import RequestTimeoutError, SessionMovedError, ThrottledOpError

from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor
from deploy.local.cluster.zookeeper import (
    ZooKeeper,
    start_zookeeper,
    wait_for_zookeeper,
)
from ha.elector.model import Link, Role
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import Done, Doubt, Unknown
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.transaction import Part
from ha.elector.zookeeper.znodes import connected, ensure_parent, read_active
from tests.ha.elector.people import Person, count_locks, people, seated
from tests.ha.zkfc.zkfc_world import free_port, until
from tests.local_services import restart_zookeeper

pytestmark = pytest.mark.zookeeper

SESSION_SECONDS = 5.0
WAIT_SECONDS = 40.0
OPEN = parse_acl("world:anyone:rwcda")
NN1 = ActiveNodeInfo("ns", "nn1", "host", 8020, 8019)

_scopes = itertools.count(1)


def _settings(hosts: str) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=hosts,
        session_timeout_seconds=SESSION_SECONDS,
        scope=f"/hadoop-ha/rows{next(_scopes)}",
        acl=OPEN,
    )


def _session(person: Person) -> Session:
    return person.keeper._sessions[max(person.keeper._sessions)]


async def _look(settings: ZooKeeperSettings, path: str) -> object:
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        outcome = await session.look(path)
    assert isinstance(outcome, Done)
    return outcome.value


def _was_told_last(person: Person, what: str) -> bool:
    return person.told[-1:] == [what]


async def _quiet(*those: Person) -> None:
    """Check that nothing happens for a second: Hadoop's own rows wait as long."""
    before = [list(one.told) for one in those]
    await asyncio.sleep(1.0)
    assert [one.told for one in those] == before


@pytest.mark.row("8.4 testActiveStandbyTransition")
async def test_row_8_4_active_standby_transition(zookeeper: ZooKeeper) -> None:
    async with people(_settings(zookeeper.connect), "e0", "e1") as (e0, e1):
        await seated(e0, e1)
        e0.elector.quit(keep_breadcrumb=True)
        await e1.is_(Role.ACTIVE)
        e0.join()
        await e0.is_(Role.STANDBY)
        for loser, winner in ((e1, e0), (e0, e1)):
            loser.told.clear()
            await loser.vanish()
            await winner.is_(Role.ACTIVE)
            # A role changes with the decision; the application is informed a moment later.
            await until(partial(_was_told_last, loser, "standby"), "standby again")
            assert loser.role is Role.STANDBY
            assert winner.told[-2:] == [f"fence {loser.name}", "active"]
            assert loser.told[0] == "neutral"
            assert "active" not in loser.told


@pytest.mark.row("8.4 testHandleSessionExpiration")
async def test_row_8_4_handle_session_expiration(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper.connect)
    async with people(settings, "e0") as (e0,):
        await seated(e0)
        await e0.vanish()
        await until(lambda: e0.told.count("active") == 2, "active again")
        assert e0.told[0] == e0.told[-1] == "active"
        assert "neutral" in e0.told
        e0.elector.quit(keep_breadcrumb=False)
        await e0.elector.wait_idle()
        await _quiet(e0)
        assert await _look(settings, settings.lock) is None


@pytest.mark.row("8.4 testHandleSessionExpirationOfStandby")
async def test_row_8_4_handle_session_expiration_of_standby(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper.connect)
    async with people(settings, "e0", "e1") as (e0, e1):
        await seated(e0, e1)
        await e1.vanish()
        await until(lambda: e1.told.count("standby") == 2, "standby again")
        assert "neutral" in e1.told
        for one in (e1, e0):
            one.elector.quit(keep_breadcrumb=False)
            await one.elector.wait_idle()
        await _quiet(e0, e1)
        assert "active" not in e1.told
        assert await _look(settings, settings.lock) is None


@pytest.mark.row("8.4 testDontJoinElectionOnDisconnectAndReconnect")
async def test_row_8_4_dont_join_election_on_disconnect_and_reconnect(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        java = find_java(wrapper_directory=tmp_path)
        server = start_zookeeper(supervisor, java=java, port=free_ports(1)[0])
        wait_for_zookeeper(server)
        settings = _settings(server.connect)
        async with people(settings, "never", "left") as (never, left):
            await seated(left)
            left.elector.quit(keep_breadcrumb=False)
            await left.elector.wait_idle()
            await asyncio.to_thread(server.process.kill)
            await asyncio.to_thread(restart_zookeeper, supervisor, server)
            await _quiet(never, left)
            assert never.told == []
            assert [one.elector.state.link for one in (never, left)] == [Link.CLOSED] * 2
            assert await _look(settings, settings.lock) is None


@pytest.mark.row("8.4 testSetZooKeeperACLsOnParentZnodeName")
async def test_row_8_4_set_zookeeper_acls_on_parent_znode_name(zookeeper: ZooKeeper) -> None:
    # HADOOP-14543: the znode's data is at version 1, its ACL at version 0.
    settings = _settings(zookeeper.connect)
    closed = replace(settings, acl=parse_acl("world:anyone:cdra"))
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, settings)
        assert await session.write(settings.scope, b"x", version=0) == Done(1)
    async with connected(closed, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, closed)
        assert await session.acl(settings.scope) == Done((frozenset(closed.acl), 1))


@pytest.mark.row("8.3 testGetActiveData")
async def test_row_8_3_get_active_data(zookeeper: ZooKeeper) -> None:
    settings = replace(
        _settings(zookeeper.connect),
        acl=parse_acl("auth::rwcda"),
        auth=parse_auth("digest:rows:right"),
    )
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, settings)
        assert await read_active(settings, deadline_seconds=WAIT_SECONDS) is None
        await session.create(settings.lock, encode(NN1), ephemeral=True)
        assert await read_active(settings, deadline_seconds=WAIT_SECONDS) == NN1
        with pytest.raises(ZooKeeperRefused, match="no rights"):
            await read_active(replace(settings, auth=()), deadline_seconds=WAIT_SECONDS)


@pytest.mark.row("8.3 testEnsureBaseNode")
async def test_row_8_3_ensure_base_node(zookeeper: ZooKeeper) -> None:
    top = f"/rows-nested{next(_scopes)}"
    settings = replace(
        _settings(zookeeper.connect), scope=f"{top}/b/c", acl=parse_acl("world:anyone:cdra")
    )
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, settings)
        for path in (top, f"{top}/b", f"{top}/b/c"):
            found = await session.acl(path)
            assert isinstance(found, Done)
            assert found.value[0] == frozenset(settings.acl), path


@pytest.mark.row("8.3 testParentZNodeACLs")
async def test_row_8_3_parent_znode_acls(zookeeper: ZooKeeper) -> None:
    # Hadoop's sets the ACL of every prefix; ours that of its own scope only.
    top = f"/rows-shared{next(_scopes)}"
    settings = replace(_settings(zookeeper.connect), scope=f"{top}/ns")
    closed = replace(settings, acl=parse_acl("world:anyone:cdra"))
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, settings)
    async with connected(closed, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, closed)
        assert await session.acl(closed.scope) == Done((frozenset(closed.acl), 1))
        assert await session.acl(top) == Done((frozenset(OPEN), 0))


@pytest.mark.row("8.3 testEnsureBaseNodeFails")
async def test_row_8_3_ensure_base_node_fails(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper.connect)
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        session._client.over = True  # from here on, every request meets a lost connection
        with pytest.raises(ZooKeeperUnavailable, match=r"connection lost.*may have been done"):
            await ensure_parent(session, settings)


@pytest.mark.row("8.3 testWithoutZKServer")
async def test_row_8_3_without_zk_server() -> None:
    settings = _settings(f"127.0.0.1:{free_port()}")
    began = time.monotonic()
    with pytest.raises(ZooKeeperUnavailable, match=r"[Cc]onnection refused"):
        async with connected(settings, deadline_seconds=2.0):
            pass
    assert time.monotonic() - began < 10


@pytest.mark.row("8.13 11")
async def test_8_13_11_a_breadcrumb_that_changed_hands_is_not_deleted(
    zookeeper: ZooKeeper,
) -> None:
    settings = _settings(zookeeper.connect)
    async with people(settings, "a") as (a,):
        await seated(a)
        async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
            assert await session.write(settings.breadcrumb, b"other", version=0) == Done(1)
            a.elector.quit(keep_breadcrumb=False)
            await a.elector.wait_idle()
            found = await session.read(settings.breadcrumb)
            assert isinstance(found, Done)
            assert found.value[0] == b"other"
            assert await session.look(settings.lock) == Done(None)


@pytest.mark.row("8.13 11")
async def test_8_13_11_a_breadcrumb_whose_deletion_is_lost_only_costs_a_fence(
    zookeeper: ZooKeeper,
) -> None:
    async with people(_settings(zookeeper.connect), "a", "b") as (a, b):
        await seated(a, b)
        session = _session(a)
        session._client.over = True  # neither the deletion nor the release arrives
        a.elector.quit(keep_breadcrumb=False)
        await a.elector.wait_idle()
        assert a.role is Role.INIT
        await b.is_(Role.ACTIVE)
        assert b.told == ["standby", "fence a", "active"]


@pytest.mark.row("8.13 12")
async def test_8_13_12_a_create_whose_answer_was_lost_is_found_to_be_ours(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _settings(zookeeper.connect)
    await count_locks(settings)
    transact, tried = Session.transact, list[str]()

    def losing(self: Session, parts: Sequence[Part]) -> Any:  # noqa: ANN401
        request = transact(self, parts)
        tried.append(parts[0].path)
        if len(tried) > 1:
            return request
        lost = asyncio.get_running_loop().create_future()

        def cut(_: object) -> None:
            lost.set_result(Unknown(Doubt.LOST))
            self._client._connection._socket.shutdown(2)

        request.add_done_callback(cut)
        return lost

    monkeypatch.setattr(Session, "transact", losing)
    async with people(settings, "a") as (a,):
        await seated(a)
        assert tried == [settings.lock], "found by its owner, not created again"


async def test_an_unanswered_create_leaves_one_owner_and_no_ghost(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first session's create takes effect after we have given it up.
    settings = _settings(zookeeper.connect)
    await count_locks(settings)
    transact, frozen = Session.transact, list[int]()

    def freezing(self: Session, parts: Sequence[Part]) -> Any:  # noqa: ANN401
        if not frozen:
            frozen.append(1)
            zookeeper.process.freeze()
        return transact(self, parts)

    async with people(settings, "a") as (a,):
        monkeypatch.setattr(Session, "transact", freezing)
        try:
            a.join()
            await until(lambda: a.elector.state.session == 2, "a second session")
            assert "active" not in a.told
        finally:
            zookeeper.process.thaw()
        await a.is_(Role.ACTIVE)
        async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
            facts = await asyncio.to_thread(session._client.exists, settings.lock)
        assert facts.ephemeralOwner == a.keeper.session_id
        assert a.told.count("active") == 1


@pytest.mark.parametrize("trouble", [SessionMovedError, RequestTimeoutError, ThrottledOpError])
async def test_a_trouble_of_the_servers_that_passes_is_no_reason_to_give_up(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    settings = _settings(zookeeper.connect)
    await count_locks(settings)
    transact, failed = Session.transact, list[str]()

    def failing(self: Session, parts: Sequence[Part]) -> Any:  # noqa: ANN401
        if failed:
            return transact(self, parts)
        failed.append(parts[0].path)
        answer = self._client.handler.async_result()
        answer.set_exception(trouble())
        return self._request(lambda: answer, lambda _: None)

    async with people(settings, "a") as (a,):
        monkeypatch.setattr(Session, "transact", failing)
        await seated(a)
        assert (failed, a.told) == ([settings.lock], ["active"])


@pytest.mark.row("8.13 13")
async def test_8_13_13_each_reconnect_arms_exactly_one_watch(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper.connect)
    async with people(settings, "a", "b") as (a, b):
        await seated(a, b)
        client = _session(b)._client
        for _ in range(3):
            told = len(b.told)
            client._connection._socket.shutdown(2)
            await until(_said(b, told, "neutral"), "suspended")
            await b.is_(Role.STANDBY)
            await until(lambda: len(client._data_watchers[settings.lock]) == 1, "one watch")
        await asyncio.sleep(0.7)  # three looks; their number is what is tested
        assert len(client._data_watchers[settings.lock]) == 1
        a.elector.quit(keep_breadcrumb=True)
        await b.is_(Role.ACTIVE)
        assert b.told.count("active") == 1


def _said(person: Person, after: int, word: str) -> Callable[[], bool]:
    return lambda: word in person.told[after:]


@pytest.mark.row("8.13 20")
async def test_8_13_20_clocks_that_jump_move_nobody(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_time = time.time
    async with people(_settings(zookeeper.connect), "a", "b") as (a, b):
        await seated(a, b)
        for jump in (86_400.0, -86_400.0, 0.0):
            monkeypatch.setattr(time, "time", lambda jump=jump: true_time() + jump)
            await _quiet(a, b)  # some looks, under the wrong clock
        a.elector.quit(keep_breadcrumb=True)
        await b.is_(Role.ACTIVE)
        assert a.told == ["active"]
