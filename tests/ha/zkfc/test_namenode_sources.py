"""Our NameNode refuses a transition that the wrong kind of requester asks for."""

from typing import cast

import pytest

from ha.rpc.protocol import Call
from ha.service.errors import AccessDenied, HealthCheckFailed, ServiceFailed
from ha.service.model import RequestSource
from namenode_sim.process.ha_service import NameNodeHaService
from namenode_sim.term.namenode import NameNode

USER, FORCED, ZKFC = RequestSource.USER, RequestSource.USER_FORCED, RequestSource.ZKFC
REFUSED = [
    (True, USER, "hdfs", "automatic failover is on"),
    (False, ZKFC, "hdfs", "asked by a ZKFC"),
    (True, ZKFC, "mallory", "not the superuser"),
    (True, FORCED, "mallory", "not the superuser"),
    (False, USER, "mallory", "not the superuser"),
]
TAKEN = [(True, ZKFC), (True, FORCED), (False, USER), (False, FORCED)]


class Untouched:
    """Stands for a NameNode that no request may reach, and notes those that do."""

    name = "nn1"

    def __init__(self) -> None:
        self.touched: list[str] = []

    async def become_active(self, *, predecessor_gone_until: float) -> None:
        self.touched.append("active")

    async def become_standby(self) -> None:
        self.touched.append("standby")


def face(namenode: Untouched, *, automatic: bool) -> NameNodeHaService:
    return NameNodeHaService(
        cast("NameNode", namenode), superuser="hdfs", automatic_failover=automatic,
        disk_trouble=lambda: None,
    )  # fmt: skip


def call(user: str) -> Call:
    return Call("p", "m", b"c" * 16, 0, 0, user, None, "h")


@pytest.mark.parametrize(("automatic", "source", "user", "why"), REFUSED)
async def test_refused(automatic: bool, source: RequestSource, user: str, why: str) -> None:
    namenode = Untouched()
    served = face(namenode, automatic=automatic)
    with pytest.raises(AccessDenied, match=why):
        await served.transition_to_active(source, call(user))
    with pytest.raises(AccessDenied, match=why):
        await served.transition_to_standby(source, call(user))
    assert namenode.touched == []


@pytest.mark.parametrize(("automatic", "source"), TAKEN)
async def test_taken(automatic: bool, source: RequestSource) -> None:
    namenode = Untouched()
    served = face(namenode, automatic=automatic)
    await served.transition_to_active(source, call("hdfs"))
    await served.transition_to_standby(source, call("hdfs"))
    assert namenode.touched == ["active", "standby"]


@pytest.mark.row("8.11 HC.testNNHealthCheckWithSafemodeAsUnhealthy")
@pytest.mark.parametrize("configured", [False, True])
async def test_nn_health_check_with_safemode_as_unhealthy(configured: bool) -> None:
    namenode, tip = Untouched(), ["The reported blocks 0 needs additional 1 blocks"]
    served = NameNodeHaService(
        cast("NameNode", namenode), superuser="hdfs", automatic_failover=True,
        not_active_in_safe_mode=configured, disk_trouble=lambda: None,
    )  # fmt: skip
    served.loaded(cast("NameNode", namenode), lambda: tip[0])
    if configured:
        with pytest.raises(HealthCheckFailed, match="UNHEALTHY to ZKFC in Safemode"):
            await served.monitor_health()
        with pytest.raises(ServiceFailed, match=r"still in safe mode\. The reported"):
            await served.transition_to_active(RequestSource.ZKFC, call("hdfs"))
        assert namenode.touched == []
        tip[0] = ""
    await served.monitor_health()
    await served.transition_to_active(RequestSource.ZKFC, call("hdfs"))
    assert namenode.touched == ["active"]
