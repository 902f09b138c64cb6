"""A controller that is killed comes back in its session; no other becomes active in between."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.session_ticket import SessionTicket, decode_ticket, encode_ticket
from ha.service.model import ServiceState
from ha.zkfc.process.supervisor import PAUSES, TicketSlot
from tests.ha.zkfc.site import Site
from tests.ha.zkfc.test_command import _get
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port, until

SESSION_SECONDS = 10.0
"""ZooKeeper allows no more here: twenty of its ticks.  It ends no silent one before two thirds."""
EARLY_SECONDS = 5.0
DEADLINE_SECONDS = 60.0


@dataclass
class Supervised:
    """A supervised controller of an active toy NameNode, and how ZooKeeper sees its lock."""

    site: Site
    namenode: ToyNameNode
    parent: asyncio.subprocess.Process
    told: "asyncio.Task[tuple[bytes, bytes]]"
    """All that the parent and its children write."""
    zookeeper: KazooClient

    async def worker(self, *, other_than: int = 0) -> int:
        while True:
            try:
                url = f"http://127.0.0.1:{self.site.http_port}/status"
                status = await asyncio.to_thread(_get, url)
            except OSError:
                status = {}
            pid = status.get("pid")
            if isinstance(pid, int) and pid != other_than:
                return pid
            await asyncio.sleep(0.02)

    async def owner(self) -> int | None:
        path = f"/hadoop-ha/{self.site.nameservice}/ActiveStandbyElectorLock"
        stat = await asyncio.to_thread(self.zookeeper.exists, path)
        return None if stat is None else int(stat.ephemeralOwner)

    async def until_owner(self, wanted: int | None) -> None:
        while await self.owner() != wanted:
            await asyncio.sleep(0.02)


@asynccontextmanager
async def supervised(zookeeper: ZooKeeper, folder: Path) -> AsyncIterator[Supervised]:
    namenode = ToyNameNode("nn1", SharedResource())
    await namenode.start()
    site = Site(folder, zookeeper.connect, namenode.port)
    # The breadcrumb names this port, too: another one would make us another node.
    site.values["dfs.ha.zkfc.port"] = str(free_port())
    site.values["ha.zookeeper.session-timeout.ms"] = str(int(SESSION_SECONDS * 1000))
    assert (await site.run("-formatZK"))[0] == 0
    parent = await site.begin("--supervised")
    gathering = asyncio.create_task(parent.communicate())
    client = KazooClient(hosts=zookeeper.connect)
    try:
        await asyncio.to_thread(client.start)
        await until(lambda: namenode.state is ServiceState.ACTIVE, "active", seconds=30)
        yield Supervised(site, namenode, parent, gathering, client)
    finally:
        if parent.returncode is None:
            parent.kill()
        await asyncio.wait({gathering})
        await asyncio.to_thread(client.stop)
        client.close()
        await namenode.die()


@pytest.mark.zookeeper
async def test_a_killed_controller_is_back_with_its_lock(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with supervised(zookeeper, tmp_path) as made, asyncio.timeout(DEADLINE_SECONDS):
        for _ in range(2):
            worker, owner = await made.worker(), await made.owner()
            assert worker != made.parent.pid
            assert owner is not None
            seen = len(made.namenode.seen)
            os.kill(worker, signal.SIGKILL)
            await made.worker(other_than=worker)
            await until(lambda seen=seen: len(made.namenode.seen) > seen, "promoted again")  # type: ignore[misc]
            assert await made.owner() == owner
        assert "standby by ZKFC" not in made.namenode.seen
        made.parent.send_signal(signal.SIGTERM)
        assert await made.parent.wait() == 0
        assert await made.owner() is None


@pytest.mark.zookeeper
async def test_the_lock_of_a_killed_controller_goes_with_its_namenode(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with supervised(zookeeper, tmp_path) as made, asyncio.timeout(DEADLINE_SECONDS):
        worker = await made.worker()
        os.kill(worker, signal.SIGSTOP)
        await made.namenode.die()
        assert await made.owner() is not None
        os.kill(worker, signal.SIGKILL)
        async with asyncio.timeout(EARLY_SECONDS):
            await made.until_owner(None)


async def kill_whole_service(made: Supervised) -> None:
    """Kill the parent and, by the kernel, its child; wait until neither has a thread left."""
    (worker,) = await children_of(made.parent.pid)
    watched = os.pidfd_open(worker)
    try:
        made.parent.kill()
        await made.parent.wait()
        assert await asyncio.to_thread(select.select, [watched], [], [], DEADLINE_SECONDS)
    finally:
        os.close(watched)


@pytest.mark.zookeeper
async def test_a_service_killed_with_its_supervisor_is_back_with_its_lock(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with supervised(zookeeper, tmp_path) as made, asyncio.timeout(DEADLINE_SECONDS):
        owner, seen = await made.owner(), len(made.namenode.seen)
        await kill_whole_service(made)
        async with started_again(made) as again:
            await until(lambda: len(made.namenode.seen) > seen, "promoted again")
            assert await made.owner() == owner
            assert "standby by ZKFC" not in made.namenode.seen
            again.terminate()
            await asyncio.wait_for(again.wait(), DEADLINE_SECONDS)
        assert await made.owner() is None
        assert (
            list((made.site.directory / "session").iterdir()) == []
        )  # it was closed: none is left


@pytest.mark.zookeeper
async def test_the_lock_of_a_killed_service_goes_where_its_namenode_is_gone_too(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with supervised(zookeeper, tmp_path) as made, asyncio.timeout(DEADLINE_SECONDS):
        os.kill(await made.worker(), signal.SIGSTOP)
        await made.namenode.die()
        await kill_whole_service(made)
        assert await made.owner() is not None
        async with started_again(made):
            async with asyncio.timeout(EARLY_SECONDS):
                await made.until_owner(None)


async def children_of(pid: int) -> list[int]:
    text = await asyncio.to_thread(Path(f"/proc/{pid}/task/{pid}/children").read_text)
    return [int(one) for one in text.split()]


@asynccontextmanager
async def started_again(made: Supervised) -> AsyncIterator[asyncio.subprocess.Process]:
    parent = await made.site.begin("--supervised")
    gathering = asyncio.create_task(parent.communicate())
    try:
        yield parent
    finally:
        if parent.returncode is None:
            parent.kill()
        await asyncio.wait({gathering})


@pytest.mark.zookeeper
async def test_no_controller_outlives_its_parent(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    async with supervised(zookeeper, tmp_path) as made, asyncio.timeout(DEADLINE_SECONDS):
        worker = await made.worker()
        made.parent.kill()
        await made.parent.wait()
        while Path(f"/proc/{worker}/exe").exists():
            await asyncio.sleep(0.01)


def test_a_ticket_is_kept_whole_or_not_at_all() -> None:
    slot, ticket = TicketSlot(), SessionTicket(-0x1234567890ABCDEF, bytes(range(16)))
    assert slot.take() is None
    slot.put(ticket)
    assert slot.take() == ticket
    assert decode_ticket(encode_ticket(ticket)) == ticket
    slot._memory[9] ^= 1  # killed between two bytes
    assert slot.take() is None
    slot.put(None)
    assert slot.take() is None
    endless = b'{"session": 1e400, "password": ""}'
    none = (b"", b"{}", b"[1]", b'{"session": 0, "password": ""}', b'{"session": 1}')
    for bad in (*none, b"[" * 5000, endless):
        assert decode_ticket(bad) is None
    assert ticket.password.hex() not in repr(ticket)


@pytest.mark.parametrize("moment", ["before", "after_in_parent"])
def test_a_signal_at_the_moment_of_the_fork_is_not_lost(moment: str) -> None:
    """Send it while the parent does not know its child's pid, and the child has its handlers."""
    supervising = f"""
import os, signal, sys, time
from ha.zkfc.process.supervisor import supervise
os.register_at_fork({moment}=lambda: os.kill(os.getpid(), signal.SIGTERM))
sys.exit(supervise(lambda ticket, slot: time.sleep(600)))
"""
    run = [sys.executable, "-c", supervising]
    assert subprocess.run(run, timeout=DEADLINE_SECONDS, check=False).returncode == 0


