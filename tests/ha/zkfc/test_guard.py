"""A controller that cannot act any more does not keep the lock."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.service.model import ServiceState
from ha.zkfc.guard import core
from ha.zkfc.guard.core import Sign, Stalled, Watch
from ha.zkfc.guard.duties import Duties
from ha.zkfc.guard.guard import EVENT_LOOP, STOOD_STILL, Guard
from tests.ha.zkfc.site import Site
from tests.ha.zkfc.test_first_contact import page
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port, until

INTERVAL, PATIENCE = 0.1, 1.0
SESSION_SECONDS = 4.0
DEADLINE_SECONDS = 60.0


class Played:
    """The guard's looks at one duty, by a clock that the test sets."""

    def __init__(self) -> None:
        self.watch, self.now, self.count = Watch(), 1000.0, 1
        self.stalled: Stalled | None = None

    def look(self, *, after: float = INTERVAL, sign: bool, within: float = 0.2) -> None:
        """Look once, ``after`` seconds later; ``sign``: the duty was done in between."""
        self.now += after
        self.count += sign
        self.watch, stalled = core.look(
            self.watch,
            [Sign("probes", self.count, within)],
            now=self.now,
            interval_seconds=INTERVAL,
            patience_seconds=PATIENCE,
        )
        self.stalled = self.stalled or stalled


def test_a_duty_that_is_done_is_left_alone() -> None:
    played = Played()
    for _ in range(100):
        played.look(sign=False)
        played.look(sign=True)
    assert played.stalled is None


def test_a_duty_that_is_not_done_is_found_after_its_time_and_the_patience() -> None:
    played = Played()
    began = played.now
    while played.stalled is None:
        assert played.now < began + 10
        played.look(sign=False)
    assert played.stalled.duty == "probes"
    # Not before what it has asked for itself, and a look or two after.
    assert 1.2 <= played.now - began <= 1.5


def test_a_duty_has_all_of_its_time_and_the_first_that_is_not_done_is_told() -> None:
    watch = Watch()
    signs = [Sign("election", 1, 0.5), Sign("probes", 1, 0.25)]
    told = []
    for turn in range(6):
        watch, stalled = core.look(
            watch, signs, now=turn * 0.5, interval_seconds=0.5, patience_seconds=1.0
        )
        told.append(stalled and (stalled.duty, stalled.silent_seconds, stalled.allowed_seconds))
    first = ("probes", 1.5, 1.25)
    assert told == [None, None, None, first, ("election", 2.0, 1.5), ("election", 2.5, 1.5)]


def test_a_process_that_was_stopped_gets_its_turn_before_it_is_judged() -> None:
    """SIGSTOP, or a suspended machine: by the clock alone no duty was done for an hour."""
    played = Played()
    played.look(sign=True)
    for _ in range(3):
        played.look(after=3600.0, sign=False)
        assert played.stalled is None
    for _ in range(3):
        played.look(sign=False)
    played.look(sign=True)
    assert played.stalled is None


def test_a_duty_that_has_ended_in_order_is_not_missed() -> None:
    played = Played()
    for _ in range(100):
        played.look(sign=False, within=float("inf"))
    assert played.stalled is None


async def test_the_thread_finds_a_loop_that_stands_still() -> None:
    found: list[Stalled] = []
    told = threading.Event()

    def end(stalled: Stalled) -> None:
        found.append(stalled)
        told.set()

    guard = Guard(Duties(), session_seconds=lambda: 0.4, end=end)
    async with guard.watching():
        await asyncio.sleep(0.4)
        assert not found
        assert told.wait(DEADLINE_SECONDS)  # on the event loop: nothing else runs on it now
    assert [one.duty for one in found] == [EVENT_LOOP]


async def test_the_thread_finds_a_probe_that_never_ends() -> None:
    duties, found = Duties(), list[Stalled]()
    give = duties.heartbeat_for("probes")
    async with Guard(duties, session_seconds=lambda: 0.4, end=found.append).watching():
        give(0.1)
        await until(lambda: found, "it is found", seconds=DEADLINE_SECONDS)
    assert [one.duty for one in found] == ["probes"]


