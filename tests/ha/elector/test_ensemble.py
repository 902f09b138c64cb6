"""The election on three servers: some of them gone, sessions ended, credentials refused."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ha.elector.model import Link, Role
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent, parent_exists
from tests.ha.elector.ensemble import Ensemble, running_ensemble
from tests.ha.elector.people import Person, end_session, people
from tests.ha.zkfc.zkfc_world import until

pytestmark = pytest.mark.zookeeper

SESSION_SECONDS = 4.0
WAIT_SECONDS = 40.0
OPEN = parse_acl("world:anyone:rwcda")

_scopes = itertools.count(1)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Run the servers of all tests here."""
    with running_ensemble(tmp_path_factory.mktemp("ensemble")) as servers:
        yield servers


@pytest.fixture
def ensemble(running: Ensemble) -> Ensemble:
    """Have all three servers serve."""
    running.whole()
    return running


def _settings(ensemble: Ensemble) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=ensemble.connect,
        session_timeout_seconds=SESSION_SECONDS,
        scope=f"/hadoop-ha/ensemble{next(_scopes)}",
        acl=OPEN,
    )


def _session(person: Person) -> Session:
    return next(iter(person.keeper._sessions.values()))


async def _seated(a: Person, b: Person) -> None:
    """Make the first active, the second standby."""
    a.join()
    await a.is_(Role.ACTIVE)
    b.join()
    await b.is_(Role.STANDBY)


async def _back(person: Person, role: Role) -> None:
    await until(
        lambda: person.elector.state.link is Link.CONNECTED and person.role is role,
        f"{person.name} {role} again, not {person.elector.state}",
        seconds=WAIT_SECONDS,
    )


async def _told(person: Person, word: str) -> None:
    await until(lambda: word in person.told, f"{person.name}: {word}", seconds=WAIT_SECONDS)


async def _owner(settings: ZooKeeperSettings) -> bytes:
    """Return the name in the lock."""
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        outcome = await session.read(settings.lock)
    assert isinstance(outcome, Done)
    return outcome.value[0]


async def test_the_leader_is_killed_and_nothing_moves(ensemble: Ensemble) -> None:
    settings = _settings(ensemble)
    async with people(settings, "a", "b") as (a, b):
        await _seated(a, b)
        numbers = [one.keeper.session_id for one in (a, b)]
        await asyncio.to_thread(ensemble.kill, ensemble.leader())
        # The other two elect a new leader; until then no server serves, and all sessions suspend.
        for one in (a, b):
            await _told(one, "neutral")
        await _back(a, Role.ACTIVE)
        await _back(b, Role.STANDBY)
        assert a.told == ["active", "neutral"]
        assert [word for word in b.told if word != "standby"] == ["neutral"]
        assert [one.keeper.session_id for one in (a, b)] == numbers
        assert await _owner(settings) == b"a"


async def test_one_server_of_three_is_gone_and_its_clients_go_elsewhere(
    ensemble: Ensemble,
) -> None:
    settings = _settings(ensemble)
    follower = ensemble.modes().index("follower")
    only_there = replace(settings, hosts=ensemble.servers[follower].connect)
    async with people(only_there, "a", "b") as (a, b):
        await _seated(a, b)
        for one in (a, b):  # they sit on the follower, and have learnt of the others
            _session(one)._client.set_hosts(settings.hosts)
        numbers = [one.keeper.session_id for one in (a, b)]
        a.told.clear()
        b.told.clear()
        await asyncio.to_thread(ensemble.kill, follower)
        for one in (a, b):
            await _told(one, "neutral")
        await _back(a, Role.ACTIVE)
        await _back(b, Role.STANDBY)
        assert a.told == ["neutral"]
        assert "active" not in b.told
        assert [one.keeper.session_id for one in (a, b)] == numbers
        assert await _owner(settings) == b"a"


@pytest.mark.row("8.13 17")
async def test_8_13_17_majority_lost_for_longer_than_a_session_and_back(
    ensemble: Ensemble,
) -> None:
    settings = _settings(ensemble)
    async with people(settings, "a", "b") as (a, b):
        await _seated(a, b)
        lone = ensemble.leader()
        others = [number for number in range(3) if number != lone]
        await asyncio.to_thread(ensemble.kill, *others)
        for one in (a, b):
            await _told(one, "neutral")
        await asyncio.sleep(SESSION_SECONDS + 2.0)  # the length of the outage is what is tested
        # More than one neutral: the lone server takes clients until it misses the others.
        assert set(a.told[1:]) == {"neutral"}, "the active stays while nobody knows"
        assert set(b.told) == {"neutral", "standby"}
        assert {a.role, b.role} == {Role.NEUTRAL}
        for number in others:
            await asyncio.to_thread(ensemble.start, number)
        await until(
            lambda: {a.role, b.role} == {Role.ACTIVE, Role.STANDBY},
            f"one owner; a: {a.elector.state}, b: {b.elector.state}",
            seconds=WAIT_SECONDS,
        )
        owner = a if a.role is Role.ACTIVE else b
        assert await _owner(settings) == owner.name.encode()
        if owner is b:  # the new leader may have ended a's session: then b must have fenced a
            assert b.told[-2:] == ["fence a", "active"]
        else:
            assert "active" not in b.told


