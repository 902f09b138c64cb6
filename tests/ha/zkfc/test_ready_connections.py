"""A hand-over asks the active's controller to cede over a connection that is open already."""

import pytest

from ha.conf.topology import HostPort
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.rpc.client import Connection, RpcConnection
from ha.rpc.java_names import ZKFC_PROTOCOL
from ha.zkfc.handover.graceful_failover import HandOver, Situation
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.takeover_record import Asked
from ha.zkfc.surroundings.surroundings import Surroundings
from tests.ha.zkfc.impostors import OddController, serving
from tests.ha.zkfc.test_weaknesses import record
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.victims import settings


def hand_over(port: int, attempts: Attempts, around: Surroundings, holder: str = "nn2") -> HandOver:
    """Hand over to nn1, from nn2 whose controller listens at the port."""

    async def active() -> ActiveNodeInfo:
        return ActiveNodeInfo("ns", "nn2", HOST, 1, port)

    return HandOver(
        settings(1, nn2=2),
        attempts,
        read_active=active,
        situation=lambda: Situation(unfit=None, serving=False, lock_holder=holder),
        come_back=lambda: None,
        around=around,
    )


@pytest.mark.parametrize("lost", [False, True])
async def test_it_takes_what_is_ready_and_asks_again_where_that_is_lost(*, lost: bool) -> None:
    attempts, kept, opened = Attempts(), list[RpcConnection](), list[int]()

    async def win_first(millis: int) -> None:
        if millis > 0:
            attempts.add(record(1, succeeded=True))

    async def connect(
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
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
        await hand_over(port, attempts, around).to_us(Asked("ann", "h"))
        assert ready.closed, "what was asked over it must end with it"
    assert [millis > 0 for millis in controller.asked] == [True, False], "to cede, and come back"
    assert opened == [port] * (1 + lost), "to come back, and once more where it was lost"


HOLDERS = {"nn2": True, "nn1": False, "nn9": False, "": False}
"""By whom the notices call the lock's holder: whether nn1 keeps a connection to its controller."""


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_connection_is_kept_to_the_controller_of_another_that_has_the_lock(holder: str) -> None:
    kept = hand_over(1, Attempts(), Surroundings(), holder).likely_holder()
    assert (kept is not None) is HOLDERS[holder]
