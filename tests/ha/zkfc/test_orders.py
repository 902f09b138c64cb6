"""What a controller orders NameNodes and ZooKeeper, and what it claims, without any ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.actions import Action, DeleteBreadcrumb
from ha.elector.keeper import KazooKeeper
from ha.elector.model import AttemptNumber, Role, SessionNumber, Term
from ha.elector.state import ElectorState
from ha.elector.term import TermRecord, encode_term
from ha.elector.term_keeper import TermKeeper
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.elector.zookeeper.outcome import Done, Outcome, ZnodeFacts
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.health.core import HealthSettings
from ha.service.model import ServiceState
from ha.zkfc.candidacy.model import CedeAsked, CedeEnded, TransitionBegun
from ha.zkfc.handover.cede import Ceding
from ha.zkfc.process.controller import Controller
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings
from ha.zkfc.takeover.takeover import Takeover
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode

ZOOKEEPER = ZooKeeperSettings(
    hosts="x", session_timeout_seconds=1, scope="/x", acl=parse_acl("world:anyone:rwcda")
)
ATTEMPT = AttemptNumber(1)


class Door:
    """A keeper without ZooKeeper."""

    last_contact: float | None = None
    session_timeout_seconds: float | None = None

    def perform(self, action: Action) -> None: ...

    async def wait_idle(self) -> None: ...


def address(name: str, port: int) -> NameNodeAddress:
    rpc, off = HostPort(HOST, port), HostPort(HOST, 0)
    return NameNodeAddress("ns1", name, rpc, rpc, off, off, off, rpc)


def settings(own: ToyNameNode, *others: ToyNameNode) -> ZkfcSettings:
    return ZkfcSettings(
        own=address(own.name, own.port),
        others=tuple(address(other.name, other.port) for other in others),
        zookeeper=ZOOKEEPER,
        health=HealthSettings(),
        fencing={"": FencingPlan(methods=())},
        bind_host=HOST,
    )


def controller(own: ToyNameNode, door: Door, *others: ToyNameNode) -> Controller:
    return Controller(settings(own, *others), keeper=lambda _post, _released: door)


@asynccontextmanager
async def listening(*namenodes: ToyNameNode) -> AsyncIterator[None]:
    for namenode in namenodes:
        await namenode.start()
    try:
        yield
    finally:
        for namenode in namenodes:
            await namenode.cut_off()


async def test_a_namenode_whose_controller_has_no_lock_is_told_to_stand_by() -> None:
    """Order it: its lock's predecessor may have been fenced by words alone, and be active still."""
    namenode = ToyNameNode("nn1", SharedResource(), state=ServiceState.ACTIVE)
    async with listening(namenode):
        await controller(namenode, Door()).serve_as_standby()
        assert namenode.seen == ["standby by ZKFC"]
        assert namenode.state is ServiceState.STANDBY


async def test_one_that_answers_but_was_never_active_says_nothing_of_those_before_it() -> None:
    """nn1 may still serve reads, and nn2 have stopped while it waited for that to end."""
    former = ToyNameNode("nn2", SharedResource())
    async with listening(former):
        takeover = Takeover(settings(ToyNameNode("nn1", SharedResource()), former))
        crumb = encode(ActiveNodeInfo("ns1", "nn2", HOST, former.port, 8019))
        assert (await takeover.fence(crumb, Term.SETTLED)).gone
        assert not (await takeover.fence(crumb, Term.UNKNOWN)).gone


async def test_a_promotion_without_an_answer_is_a_failed_takeover() -> None:
    deaf = ToyNameNode("nn1", SharedResource())
    async with listening(deaf):
        pass
    with pytest.raises(TakeoverImpossible, match="Couldn't make NameNode"):
        await Takeover(settings(deaf)).promote(predecessor_gone_until=0.0)


class Halfway:
    """An election that is just taking over, or begins to while the NameNode is asked."""

    def __init__(self, *states: ElectorState) -> None:
        self._states = list(states)

    @property
    def state(self) -> ElectorState:
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]

    async def wait_idle(self) -> None: ...


@pytest.mark.parametrize("attempt", [3, 4])
async def test_a_cede_half_way_through_a_takeover_leaves_the_breadcrumb(attempt: int) -> None:
    """Leave it, as the promotion may win over the demotion, which the NameNode has confirmed."""
    namenode, decided = ToyNameNode("nn1", SharedResource()), list[object]()
    standby = ElectorState(role=Role.STANDBY, attempt=AttemptNumber(3))
    taking = ElectorState(role=Role.TAKING_OVER, attempt=AttemptNumber(attempt))
    election = Halfway(*((taking,) if attempt == 3 else (standby, taking)))
    async with listening(namenode):
        standing_back = Ceding(
            settings(namenode),
            Takeover(settings(namenode)),
            election,  # type: ignore[arg-type] # its state and its end
            decided.append,
        )
        await standing_back.cede(5.0, b"nn2's zkfc")
    assert decided[-1] == CedeAsked(5.0, needs_fencing=True)


