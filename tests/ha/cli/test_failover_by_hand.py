"""Hadoop's TestFailoverController, row by row, with NameNodes in memory."""

from dataclasses import dataclass, field

import pytest

from fencing.model import Attempt, FencingOutcome, FencingReport, Target
from ha.cli.hadoop.manual_failover import FailoverFailed, Force, OutcomeUnknown, fail_over
from ha.conf.topology import HostPort, NameNodeAddress
from ha.service import errors
from ha.service.model import ServiceState, ServiceStatus

ACTIVE, STANDBY = ServiceState.ACTIVE, ServiceState.STANDBY


@dataclass(slots=True)
class Node:
    """One NameNode with switches for what goes wrong."""

    state: ServiceState
    ready: bool = True
    healthy: bool = True
    reachable: bool = True
    readable: bool = True
    goes_active: bool = True
    goes_standby: bool = True
    fencer_works: bool = True
    silent_when_promoted: bool = False
    fenced: int = 0


@dataclass(slots=True)
class Cluster:
    """The two of them; implements NameNodeAccess."""

    a: Node = field(default_factory=lambda: Node(ACTIVE))
    b: Node = field(default_factory=lambda: Node(STANDBY))

    def _node(self, node: NameNodeAddress) -> Node:
        found = self.a if node.namenode == "a" else self.b
        if not found.reachable:
            raise errors.ServiceUnreachable("connection refused", sent=False)
        return found

    async def status(self, node: NameNodeAddress) -> ServiceStatus:
        found = self._node(node)
        if not found.readable:
            raise errors.AccessDenied("you may not")
        return ServiceStatus(found.state, found.ready, "" if found.ready else "injected not ready")

    async def check_health(self, node: NameNodeAddress) -> None:
        if not self._node(node).healthy:
            raise errors.HealthCheckFailed("injected bad health")

    async def to_standby(self, node: NameNodeAddress) -> None:
        found = self._node(node)
        if not found.goes_standby:
            raise errors.ServiceFailed("injected failure to be standby")
        found.state = STANDBY

    async def to_active(self, node: NameNodeAddress) -> None:
        found = self._node(node)
        if found.silent_when_promoted:
            raise errors.ServiceUnreachable("no answer in time", sent=True)
        if not found.goes_active:
            raise errors.ServiceFailed("injected failure to be active")
        found.state = ACTIVE

    async def fence(self, node: NameNodeAddress) -> FencingReport:
        found = self.a if node.namenode == "a" else self.b
        found.fenced += 1
        outcome = FencingOutcome.SUCCEEDED if found.fencer_works else FencingOutcome.FAILED
        attempt = Attempt("shell(stonith)", outcome, "as told", 0.0)
        return FencingReport(Target("ns1", node.namenode, "h", 1), (attempt,), 0.0)


def address(name: str, port: int) -> NameNodeAddress:
    here = HostPort("127.0.0.1", port)
    return NameNodeAddress("ns1", name, here, here, here, here, here, here)


A, B = address("a", 1), address("b", 2)


async def failure_of(cluster: Cluster, force: Force | None = None) -> str:
    with pytest.raises(FailoverFailed) as failed:
        await fail_over(A, B, force or Force(), cluster)
    return str(failed.value)


def states(cluster: Cluster) -> tuple[ServiceState, ServiceState]:
    return cluster.a.state, cluster.b.state


def fences(cluster: Cluster) -> tuple[int, int]:
    return cluster.a.fenced, cluster.b.fenced


@pytest.mark.row("8.6 testFailoverAndFailback")
async def test_failover_and_failback() -> None:
    cluster = Cluster()
    await fail_over(A, B, Force(), cluster)
    assert states(cluster) == (STANDBY, ACTIVE)
    await fail_over(B, A, Force(), cluster)
    assert states(cluster) == (ACTIVE, STANDBY)
    assert fences(cluster) == (0, 0)


@pytest.mark.row("8.6 testFailoverFromStandbyToStandby")
async def test_failover_from_standby_to_standby() -> None:
    cluster = Cluster(a=Node(STANDBY))
    await fail_over(A, B, Force(), cluster)
    assert states(cluster) == (STANDBY, ACTIVE)


@pytest.mark.row("8.6 testFailoverFromActiveToActive")
async def test_failover_from_active_to_active() -> None:
    cluster = Cluster(b=Node(ACTIVE))
    assert "which is active" in await failure_of(cluster)
    assert states(cluster) == (ACTIVE, ACTIVE)


@pytest.mark.row("8.6 testFailoverWithoutPermission")
async def test_failover_without_permission() -> None:
    cluster = Cluster(b=Node(STANDBY, readable=False))
    assert "you may not" in await failure_of(cluster)
    assert states(cluster) == (ACTIVE, STANDBY)


@pytest.mark.row("8.6 testFailoverToUnreadyService")
async def test_failover_to_unready_service() -> None:
    cluster = Cluster(b=Node(STANDBY, ready=False))
    assert "injected not ready" in await failure_of(cluster)
    assert states(cluster) == (ACTIVE, STANDBY)
    await fail_over(A, B, Force(active=True), cluster)
    assert states(cluster) == (STANDBY, ACTIVE)


