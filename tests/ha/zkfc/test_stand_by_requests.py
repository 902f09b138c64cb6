"""How long a request to stand by may take to connect, and when it is asked once more."""

import pytest

from ha.conf.topology import HostPort
from ha.elector.model import Term
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.rpc.client import Connection, RpcConnection
from ha.rpc.errors import ConnectFailed, ConnectionLost
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.zkfc.surroundings.surroundings import Surroundings
from ha.zkfc.takeover.takeover import Takeover
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