async def test_of_two_hand_overs_one_does_not_let_go_whom_the_other_asked() -> None:
    """Keep a third NameNode from taking the lock from both, as nothing is wrong (seed 4002725)."""
    namenode, decided = ToyNameNode("nn1", SharedResource()), list[object]()
    ceded = [CedeAsked(5.0, needs_fencing=False)]
    async with listening(namenode):
        standing_back = Ceding(
            settings(namenode),
            Takeover(settings(namenode)),
            Halfway(ElectorState(role=Role.STANDBY)),  # type: ignore[arg-type] # as above
            lambda event: None if isinstance(event, TransitionBegun) else decided.append(event),
        )
        await standing_back.cede(5.0, b"nn2's zkfc")
        await standing_back.cede(5.0, b"nn3's zkfc")
        await standing_back.cede(0.0, b"nn2's zkfc")
        assert decided == ceded * 2, "nn3's hand-over wants the lock"
        await standing_back.cede(0.0, b"nn3's zkfc")
        assert decided == [*ceded * 2, CedeEnded()]
        await standing_back.cede(5.0, b"nn2's zkfc")
        standing_back.end_cede()
        assert decided[2:] == [CedeEnded(), *ceded, CedeEnded()]


async def test_who_asked_and_died_keeps_nobody_away_for_longer_than_it_asked() -> None:
    namenode, decided = ToyNameNode("nn1", SharedResource()), list[object]()
    async with listening(namenode):
        standing_back = Ceding(
            settings(namenode),
            Takeover(settings(namenode)),
            Halfway(ElectorState(role=Role.STANDBY)),  # type: ignore[arg-type] # as above
            decided.append,
        )
        await standing_back.cede(0.001, b"died")
        await standing_back.cede(5.0, b"lives")
        deadline = asyncio.get_running_loop().time() + 10.0
        while decided[-1] != CedeEnded():
            assert asyncio.get_running_loop().time() < deadline
            await standing_back.cede(0.0, b"lives")


async def test_a_claim_about_predecessors_ends_with_what_is_known_of_our_lock() -> None:
    """Another may become active when our session is over; a request that is read then lies."""
    resource = SharedResource()
    own, former = ToyNameNode("nn1", resource), ToyNameNode("nn2", resource)
    async with listening(own, former):
        now, door = asyncio.get_running_loop().time(), Door()
        here = controller(own, door, former)
        crumb = encode(ActiveNodeInfo("ns1", "nn2", HOST, former.port, 8019))
        for contact in (None, now - 48.0, now):
            door.last_contact, door.session_timeout_seconds = contact, 50.0
            await here.fence_old_active(ATTEMPT, crumb, Term.SETTLED)
            await here.serve_as_active(ATTEMPT)
        assert own.told_gone == [False, False, True]


async def test_a_promotion_does_not_begin_under_a_lock_that_is_older_than_a_session() -> None:
    """Stop our process before it: until it hears so, it believes that its lock stands."""
    own = ToyNameNode("nn1", SharedResource())
    async with listening(own):
        door = Door()
        here = controller(own, door)
        door.last_contact = asyncio.get_running_loop().time() - 51.0
        door.session_timeout_seconds = 50.0
        with pytest.raises(TakeoverImpossible, match="the lock may be another's"):
            await here.serve_as_active(ATTEMPT)
        assert own.seen == []


class Znodes:
    """A session that reads what the test has put there."""

    def __init__(self, written_by: dict[str, tuple[bytes, int]]) -> None:
        self._written_by = written_by

    def read(self, path: str) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]]:
        content, number = self._written_by[path]
        facts = ZnodeFacts(version=1, ours=False, written_by=number)
        done: asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]] = asyncio.Future()
        done.set_result(Done((content, facts)))
        return done


async def test_a_breadcrumb_is_deleted_at_the_version_that_we_wrote() -> None:
    """Spare the next owner's: a lock can be deleted by hand."""
    asked: list[tuple[str, int]] = []

    class Deletes:
        def delete(self, path: str, *, version: int = -1) -> asyncio.Future[Outcome[None]]:
            asked.append((path, version))
            return asyncio.Future()

    keeper = KazooKeeper(ZOOKEEPER, lambda _event: None)
    keeper._sessions[SessionNumber(1)] = Deletes()  # type: ignore[assignment] # deletes only
    keeper.perform(DeleteBreadcrumb(SessionNumber(1), 7))
    assert asked == [(ZOOKEEPER.breadcrumb, 7)]


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