@pytest.mark.row("8.6 testFailoverToUnhealthyServiceFailsAndFailsback")
async def test_failover_to_unhealthy_service_fails_and_fails_back() -> None:
    cluster = Cluster(b=Node(STANDBY, healthy=False))
    assert "injected bad health" in await failure_of(cluster, Force(active=True))
    assert states(cluster) == (ACTIVE, STANDBY)


@pytest.mark.row("8.6 testFailoverFromFaultyServiceSucceeds")
async def test_failover_from_faulty_service_succeeds() -> None:
    cluster = Cluster(a=Node(ACTIVE, goes_standby=False))
    await fail_over(A, B, Force(), cluster)
    assert cluster.b.state is ACTIVE
    assert fences(cluster) == (1, 0)


@pytest.mark.row("8.6 testFailoverFromFaultyServiceFencingFailure")
async def test_failover_from_faulty_service_fencing_failure() -> None:
    cluster = Cluster(a=Node(ACTIVE, goes_standby=False, fencer_works=False))
    told = await failure_of(cluster)
    assert "Unable to fence a" in told
    assert "may be active" in told
    assert states(cluster) == (ACTIVE, STANDBY)
    assert fences(cluster) == (1, 0)


@pytest.mark.row("8.6 testFencingFailureDuringFailover")
async def test_fencing_failure_during_failover() -> None:
    cluster = Cluster(a=Node(ACTIVE, fencer_works=False))
    assert "no NameNode is active now" in await failure_of(cluster, Force(fence=True))
    assert states(cluster) == (STANDBY, STANDBY)


@pytest.mark.row(
    "8.6 testFailoverFromNonExistantServiceWithFencer", because="the row's name, spelt right"
)
async def test_failover_from_non_existent_service_with_fencer() -> None:
    cluster = Cluster(a=Node(ACTIVE, reachable=False))
    await fail_over(A, B, Force(), cluster)
    assert cluster.b.state is ACTIVE
    assert fences(cluster) == (1, 0)


@pytest.mark.row("8.6 testFailoverToNonExistantServiceFails", because="the row's name, spelt right")
async def test_failover_to_non_existent_service_fails() -> None:
    cluster = Cluster(b=Node(STANDBY, reachable=False))
    assert "connection refused" in await failure_of(cluster)
    assert cluster.a.state is ACTIVE


@pytest.mark.row("8.6 testFailoverToFaultyServiceFailsbackOK")
async def test_failover_to_faulty_service_fails_back_ok() -> None:
    cluster = Cluster(b=Node(STANDBY, goes_active=False))
    assert "a is active again" in await failure_of(cluster)
    assert states(cluster) == (ACTIVE, STANDBY)


@pytest.mark.row("8.6 testWeDontFailbackIfActiveWasFenced")
async def test_we_dont_fail_back_if_active_was_fenced() -> None:
    cluster = Cluster(b=Node(STANDBY, goes_active=False))
    assert "was fenced" in await failure_of(cluster, Force(fence=True))
    assert states(cluster) == (STANDBY, STANDBY)
    assert fences(cluster) == (1, 0)


@pytest.mark.row("8.6 testWeFenceOnFailbackIfTransitionToActiveFails")
async def test_we_fence_on_failback_if_transition_to_active_fails() -> None:
    cluster = Cluster(b=Node(STANDBY, goes_active=False))
    await failure_of(cluster)
    assert fences(cluster) == (0, 1)
    assert cluster.a.state is ACTIVE


@pytest.mark.row("8.6 testFailureToFenceOnFailbackFailsTheFailback")
async def test_failure_to_fence_on_failback_fails_the_failback() -> None:
    cluster = Cluster(b=Node(STANDBY, goes_active=False, fencer_works=False))
    assert "no NameNode may be active" in await failure_of(cluster)
    assert states(cluster) == (STANDBY, STANDBY)
    assert fences(cluster) == (0, 1)


@pytest.mark.row("8.6 testFailbackToFaultyServiceFails")
async def test_failback_to_faulty_service_fails() -> None:
    cluster = Cluster(a=Node(ACTIVE, goes_active=False), b=Node(STANDBY, goes_active=False))
    assert "Failback to a failed" in await failure_of(cluster)
    assert states(cluster) == (STANDBY, STANDBY)


@pytest.mark.row("8.6 testSelfFailoverFails")
async def test_self_failover_fails() -> None:
    cluster = Cluster()
    for one in (A, B):
        with pytest.raises(FailoverFailed, match="to itself"):
            await fail_over(one, one, Force(), cluster)
    assert states(cluster) == (ACTIVE, STANDBY)
    assert fences(cluster) == (0, 0)


async def test_silence_after_the_old_one_was_fenced_is_an_unknown_outcome() -> None:
    cluster = Cluster(
        a=Node(ACTIVE, goes_standby=False), b=Node(STANDBY, silent_when_promoted=True)
    )
    with pytest.raises(OutcomeUnknown, match="stopped answering"):
        await fail_over(A, B, Force(), cluster)