class Pair:
    """Two toy NameNodes, each with a real controller, whose first one can be made to hang."""

    def __init__(self, zookeeper: ZooKeeper, folder: Path) -> None:
        resource = SharedResource(fences=lambda _: 1)
        self.nodes = [ToyNameNode(name, resource) for name in ("nn1", "nn2")]
        self._folder = folder
        self._connect = zookeeper.connect
        self.sites: list[Site] = []
        self.processes: list[asyncio.subprocess.Process] = []
        self._said: list[asyncio.Task[tuple[bytes, bytes]]] = []

    async def start(self, *arguments: str) -> None:
        """Make the first one active, and then the second one standby."""
        for node in self.nodes:
            await node.start()
        for number, node in enumerate(self.nodes):
            site = Site(self._folder, self._connect, self.nodes[0].port)
            site.nameservice = ns = self.sites[0].nameservice if self.sites else site.nameservice
            if self.sites:
                site.values = dict(self.sites[0].values)
            site.values |= {
                "dfs.ha.namenode.id": node.name,
                f"dfs.namenode.rpc-address.{ns}.nn2": f"127.0.0.1:{self.nodes[1].port}",
                f"nnha.zkfc.http-address.{ns}.{node.name}": f"127.0.0.1:{site.http_port}",
                f"dfs.ha.zkfc.port.{ns}.{node.name}": str(free_port()),
                "ha.zookeeper.session-timeout.ms": str(int(SESSION_SECONDS * 1000)),
            }
            site.values.pop("dfs.ha.zkfc.port", None)
            self.sites.append(site)
            if number == 0:
                assert (await site.run("-formatZK"))[0] == 0
            process = await site.begin(*(arguments if number == 0 else ()), blockable=number == 0)
            self.processes.append(process)
            self._said.append(asyncio.create_task(process.communicate()))
            if number == 0:
                await until(
                    lambda: self.nodes[0].state is ServiceState.ACTIVE, "active",
                    seconds=DEADLINE_SECONDS,
                )  # fmt: skip
        while not json.loads(await page(self.sites[1], "/status"))["in_election"]:
            await asyncio.sleep(0.05)

    async def worker(self) -> int:
        return int(json.loads(await page(self.sites[0], "/status"))["pid"])

    async def until_second_is_active(self) -> None:
        await until(
            lambda: self.nodes[1].state is ServiceState.ACTIVE, "the other is active",
            seconds=DEADLINE_SECONDS,
        )  # fmt: skip

    async def log_of_first(self) -> list[dict[str, object]]:
        _, err = await self._said[0]
        return [json.loads(line) for line in err.decode().splitlines()]

    async def stop(self) -> None:
        for process in self.processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*self._said)
        for node in self.nodes:
            await node.die()


@asynccontextmanager
async def a_pair(zookeeper: ZooKeeper, folder: Path, *arguments: str) -> AsyncIterator[Pair]:
    pair = Pair(zookeeper, folder)
    try:
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            await pair.start(*arguments)
            yield pair
    finally:
        await pair.stop()


@pytest.mark.zookeeper
@pytest.mark.timeout(180)
async def test_the_lock_of_a_controller_whose_loop_stands_still_goes(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with a_pair(zookeeper, tmp_path) as pair:
        os.kill(await pair.worker(), signal.SIGUSR1)
        await pair.nodes[0].die()
        await pair.until_second_is_active()
        assert await pair.processes[0].wait() == STOOD_STILL
        (last,) = [
            line for line in await pair.log_of_first() if line["event"] == "zkfc.stood_still"
        ]
        # All duties are silent then; which is overdue first is a matter of tenths of a second.
        assert last["duty"] in (EVENT_LOOP, "probes", "election")
        assert last["code"] == STOOD_STILL
        assert any("<lambda>" in str(call) for call in (last["main_thread"],))


@pytest.mark.zookeeper
@pytest.mark.timeout(180)
async def test_its_supervisor_starts_another_one_in_a_new_session(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with a_pair(zookeeper, tmp_path, "--supervised") as pair:
        before = await pair.worker()
        os.kill(before, signal.SIGUSR1)
        await pair.until_second_is_active()
        while (await pair.worker()) == before:
            await asyncio.sleep(0.05)
        await until(
            lambda: pair.nodes[0].state is ServiceState.STANDBY, "it stands by",
            seconds=DEADLINE_SECONDS,
        )  # fmt: skip
        assert 'nnha_zkfc_restarts_total{why="stood_still"} 1.0' in await page(
            pair.sites[0], "/metrics"
        )
        pair.processes[0].send_signal(signal.SIGTERM)
        assert await pair.processes[0].wait() == 0


@pytest.mark.zookeeper
@pytest.mark.timeout(180)
async def test_a_controller_that_was_stopped_for_a_while_goes_on(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Longer than its guard is patient, and longer than a session lives: it is not to blame."""
    async with a_pair(zookeeper, tmp_path) as pair:
        pid = await pair.worker()
        os.kill(pid, signal.SIGSTOP)
        await pair.until_second_is_active()
        os.kill(pid, signal.SIGCONT)
        while not json.loads(await page(pair.sites[0], "/status"))["in_election"]:
            await asyncio.sleep(0.05)
        assert await pair.worker() == pid
        assert pair.nodes[0].active_transitions == 1
