"""The election on three servers: some of them gone, sessions ended, credentials refused."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from deploy.local.cluster import zookeeper
from deploy.local.cluster.java import Java, find_java
from deploy.local.cluster.ports import HOST, free_ports
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Link, Role
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.errors import ZooKeeperRefused
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent, parent_exists
from tests import balance, local_services
from tests.ha.elector.people import Person, end_session, people, seated
from tests.ha.zkfc.zkfc_world import until

SERVERS = 3
SETTLE_SECONDS = 40.0
"""Three JVMs that start at once on a busy machine of two cores."""

_CONFIGURATION = """\
dataDir={data}
clientPort={port}
clientPortAddress={host}
tickTime=500
initLimit=20
syncLimit=6
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
maxClientCnxns=0
{servers}
"""


@dataclass(slots=True)
class Ensemble:
    """The servers by number; each may be killed and started again on its data."""

    supervisor: Supervisor
    servers: list[ZooKeeper] = field(default_factory=list)

    @property
    def connect(self) -> str:
        return ",".join(server.connect for server in self.servers)

    def modes(self) -> list[str]:
        """Return each server's mode: leader, follower, or nothing while it does not serve."""
        return [_mode(server) for server in self.servers]

    def leader(self) -> int:
        return self.modes().index("leader")

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            self.servers[number].process.kill()

    def whole(self) -> None:
        """Start what does not run, and wait until one leads and the others follow."""
        for number, server in enumerate(self.servers):
            if not server.process.running:
                with balance.kept():
                    process = self.supervisor.start(server.process.name, server.process.argv)
                self.servers[number] = ZooKeeper(server.host, server.port, process)
        self.settle(SERVERS)

    def start(self, number: int) -> None:
        with balance.kept():
            self.servers[number] = local_services.restart_zookeeper(
                self.supervisor, self.servers[number]
            )

    def settle(self, count: int) -> None:
        """Wait until ``count`` servers serve, one of them as the leader."""
        wait_until(
            lambda: sorted(filter(None, self.modes())) == ["follower"] * (count - 1) + ["leader"],
            what=f"{count} of the ensemble's servers to serve",
            deadline_seconds=SETTLE_SECONDS,
            poll_seconds=0.05,
        )


@contextlib.contextmanager
def running_ensemble(directory: Path) -> Iterator[Ensemble]:
    java = find_java(wrapper_directory=directory)
    with Supervisor(directory) as supervisor:
        ports = free_ports(3 * SERVERS)
        made = Ensemble(supervisor)
        for number in range(SERVERS):
            made.servers.append(_start(supervisor, java, number, ports))
        made.settle(SERVERS)
        for server in made.servers:
            zookeeper.wait_for_zookeeper(server)
        yield made


def _start(supervisor: Supervisor, java: Java, number: int, ports: tuple[int, ...]) -> ZooKeeper:
    directory = supervisor.directory / f"server{number}"
    data = directory / "data"
    data.mkdir(parents=True)
    (data / "myid").write_text(f"{number + 1}\n")
    clients, peers, elections = ports[:SERVERS], ports[SERVERS : 2 * SERVERS], ports[2 * SERVERS :]
    servers = "\n".join(
        f"server.{index + 1}={HOST}:{peers[index]}:{elections[index]}" for index in range(SERVERS)
    )
    configuration = directory / "zoo.cfg"
    configuration.write_text(
        _CONFIGURATION.format(data=data.resolve(), port=clients[number], host=HOST, servers=servers)
    )
    argv = zookeeper.server_argv(java, configuration, "-Xmx128m")
    return ZooKeeper(HOST, clients[number], supervisor.start(f"server{number}", argv))


def _mode(server: ZooKeeper) -> str:
    answer = zookeeper.four_letters(server.host, server.port, "srvr")
    return answer.partition("Mode: ")[2].partition("\n")[0].strip()


pytestmark = pytest.mark.zookeeper

SESSION_SECONDS = 4.0
WAIT_SECONDS = 40.0
OPEN = parse_acl("world:anyone:rwcda")

_scopes = itertools.count(1)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with running_ensemble(tmp_path_factory.mktemp("ensemble")) as servers:
        yield servers


@pytest.fixture
def ensemble(running: Ensemble) -> Ensemble:
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


async def _back(person: Person, role: Role) -> None:
    await until(
        lambda: person.elector.state.link is Link.CONNECTED and person.role is role,
        f"{person.name} {role} again, not {person.elector.state}",
        seconds=WAIT_SECONDS,
    )


async def _told(person: Person, word: str) -> None:
    await until(lambda: word in person.told, f"{person.name}: {word}", seconds=WAIT_SECONDS)


async def _owner(settings: ZooKeeperSettings) -> bytes:
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        outcome = await session.read(settings.lock)
    assert isinstance(outcome, Done)
    return outcome.value[0]


async def test_the_leader_is_killed_and_nothing_moves(ensemble: Ensemble) -> None:
    settings = _settings(ensemble)
    async with people(settings, "a", "b") as (a, b):
        await seated(a, b)
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
        await seated(a, b)
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
        await seated(a, b)
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
        await seated(a, b)
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
            await a.is_(Role.STANDBY)


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
        await seated(a)
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
        await seated(a, b)
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
