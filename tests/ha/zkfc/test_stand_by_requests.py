"""How long a request to stand by may take to connect, and when it is asked once more.

A hand-over asks the active's controller to cede over a connection that is open already.
"""

import pytest

from ha.conf.topology import HostPort
from ha.elector.model import Term
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.rpc.client import Connection, RpcConnection
from ha.rpc.errors import ConnectFailed, ConnectionLost
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, ZKFC_PROTOCOL
from ha.zkfc.handover.graceful_failover import HandOver, Situation
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.takeover_record import HandOverRequest
from ha.zkfc.surroundings.surroundings import Surroundings
from ha.zkfc.takeover.takeover import Takeover
from tests.ha.zkfc.impostors import OddController, serving
from tests.ha.zkfc.test_weaknesses import record
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.victims import Methods, crumb, settings, toy


class Connects:
    """In the place of connecting: remembers each deadline, and fails."""

    def __init__(self, failure: ConnectFailed | ConnectionLost) -> None:
        self.failure = failure
        self.deadlines: list[float] = []

    async def __call__(
        self,
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
    ) -> Connection:
        self.deadlines.append(deadline_seconds)
        raise self.failure


async def test_another_namenode_has_little_time_to_accept_and_our_own_has_its_patience() -> None:
    nobody = Connects(ConnectFailed("no route"))
    taking = Takeover(settings(1, nn2=2), around=Surroundings(connect=nobody, fence=Methods()))
    known = settings(1)
    assert known.polite_answer_seconds < known.graceful_fence_timeout_seconds
    await taking.fence(crumb("nn2", 2), Term.SETTLED)
    assert nobody.deadlines == [known.polite_answer_seconds]
    assert not await taking.demote()
    assert nobody.deadlines[1:] == [known.graceful_fence_timeout_seconds]


async def test_in_doubt_each_other_has_as_little() -> None:
    nobody = Connects(ConnectFailed("no route"))
    taking = Takeover(settings(1, nn2=2, nn3=3), around=Surroundings(connect=nobody))
    await taking.fence(crumb("nn1", 1), Term.DOUBTED)
    assert nobody.deadlines == [settings(1).polite_answer_seconds] * 2


async def test_our_own_namenode_has_the_time_of_a_promotion_to_accept_one() -> None:
    nobody = Connects(ConnectFailed("no route"))
    taking = Takeover(settings(1), around=Surroundings(connect=nobody))
    with pytest.raises(TakeoverImpossible, match="no route"):
        await taking.promote(predecessor_gone_until=0.0)
    assert nobody.deadlines == [settings(1).new_active_timeout_seconds]


async def test_a_fresh_connection_that_is_lost_is_not_made_again() -> None:
    lost = Connects(ConnectionLost("it hung up"))
    assert not await Takeover(settings(1), around=Surroundings(connect=lost)).demote()
    assert len(lost.deadlines) == 1


@pytest.mark.parametrize("refuses", [True, False])
async def test_who_has_answered_over_what_was_ready_is_not_asked_again(*, refuses: bool) -> None:
    async with toy("nn1") as one:
        one.fail_to_become_standby = refuses
        ready = await RpcConnection.open(
            HOST, one.port, protocol=HA_SERVICE_PROTOCOL, deadline_seconds=30.0
        )
        asked = list[HostPort]()

        def take_ready(server: HostPort) -> Connection:
            asked.append(server)
            return ready

        around = Surroundings(take_ready=take_ready)
        assert await Takeover(settings(one.port), around=around).demote() is not refuses
        assert len(one.seen) == 1
        assert asked == [one.address]


def hand_over(port: int, attempts: Attempts, around: Surroundings, holder: str = "nn2") -> HandOver:
    """Hand over to nn1, from nn2 whose controller listens at the port."""

    async def active() -> ActiveNodeInfo:
        return ActiveNodeInfo("ns", "nn2", HOST, 1, port)

    return HandOver(
        settings(1, nn2=2),
        attempts,
        read_active=active,
        situation=lambda: Situation(obstacle=None, serving=False, lock_holder=holder),
        end_cede=lambda: None,
        around=around,
    )


@pytest.mark.parametrize("lost", [False, True])
async def test_it_takes_what_is_ready_and_asks_again_where_that_is_lost(*, lost: bool) -> None:
    attempts, kept, opened = Attempts(), list[RpcConnection](), list[int]()

    async def win_first(millis: int) -> None:
        if millis > 0:
            attempts.add(record(1, succeeded=True))

    async def connect(
        host: str, port: int, *, protocol: str, user: str | None = None, deadline_seconds: float
    ) -> Connection:
        opened.append(port)
        return await RpcConnection.open(
            host, port, protocol=protocol, user=user, deadline_seconds=deadline_seconds
        )

    def take_ready(server: HostPort) -> Connection | None:
        return kept.pop() if kept and server == HostPort(HOST, port) else None

    controller = OddController(win_first)
    async with serving(controller) as port:
        ready = await RpcConnection.open(HOST, port, protocol=ZKFC_PROTOCOL, deadline_seconds=30.0)
        kept.append(ready)
        if lost:
            await ready.close()
        around = Surroundings(connect=connect, take_ready=take_ready)
        await hand_over(port, attempts, around).make_active(HandOverRequest("ann", "h"))
        assert ready.closed, "what was asked over it must end with it"
    assert [millis > 0 for millis in controller.asked] == [True, False], "to cede, and come back"
    assert opened == [port] * (1 + lost), "to come back, and once more where it was lost"


HOLDERS = {"nn2": True, "nn1": False, "nn9": False, "": False}
"""By whom the notices call the lock's holder: whether nn1 keeps a connection to its controller."""


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_connection_is_kept_to_the_controller_of_another_that_has_the_lock(holder: str) -> None:
    kept = hand_over(1, Attempts(), Surroundings(), holder).likely_lock_holder()
    assert (kept is not None) is HOLDERS[holder]
