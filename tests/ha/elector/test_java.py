"""Hadoop's own ActiveStandbyElector and ours in one election."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.cluster.java import class_path
from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Role, Term
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, decode, encode
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, parent_exists, read_active
from tests.ha.elector.people import Person, people
from tests.ha.rpc.java_peer import JavaObject, JavaPeer, java_peer
from tests.ha.zkfc.zkfc_world import until
from tests.interop.relocated import relocated_zookeeper

pytestmark = [pytest.mark.interop, pytest.mark.zookeeper]

SESSION_SECONDS = 5.0
WAIT_SECONDS = 30.0
JAVAS = ActiveNodeInfo("ns1", "java", "java.example", 8020, 8019)
OURS = ActiveNodeInfo("ns1", "ours", "ours.example", 9020, 9019)

_scopes = itertools.count(1)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    zookeeper_classes = relocated_zookeeper(tmp_path_factory.mktemp("shaded"))
    with java_peer(class_path("netty-*.jar", first=zookeeper_classes)) as started:
        yield started


@dataclass
class Candidate:
    """Hadoop's elector, and what it asks of its application (which is this object)."""

    peer: JavaPeer
    settings: ZooKeeperSettings
    told: list[str] = field(default_factory=list)
    fenced: list[ActiveNodeInfo] = field(default_factory=list)
    refuse_to_serve: bool = False

    class Java:
        implements = ("org.apache.hadoop.ha.ActiveStandbyElector$ActiveStandbyElectorCallback",)

    def __post_init__(self) -> None:
        acls = self.peer.hadoop.util.ZKUtil.parseACLs("world:anyone:rwcda")
        empty = self.peer.gateway.jvm.java.util.ArrayList()
        self.elector: JavaObject = self.peer.hadoop.ha.ActiveStandbyElector(
            self.settings.hosts,
            int(SESSION_SECONDS * 1000),
            self.settings.scope,
            acls,
            empty,
            self,
            3,
            None,
        )

    def becomeActive(self) -> None:
        if self.refuse_to_serve:
            self.told.append("refused")
            refusal = self.peer.hadoop.ha.ServiceFailedException("not today")
            raise Py4JJavaError("refused", refusal)
        self.told.append("active")

    def becomeStandby(self) -> None:
        self.told.append("standby")

    def enterNeutralMode(self) -> None:
        self.told.append("neutral")

    def notifyFatalError(self, text: str) -> None:
        self.told.append(f"fatal: {text}")

    def fenceOldActive(self, data: bytes) -> None:
        self.fenced.append(decode(bytes(data)))
        self.told.append("fence")

    async def join(self) -> None:
        await asyncio.to_thread(self.elector.joinElection, encode(JAVAS))

    async def quit(self, *, keep_breadcrumb: bool) -> None:
        await asyncio.to_thread(self.elector.quitElection, keep_breadcrumb)

    async def heard(self, *words: str) -> None:
        await until(
            lambda: self.told[-len(words) :] == list(words),
            f"java: {words}, not {self.told}",
            seconds=WAIT_SECONDS,
        )


@asynccontextmanager
async def _pair(zookeeper: ZooKeeper, peer: JavaPeer) -> AsyncIterator[tuple[Person, Candidate]]:
    settings = ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=SESSION_SECONDS,
        scope=f"/hadoop-ha/java{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )
    java = Candidate(peer, settings)
    await asyncio.to_thread(java.elector.ensureParentZNode)
    try:
        async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
            assert await parent_exists(session, settings)
        async with people(settings, "ours") as (ours,):
            yield ours, java
    finally:
        await java.quit(keep_breadcrumb=True)


def _join(ours: Person) -> None:
    ours.elector.join(encode(OURS))


