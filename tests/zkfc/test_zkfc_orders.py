"""What a controller tells its own NameNode, and what it claims, without any ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.actions import Action
from ha.elector.breadcrumb import ActiveNodeInfo, encode
from ha.elector.model import AttemptNumber, Term
from ha.elector.outcome import Done, NodeFacts, Outcome
from ha.elector.settings import ZooKeeperSettings
from ha.elector.term import TermRecord, encode_term
from ha.elector.term_keeper import TermKeeper
from ha.health.core import HealthSettings
from ha.service.model import ServiceState
from ha.zkfc.controller import Controller
from ha.zkfc.settings import FencingPlan, ZkfcSettings
from tests.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode

ZOOKEEPER = ZooKeeperSettings(hosts="x", session_timeout_seconds=1, scope="/x")
ATTEMPT = AttemptNumber(1)


class Door:
    """A keeper that asks nobody."""

    last_contact: float | None = None
    session_timeout_seconds: float | None = None

    def perform(self, action: Action) -> None:
        """Nothing."""

    async def settled(self) -> None:
        """At once."""


def address(name: str, port: int) -> NameNodeAddress:
    rpc, off = HostPort(HOST, port), HostPort(HOST, 0)
    return NameNodeAddress("ns1", name, rpc, rpc, off, off, off, rpc)


def controller(own: ToyNameNode, door: Door, *others: ToyNameNode) -> Controller:
    settings = ZkfcSettings(
        own=address(own.name, own.port),
        others=tuple(address(other.name, other.port) for other in others),
        zookeeper=ZOOKEEPER,
        health=HealthSettings(),
        fencing={"": FencingPlan(methods=())},
        bind_host=HOST,
    )
    return Controller(settings, keeper=lambda _post, _released: door)


@asynccontextmanager
async def listening(*namenodes: ToyNameNode) -> AsyncIterator[None]:
    """They take calls for so long."""
    for namenode in namenodes:
        await namenode.start()
    try:
        yield
    finally:
        for namenode in namenodes:
            await namenode.cut_off()


async def test_a_namenode_whose_controller_has_no_lock_is_told_to_stand_by() -> None:
    """Its predecessor in the lock may have been fenced by words alone, and be active still."""
    namenode = ToyNameNode("nn1", SharedResource(), state=ServiceState.ACTIVE)
    async with listening(namenode):
        await controller(namenode, Door()).serve_as_standby()
        assert namenode.seen == ["standby by ZKFC"]
        assert namenode.state is ServiceState.STANDBY


async def test_a_claim_about_predecessors_ends_with_what_is_known_of_our_lock() -> None:
    """Another may become active when our session is over; a request that is read then lies."""
    resource = SharedResource()
    own, former = ToyNameNode("nn1", resource), ToyNameNode("nn2", resource)
    async with listening(own, former):
        now, door = asyncio.get_running_loop().time(), Door()
        here = controller(own, door, former)
        crumb = encode(ActiveNodeInfo("ns1", "nn2", HOST, former.port, 8019))
        for contact in (None, now - 100.0, now):
            door.last_contact, door.session_timeout_seconds = contact, 50.0
            await here.fence_old_active(ATTEMPT, crumb, Term.SETTLED)
            await here.serve_as_active(ATTEMPT)
        assert own.told_gone == [False, False, True]


class Znodes:
    """A session that reads what the test has put there."""

    def __init__(self, written_by: dict[str, tuple[bytes, int]]) -> None:
        self._written_by = written_by

    def read(self, path: str) -> asyncio.Future[Outcome[tuple[bytes, NodeFacts]]]:
        content, number = self._written_by[path]
        facts = NodeFacts(version=1, ours=False, written_by=number)
        done: asyncio.Future[Outcome[tuple[bytes, NodeFacts]]] = asyncio.Future()
        done.set_result(Done((content, facts)))
        return done


async def test_a_record_of_an_earlier_term_says_nothing_of_the_present_owner() -> None:
    keeper = TermKeeper(ZOOKEEPER)
    for written, term in ((7, Term.ENDED), (9, Term.UNKNOWN)):
        session = Znodes(
            {
                ZOOKEEPER.breadcrumb: (b"nn1", written),
                ZOOKEEPER.term: (encode_term(TermRecord(7, Term.ENDED)), 8),
            }
        )
        _, found = await keeper.read(session)  # type: ignore[arg-type] # reads only
        assert found is term