@pytest.mark.parametrize("whose", ["active", "standby"])
async def test_a_session_is_ended_by_a_second_client_with_its_password(
    ensemble: Ensemble, whose: str
) -> None:
    settings = _settings(ensemble)
    async with people(settings, "a", "b") as (a, b):
        await _seated(a, b)
        victim = a if whose == "active" else b
        number = victim.keeper.session_id
        await end_session(_session(victim), settings.hosts)
        await until(
            lambda: victim.keeper.session_id not in (None, number), "new", seconds=WAIT_SECONDS
        )
        await until(
            lambda: {a.role, b.role} == {Role.ACTIVE, Role.STANDBY}, "settled", seconds=WAIT_SECONDS
        )
        assert "neutral" in victim.told
        if victim is b:
            assert a.told == ["active"]
            assert "active" not in b.told
        elif b.role is Role.ACTIVE:
            assert b.told == ["standby", "fence a", "active"]
            assert a.told[-1] == "standby"


async def test_a_nameservice_deleted_under_its_election_is_told_with_what_to_do(
    ensemble: Ensemble,
) -> None:
    settings = _settings(ensemble)  # not formatted: to the lock's creator that is the same
    person = Person("late", settings)
    task = asyncio.create_task(person.elector.run())
    person.join()
    await until(lambda: person.told, "told", seconds=WAIT_SECONDS)
    assert person.told[0].startswith("gave up: create the lock: no node")
    assert settings.lock in person.told[0]
    assert "zkfc --format-zk" in person.told[0]
    task.cancel()
    await asyncio.wait({task})


async def test_a_wrong_digest_is_told_at_the_first_request(ensemble: Ensemble) -> None:
    # ZooKeeper takes any password at connect time, and refuses what needs rights.
    right = replace(
        _settings(ensemble), acl=parse_acl("auth::rwcda"), auth=parse_auth("digest:owner:right")
    )
    wrong = replace(right, auth=parse_auth("digest:owner:wrong"))
    async with people(right, "a") as (a,):
        a.join()
        await a.is_(Role.ACTIVE)
        stranger = Person("stranger", wrong)
        task = asyncio.create_task(stranger.elector.run())
        stranger.join()
        await until(lambda: stranger.told, "told", seconds=WAIT_SECONDS)
        assert stranger.told[0].startswith("gave up: create the lock: no rights")
        assert "wrong" not in stranger.told[0]
        task.cancel()
        await asyncio.wait({task})
        async with connected(wrong, deadline_seconds=WAIT_SECONDS) as session:
            with pytest.raises(ZooKeeperRefused, match="no rights"):
                await parent_exists(session, wrong)
        assert a.told == ["active"]


async def test_an_acl_that_closes_under_the_active_moves_nothing(ensemble: Ensemble) -> None:
    settings = _settings(ensemble)
    closed = replace(settings, acl=parse_acl("digest:nobody:nothing=:r"))
    async with people(settings, "a", "b") as (a, b):
        await _seated(a, b)
        async with connected(closed, deadline_seconds=WAIT_SECONDS) as session:
            for path in (settings.scope, settings.breadcrumb):
                assert await session.set_acl(path, acl_version=0) == Done(None)
            with pytest.raises(ZooKeeperRefused, match="no rights"):
                await ensure_parent(session, settings)
        a.elector.quit(keep_breadcrumb=True)
        # Deleting a child needs rights on the parent; the session's end takes the lock anyway.
        await until(lambda: any(w.startswith("gave up") for w in b.told), "gave up")
        assert "active" not in b.told
        assert "no rights" in b.told[-1]


async def test_credentials_of_an_unknown_scheme_are_refused_for_good(ensemble: Ensemble) -> None:
    # kazoo reports only that the session is lost, and tries no more.
    odd = replace(_settings(ensemble), auth=parse_auth("nosuchscheme:whatever"))
    with pytest.raises(ZooKeeperRefused, match=r"authentication failed.*ha\.zookeeper\.auth"):
        async with connected(odd, deadline_seconds=WAIT_SECONDS):
            pass
