"""ZooKeeper's servers come one at a time: a name that does not resolve keeps none of the others.

And all znodes of a chroot are below it, on a real server.
"""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.elector.model import Role
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.servers import Servers
from ha.elector.zookeeper.settings import zookeeper_settings
from ha.elector.zookeeper.znodes import connected, ensure_parent, parent_exists
from ha.names import BRIEFLY_SECONDS, Names
from tests.ha.elector.people import people, seated

GONE = "zk-gone"


class Resolver:
    """Knows two servers; of a third name it says nothing before it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def look(self, host: str, *_: object) -> list[object]:
        if host == GONE:
            assert self.let_go.wait(60)
        if host == "zk-none":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        last = {"zk-a": ["10.0.0.1"], "zk-b": ["10.0.0.2", "10.0.0.3"], GONE: ["10.0.0.4"]}[host]
        return [(socket.AF_INET, 1, 6, "", (address, 0)) for address in last]


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    one = Resolver()
    yield one
    one.let_go.set()


def test_servers_with_an_address_come_first_and_the_others_when_they_have_one(
    resolver: Resolver,
) -> None:
    troubles: dict[str, str] = {}
    hosts = [(GONE, 1), ("zk-a", 2), ("zk-none", 3), ("zk-b", 4)]
    servers = Servers(hosts, troubles.__setitem__, lambda: False, Names(resolver.look))
    assert len(servers) == len(hosts)
    begun, coming = time.monotonic(), iter(servers)
    first = {next(coming) for _ in range(3)}
    assert first == {("zk-a", "10.0.0.1", 2), ("zk-b", "10.0.0.2", 4), ("zk-b", "10.0.0.3", 4)}
    assert time.monotonic() - begun < BRIEFLY_SECONDS + 1
    resolver.let_go.set()
    assert list(coming) == [(GONE, "10.0.0.4", 1)]
    assert troubles["zk-none:3"] == "the name zk-none does not resolve: Name or service not known"


def test_a_stopped_session_waits_for_no_name(resolver: Resolver) -> None:
    stopped = threading.Event()
    troubles: dict[str, str] = {}

    def note(server: str, why: str) -> None:
        troubles[server] = why
        stopped.set()

    servers = Servers([(GONE, 1)], note, stopped.is_set, Names(resolver.look))
    assert list(servers) == []
    assert "zk-gone does not resolve: the resolver has not answered" in troubles["zk-gone:1"]


async def test_the_last_addresses_are_kept(resolver: Resolver) -> None:
    names = Names(resolver.look)
    resolver.let_go.set()
    assert list(Servers([(GONE, 1)], noted, lambda: False, names)) == [(GONE, "10.0.0.4", 1)]
    resolver.let_go.clear()
    begun = time.monotonic()
    for _ in range(20):
        assert list(Servers([(GONE, 1)], noted, lambda: False, names)) == [(GONE, "10.0.0.4", 1)]
    assert time.monotonic() - begun < 5


@pytest.mark.zookeeper
async def test_all_znodes_are_below_a_chroot(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    conf = configured(tmp_path, f"ha.zookeeper.quorum={zookeeper.connect}/apps/hadoop")
    settings = zookeeper_settings(conf, nameservice="ns1")
    assert settings.scope == "/apps/hadoop/hadoop-ha/ns1"
    assert settings.hosts == zookeeper.connect
    async with connected(settings, deadline_seconds=20) as session:
        assert not await parent_exists(session, settings)
        await ensure_parent(session, settings)
        assert await parent_exists(session, settings)
    async with people(settings, "a", "b") as (a, b):
        await seated(a, b)
        await a.is_(Role.ACTIVE)
        async with connected(settings, deadline_seconds=20) as session:
            below = await children(session, "/apps/hadoop/hadoop-ha/ns1")
            assert {"ActiveStandbyElectorLock", "ActiveBreadCrumb"} <= below


def test_a_chroot_does_not_mend_a_parent_without_a_slash(tmp_path: Path) -> None:
    conf = configured(
        tmp_path, "ha.zookeeper.quorum=zk:1/hadoop", "ha.zookeeper.parent-znode=hadoop-ha"
    )
    with pytest.raises(ConfigurationError, match=r"parent-znode must start with a slash"):
        zookeeper_settings(conf, nameservice="ns1")


def configured(folder: Path, *overrides: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    return load_configuration(folder, overrides, environment={})


def noted(server: str, why: str) -> None:
    raise AssertionError(f"{server}: {why}")


async def children(session: Session, path: str) -> set[str]:
    return set(getattr(await session.children(path), "value", ()))
