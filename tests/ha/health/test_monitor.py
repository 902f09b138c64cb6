"""The monitor against a toy NameNode on a real RPC server."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from ha.health import core
from ha.health.core import MOST_UNJUDGED, Health, HealthSettings
from ha.health.monitor import HealthMonitor
from ha.health.pid_file import PidFile
from ha.service.model import ServiceState, ServiceStatus
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import until

SLOW_ROUNDS = HealthSettings(
    check_interval_seconds=30.0, retry_interval_seconds=0.02, rpc_timeout_seconds=0.3
)
TURNS = 2000
"""Within these a probe would come to its end, many times."""
QUICK_ROUNDS = HealthSettings(
    check_interval_seconds=0.02, retry_interval_seconds=0.02, rpc_timeout_seconds=0.3
)


@dataclass
class Ear:
    heard: list[object] = field(default_factory=list)
    outcomes: list[core.ProbeOutcome] = field(default_factory=list)
    raise_once: Exception | None = None
    at_report: Callable[[], None] = lambda: None

    def status_reported(self, status: ServiceStatus) -> None:
        self.heard.append(status.state)
        self.at_report()

    def health_changed(self, health: Health, reason: str) -> None:
        self.heard.append(health)
        failure, self.raise_once = self.raise_once, None
        if failure is not None:
            raise failure


@asynccontextmanager
async def _watched(
    settings: HealthSettings, *, dedicated: bool = False, process: PidFile | None = None
) -> AsyncIterator[tuple[ToyNameNode, HealthMonitor, Ear]]:
    """``dedicated``: the monitor asks at a second address, which only probes use."""
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    probed = await _second_address(namenode) if dedicated else namenode
    ear = Ear()
    monitor = HealthMonitor(
        probed.address, settings, ear, measure=lambda _, outcome: ear.outcomes.append(outcome),
        process=process,
    )  # fmt: skip
    task = asyncio.create_task(monitor.run())
    try:
        await until(lambda: monitor.state.health is Health.HEALTHY, "healthy")
        yield probed, monitor, ear
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await probed.die()
        await namenode.die()


async def _second_address(namenode: ToyNameNode) -> ToyNameNode:
    lifeline = ToyNameNode(namenode.name, namenode.resource)
    await lifeline.start()
    return lifeline


both_addresses = pytest.mark.parametrize("dedicated", [False, True], ids=["shared", "dedicated"])


@pytest.mark.row("8.5 testMonitor")
@both_addresses
async def test_row_8_5_monitor(*, dedicated: bool) -> None:
    async with _watched(QUICK_ROUNDS, dedicated=dedicated) as (namenode, monitor, ear):
        namenode.healthy = False
        await until(lambda: monitor.state.health is Health.UNHEALTHY, "unhealthy")
        namenode.healthy = True
        await until(lambda: monitor.state.health is Health.HEALTHY, "healthy")
        await namenode.die()
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "gone")
        tried = len(ear.outcomes)
        await until(lambda: len(ear.outcomes) >= tried + 3, "three reconnects")
        assert all(isinstance(one, core.Refused) for one in ear.outcomes[-3:])
        await namenode.start()
        await until(lambda: monitor.state.health is Health.HEALTHY, "reachable")
    # On leaving, the monitor was cancelled, and its task has ended.


@pytest.mark.row(
    "8.5 testHealthMonitorDies",
    "8.5 testCallbackThrowsRTE",
    because="whether the monitor fails by itself or in who listens to it, the same is seen",
)
@both_addresses
@pytest.mark.parametrize("where", ["row_8_5_health_monitor_dies", "row_8_5_callback_throws_rte"])
async def test_row_8_5_a_monitor_that_dies_says_so_and_ends(where: str, *, dedicated: bool) -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    probed = await _second_address(namenode) if dedicated else namenode
    ear = Ear()

    def exhausted(_seconds: float, _outcome: core.ProbeOutcome) -> None:
        raise MemoryError("injected")

    if where == "row_8_5_callback_throws_rte":
        ear.raise_once = RuntimeError("injected")
        monitor = HealthMonitor(probed.address, QUICK_ROUNDS, ear)
    else:
        monitor = HealthMonitor(probed.address, QUICK_ROUNDS, ear, measure=exhausted)
    with pytest.raises((MemoryError, RuntimeError), match="injected"):
        async with asyncio.timeout(30.0):
            await monitor.run()
    assert monitor.state.health is Health.MONITOR_FAILED
    assert ear.heard[-1] is Health.MONITOR_FAILED
    assert "injected" in monitor.state.reason
    await probed.die()
    await namenode.die()


async def test_a_fault_of_our_own_within_a_probe_is_no_silence_of_the_namenode() -> None:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()

    def fails() -> None:
        raise RuntimeError("injected")

    monitor = HealthMonitor(namenode.address, QUICK_ROUNDS, Ear(at_report=fails))
    with pytest.raises(RuntimeError, match="injected"):
        async with asyncio.timeout(30.0):
            await monitor.run()
    assert monitor.state.health is Health.MONITOR_FAILED
    await namenode.die()


async def test_states_follow_the_switches() -> None:
    async with _watched(QUICK_ROUNDS) as (namenode, monitor, ear):
        namenode.healthy = False
        await until(lambda: monitor.state.health is Health.UNHEALTHY, "unhealthy")
        assert "switched to unhealthy" in monitor.state.reason
        namenode.healthy = True
        await until(lambda: monitor.state.health is Health.HEALTHY, "healthy")
        await namenode.die()
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "gone")
        await namenode.start()
        await until(lambda: monitor.state.health is Health.HEALTHY, "back")
        changes = [one for one in ear.heard if isinstance(one, Health)]
        assert changes == [
            Health.HEALTHY, Health.UNHEALTHY, Health.HEALTHY, Health.NOT_RESPONDING, Health.HEALTHY,
        ]  # fmt: skip


async def test_one_that_starts_is_not_asked_for_its_health() -> None:
    async with _watched(QUICK_ROUNDS) as (namenode, monitor, ear):
        namenode.state, namenode.not_ready_reason = ServiceState.INITIALIZING, "it loads its image"
        namenode.healthy = False
        await until(lambda: monitor.state.health is Health.INITIALIZING, "starting")
        assert ear.outcomes[-1] == core.Starting("it loads its image")


async def test_a_death_is_noticed_long_before_the_next_round() -> None:
    async with _watched(SLOW_ROUNDS) as (namenode, monitor, _):
        loop = asyncio.get_running_loop()
        died_at = loop.time()
        await namenode.die()
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "gone", seconds=10.0)
        assert loop.time() - died_at < 10


async def test_the_status_comes_before_the_health_and_in_every_round() -> None:
    async with _watched(QUICK_ROUNDS) as (namenode, _, ear):
        assert ear.heard[:2] == [ServiceState.STANDBY, Health.HEALTHY]
        namenode.healthy = False
        before = ear.heard.count(ServiceState.STANDBY)
        await until(lambda: ear.heard.count(ServiceState.STANDBY) > before + 2, "reports while ill")


async def test_a_frozen_namenode_is_found_by_the_deadline() -> None:
    async with _watched(QUICK_ROUNDS) as (namenode, monitor, _):
        frozen = asyncio.Event()

        async def hang() -> None:
            await frozen.wait()

        namenode.monitor_health = hang  # type: ignore[method-assign] # a frozen process
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "not responding")
        # On a busy machine the last of several late probes may not even have connected.
        assert re.search(r"no (answer|connection) to .* within 0\.3 s", monitor.state.reason)
        frozen.set()


async def test_probe_now_does_not_wait_for_the_round() -> None:
    async with _watched(SLOW_ROUNDS) as (namenode, monitor, _):
        namenode.healthy = False
        monitor.probe_now()
        await until(lambda: monitor.state.health is Health.UNHEALTHY, "unhealthy", seconds=15.0)


async def test_a_hurried_round_is_one_and_keeps_the_connection() -> None:
    async with _watched(SLOW_ROUNDS) as (_, monitor, ear):
        connection = monitor.client
        monitor.probe_now()
        await until(lambda: len(ear.outcomes) == 2, "asked once more", seconds=15.0)
        for _ in range(TURNS):  # of the loop, which is that of both
            await asyncio.sleep(0)
        assert ear.outcomes == [core.Answered()] * 2
        assert monitor.client is connection


async def test_rounds_leave_no_tasks_behind() -> None:
    async with _watched(QUICK_ROUNDS) as (_, _, ear):
        before = len(asyncio.all_tasks())
        await until(lambda: len(ear.outcomes) > 30, "thirty rounds")
        assert len(asyncio.all_tasks()) < before + 10


async def test_a_request_for_a_probe_that_comes_during_one_has_another_follow() -> None:
    """The one that runs may have read the state before it changed, as at a takeover's end."""
    async with _watched(SLOW_ROUNDS) as (_, monitor, ear):
        requests = iter([monitor.probe_now])
        ear.at_report = lambda: next(requests, lambda: None)()
        monitor.probe_now()
        await until(lambda: len(ear.outcomes) == 3, "asked twice more", seconds=15.0)


