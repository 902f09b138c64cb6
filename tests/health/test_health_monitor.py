"""The monitor against a toy NameNode on a real RPC server (hadoop-ha 8.5, limits.md 7)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from ha.health.core import Health, HealthSettings
from ha.health.monitor import HealthMonitor
from ha.service.model import ServiceState, ServiceStatus
from tests.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.zkfc.zkfc_world import until

SLOW_ROUNDS = HealthSettings(
    check_interval_seconds=30.0, retry_interval_seconds=0.02, rpc_timeout_seconds=0.3
)
QUICK_ROUNDS = HealthSettings(
    check_interval_seconds=0.02, retry_interval_seconds=0.02, rpc_timeout_seconds=0.3
)


@dataclass
class Ear:
    """Notes what the monitor says."""

    heard: list[object] = field(default_factory=list)

    def status_reported(self, status: ServiceStatus) -> None:
        self.heard.append(status.state)

    def health_changed(self, health: Health, reason: str) -> None:
        self.heard.append(health)


@asynccontextmanager
async def _watched(
    settings: HealthSettings,
) -> AsyncIterator[tuple[ToyNameNode, HealthMonitor, Ear]]:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    ear = Ear()
    monitor = HealthMonitor(namenode.address, settings, ear)
    task = asyncio.create_task(monitor.run())
    try:
        await until(lambda: monitor.state.health is Health.HEALTHY, "healthy")
        yield namenode, monitor, ear
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
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


async def test_a_death_is_noticed_long_before_the_next_round() -> None:
    async with _watched(SLOW_ROUNDS) as (namenode, monitor, _):
        loop = asyncio.get_running_loop()
        died_at = loop.time()
        await namenode.die()
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "gone", seconds=1.0)
        assert loop.time() - died_at < 0.05


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
        assert "monitorHealth" in monitor.state.reason
        frozen.set()


async def test_probe_now_does_not_wait_for_the_round() -> None:
    async with _watched(SLOW_ROUNDS) as (namenode, monitor, _):
        namenode.healthy = False
        monitor.probe_now()
        await until(lambda: monitor.state.health is Health.UNHEALTHY, "unhealthy", seconds=1.0)