@pytest.mark.row("8.13 16")
async def test_8_13_16_each_takes_over_from_the_other(zookeeper: ZooKeeper, peer: JavaPeer) -> None:
    async with _pair(zookeeper, peer) as (ours, java):
        _join(ours)
        await ours.is_(Role.ACTIVE)
        await java.join()
        await java.heard("standby")
        # Java reads our lock, and we read Java's, further down.
        assert decode(bytes(await asyncio.to_thread(java.elector.getActiveData))) == OURS
        ours.elector.quit(keep_breadcrumb=True)
        await java.heard("fence", "active")
        assert java.fenced == [OURS]
        _join(ours)
        await ours.is_(Role.STANDBY)
        assert await read_active(ours.settings, deadline_seconds=WAIT_SECONDS) == JAVAS
        await java.quit(keep_breadcrumb=True)
        await ours.is_(Role.ACTIVE)
        assert ours.fenced == [JAVAS]
        # Our record next to the breadcrumb was of our own first term, not of Java's.
        assert ours.terms == [Term.UNKNOWN]


@pytest.mark.row("8.13 16")
async def test_8_13_16_a_clean_quit_leaves_nothing_to_fence_either_way(
    zookeeper: ZooKeeper, peer: JavaPeer
) -> None:
    async with _pair(zookeeper, peer) as (ours, java):
        _join(ours)
        await ours.is_(Role.ACTIVE)
        await java.join()
        await java.heard("standby")
        ours.elector.quit(keep_breadcrumb=False)
        await java.heard("active")
        assert java.fenced == []
        _join(ours)
        await ours.is_(Role.STANDBY)
        await java.quit(keep_breadcrumb=False)
        await ours.is_(Role.ACTIVE)
        assert ours.told[-1] == "active"
        assert ours.fenced == []


@pytest.mark.row("8.13 16")
async def test_8_13_16_a_session_that_ends_hands_over_either_way(
    zookeeper: ZooKeeper, peer: JavaPeer
) -> None:
    async with _pair(zookeeper, peer) as (ours, java):
        await java.join()
        await java.heard("active")
        _join(ours)
        await ours.is_(Role.STANDBY)
        # Java's own way to be gone without a word to its NameNode.
        await asyncio.to_thread(java.elector.terminateConnection)
        await ours.is_(Role.ACTIVE)
        assert ours.fenced == [JAVAS]
        second = Candidate(peer, ours.settings)
        await second.join()
        await second.heard("standby")
        await ours.vanish()
        await second.heard("fence", "active")
        assert second.fenced == [OURS]
        await ours.is_(Role.STANDBY)
        await second.quit(keep_breadcrumb=True)


@pytest.mark.row("8.13 16")
async def test_8_13_16_java_fails_to_serve_and_we_take_over(
    zookeeper: ZooKeeper, peer: JavaPeer
) -> None:
    async with _pair(zookeeper, peer) as (ours, java):
        java.refuse_to_serve = True
        _join(ours)
        await ours.is_(Role.ACTIVE)
        await java.join()
        await java.heard("standby")
        ours.elector.quit(keep_breadcrumb=True)
        await until(lambda: "refused" in java.told, "refused", seconds=WAIT_SECONDS)
        _join(ours)
        # Java steps back for a second after each failure, and that is when we win.
        await ours.is_(Role.ACTIVE)
        assert ours.fenced == [JAVAS], "Java has written its name before it asked its NameNode"


@pytest.mark.row("8.13 16")
async def test_8_13_16_java_clears_what_we_have_formatted(
    zookeeper: ZooKeeper, peer: JavaPeer
) -> None:
    async with _pair(zookeeper, peer) as (ours, java):
        _join(ours)
        await ours.is_(Role.ACTIVE)
        ours.elector.quit(keep_breadcrumb=True)
        await ours.elector.wait_idle()
        await asyncio.to_thread(java.elector.clearParentZNode)
        async with connected(ours.settings, deadline_seconds=WAIT_SECONDS) as session:
            assert await session.look(ours.settings.scope) == Done(None)
