"""A pid file distinguishes the end of a local NameNode's process from a missing answer."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from ha.health.core import Health, HealthSettings, Trouble
from ha.health.monitor import HealthMonitor
from ha.health.pid_file import Ended, PidFile, Running, Unknown
from tests import balance
from tests.ha.health.test_monitor import TURNS, Ear
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import until

RARE_ROUNDS = HealthSettings(
    check_interval_seconds=60.0, retry_interval_seconds=0.02, rpc_timeout_seconds=5.0, refusals=1000
)


@pytest.fixture
def process() -> "Iterator[subprocess.Popen[bytes]]":
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


@asynccontextmanager
async def _watched(
    path: Path,
    settings: HealthSettings = RARE_ROUNDS,
    heartbeat: Callable[[float], None] = lambda _: None,
) -> AsyncIterator[tuple[ToyNameNode, HealthMonitor]]:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    monitor = HealthMonitor(
        namenode.address, settings, Ear(), process=PidFile(path), heartbeat=heartbeat
    )
    task = asyncio.create_task(monitor.run())
    try:
        await until(lambda: monitor.state.health is Health.HEALTHY, "healthy")
        yield namenode, monitor
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await namenode.die()


@pytest.mark.row("W16")
async def test_w16_a_dead_process_is_noticed_at_once_though_its_sockets_live(
    tmp_path: Path, process: "subprocess.Popen[bytes]"
) -> None:
    path = tmp_path / "namenode.pid"
    path.write_text(f"{process.pid}\n")
    async with _watched(path) as (_, monitor):
        process.kill()
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "noticed", seconds=5.0)
        assert monitor.state.trouble is Trouble.GONE
        assert f"process {process.pid} of {path} has ended" in monitor.state.reason


async def test_the_end_of_a_process_cuts_one_rest_short_and_no_other(
    tmp_path: Path, process: "subprocess.Popen[bytes]"
) -> None:
    path = tmp_path / "namenode.pid"
    path.write_text(f"{process.pid}\n")
    settings = HealthSettings(check_interval_seconds=60.0, retry_interval_seconds=60.0)
    beats: list[float] = []
    async with _watched(path, settings, beats.append) as (_, monitor):
        process.kill()
        await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "noticed")
        rested = len(beats)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert len(beats) <= rested + 1


@pytest.mark.row("W16")
async def test_w16_a_living_process_that_does_not_listen_is_another_matter(
    tmp_path: Path, process: "subprocess.Popen[bytes]"
) -> None:
    path = tmp_path / "namenode.pid"
    path.write_text(str(process.pid))
    ear = Ear()
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    settings = HealthSettings(check_interval_seconds=60.0, retry_interval_seconds=0.02, refusals=3)
    monitor = HealthMonitor(namenode.address, settings, ear, process=PidFile(path))
    task = asyncio.create_task(monitor.run())
    await until(lambda: monitor.state.health is Health.HEALTHY, "healthy")
    await namenode.die()
    await until(lambda: monitor.state.health is Health.NOT_RESPONDING, "deaf")
    assert f"process {process.pid} runs, but nobody listens at" in monitor.state.reason
    assert "3 of the last 3" in monitor.state.reason
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_stale_file_does_not_overrule_a_connection_that_was_accepted(
    tmp_path: Path, process: "subprocess.Popen[bytes]"
) -> None:
    path = tmp_path / "namenode.pid"
    path.write_text(str(process.pid))
    process.kill()
    process.wait()
    async with _watched(path) as (namenode, monitor):
        namenode.healthy = False
        monitor.probe_now()
        await until(lambda: monitor.state.health is Health.UNHEALTHY, "asked again")


def test_what_a_pid_file_tells(tmp_path: Path, process: "subprocess.Popen[bytes]") -> None:
    path = tmp_path / "namenode.pid"
    watched = PidFile(path)
    assert isinstance(watched.look(), Unknown)
    path.write_text("nonsense")
    assert "holds no number" in getattr(watched.look(), "reason", "")
    path.write_text("-1")
    assert isinstance(watched.look(), Unknown)
    path.write_text(str(2**40))  # no number of a process, and no system call takes it
    watched.hold()
    assert isinstance(watched.look(), Unknown)
    path.write_text(str(process.pid))
    watched.hold()
    assert watched.look() == Running(process.pid)
    process.kill()
    process.wait()
    assert watched.look() == Ended(process.pid, answered=True)
    path.unlink()  # as a clean stop does
    assert watched.look() == Ended(process.pid, answered=True)
    path.write_text(str(os.getpid()))  # restarted
    assert watched.look() == Running(os.getpid())
    watched.hold()
    assert watched.look() == Running(os.getpid())
    watched.close()


@pytest.mark.parametrize("ends", [True, False])
async def test_the_loop_watches_a_process_only_as_long_as_it_is_waited_for(
    tmp_path: Path, process: "subprocess.Popen[bytes]", *, ends: bool
) -> None:
    path = tmp_path / "namenode.pid"
    path.write_text(str(process.pid))
    watched = PidFile(path)
    watched.hold()
    (descriptor,) = [
        number for number, of in balance.descriptors().items() if of == "anon_inode:[pidfd]"
    ]
    waits = asyncio.create_task(watched.wait_ended())
    await asyncio.sleep(0)
    process.kill() if ends else waits.cancel()
    await asyncio.wait([waits], timeout=30.0)
    assert waits.done()
    assert not asyncio.get_running_loop().remove_reader(descriptor)
    watched.close()


@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (None, Running(4711)),
        (ProcessLookupError, Ended(4711, answered=False)),
        (PermissionError, Running(4711)),  # another user's
    ],
)
def test_what_a_number_tells_that_was_never_seen_to_answer(
    failure: type[OSError] | None,
    seen: Running | Ended,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def kill(pid: int, number: int) -> None:
        asked.append((pid, number))
        if failure is not None:
            raise failure

    monkeypatch.setattr(os, "kill", kill)
    path = tmp_path / "namenode.pid"
    path.write_text("4711")
    assert PidFile(path).look() == seen
    assert asked == [(4711, 0)]