def test_a_child_that_was_just_forked_hears_its_parent() -> None:
    supervising = """
import os, signal, sys, time
from ha.zkfc.process.supervisor import supervise
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGHUP))
sys.exit(supervise(lambda ticket, slot: time.sleep(600)))
"""
    run = [sys.executable, "-c", supervising]
    assert subprocess.run(run, timeout=DEADLINE_SECONDS, check=False).returncode == 0


def test_a_stop_in_the_pause_after_a_killed_child_is_a_stop_by_a_signal() -> None:
    supervising = """
import os, signal, sys
from ha.zkfc.process.supervisor import supervise
sys.exit(supervise(lambda ticket, slot: os.kill(os.getpid(), signal.SIGKILL)))
"""
    run = [sys.executable, "-u", "-c", supervising]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            killed = next(one for one in parent.stdout if "zkfc.killed" in one)
            next(one for one in parent.stdout if f"again_in_seconds={PAUSES[-1]}" in one)
            assert "by_signal=9" in killed
            parent.terminate()
            assert "zkfc.stopped_without_controller" in parent.stdout.read()
            assert parent.wait(DEADLINE_SECONDS) == 0
        finally:
            parent.kill()


def test_a_child_that_is_killed_while_it_stops_is_told() -> None:
    """Report that it has not handed over, and that its lock stays until the session expires."""
    supervising = """
import os, signal, sys, time
from ha.zkfc.process.supervisor import supervise
def serve(ticket, slot):
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(600)
sys.exit(supervise(serve))
"""
    run = [sys.executable, "-c", supervising]
    ended = subprocess.run(run, timeout=DEADLINE_SECONDS, check=False, stdout=subprocess.PIPE)
    assert ended.returncode == 128 + 9
    assert b"zkfc.stopped_without_controller by_signal=9" in ended.stdout


def test_a_controller_that_fails_is_logged_with_its_stack() -> None:
    supervising = """
import sys
from ha.zkfc.process.supervisor import supervise
def serve(ticket, slot): raise KeyError("planted")
sys.exit(supervise(serve))
"""
    run = [sys.executable, "-c", supervising]
    ended = subprocess.run(run, timeout=DEADLINE_SECONDS, check=False, stdout=subprocess.PIPE)
    assert ended.returncode == 1
    assert b"zkfc.failed" in ended.stdout
    assert b"KeyError: 'planted'" in ended.stdout


@pytest.mark.zookeeper
async def test_a_watchdogs_signal_to_the_parent_tells_where_a_stopped_controller_hangs(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Signal the main process, as systemd does; what hangs is its child."""
    async with supervised(zookeeper, tmp_path) as whole:
        worker = await whole.worker()
        os.kill(worker, signal.SIGSTOP)
        whole.parent.send_signal(signal.SIGABRT)
        async with asyncio.timeout(DEADLINE_SECONDS):
            _, said = await whole.told
        assert whole.parent.returncode == -signal.SIGABRT
        assert b"Fatal Python error: Aborted" in said
        assert b"in run_daemon" in said, said.decode()