async def test_silence_while_we_stood_still_ourselves_is_not_held_against_it() -> None:
    """Stop the machine of both: our timer is due before the NameNode can have answered."""
    async with _watched(QUICK_ROUNDS) as (namenode, monitor, ear):
        stalls = [1.0, 1.0]

        async def after_a_stall() -> None:
            if stalls:
                time.sleep(stalls.pop())  # the event loop is that of both
                await asyncio.sleep(0.05)  # as long as it takes to answer

        namenode.monitor_health = after_a_stall  # type: ignore[method-assign]
        await until(lambda: not stalls, "two stalls")
        tried = len(ear.outcomes)
        await until(lambda: len(ear.outcomes) > tried + 2, "more probes")
        assert sum(isinstance(one, core.Unjudged) for one in ear.outcomes) == 2
        assert not any(isinstance(one, core.Unanswered) for one in ear.outcomes)
        assert [one for one in ear.heard if isinstance(one, Health)] == [Health.HEALTHY]
        assert monitor.state.health is Health.HEALTHY


async def test_a_namenode_that_hangs_is_found_though_we_are_late_each_time() -> None:
    async with _watched(QUICK_ROUNDS) as (namenode, monitor, ear):
        frozen = asyncio.Event()

        async def hang() -> None:
            time.sleep(0.2)
            await frozen.wait()

        namenode.monitor_health = hang  # type: ignore[method-assign] # a frozen process
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "not responding")
        assert sum(isinstance(one, core.Unjudged) for one in ear.outcomes) == MOST_UNJUDGED + 1
        frozen.set()
