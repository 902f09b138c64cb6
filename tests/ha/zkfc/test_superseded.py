"""A process that was active and hangs is ended when another is active, and never before."""

import asyncio
import itertools
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.errors import ZooKeeperUnavailable
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.health.core import HealthSettings
from ha.notices.board import utc_now
from ha.notices.model import Member
from ha.notices.seen import FREE, Notices
from ha.service.model import ServiceState, ServiceStatus
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.process_watch import Watched, watch_process
from ha.zkfc.takeover import superseded
from ha.zkfc.takeover.superseded import Answer, Seen, Supersession
from ha.zkfc.takeover.superseded_process import SupersededProcess
from tests.ha.zkfc.test_predecessor import a_process, identity
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import until
from tests.log_lines import captured

A, V = Answer, Supersession


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("successor", ["", "nn2"])
@pytest.mark.parametrize("answer", Answer)
@pytest.mark.parametrize("silent", [0, 1, 5])
def test_the_rule(ours: bool, successor: str, answer: Answer, silent: int) -> None:
    """Try every combination.  Only one ends it: silent again, with another active in its place."""
    seen = Seen(ours=ours, successor=successor, answer=answer)
    counted, verdict = superseded.judge(silent, seen)
    if ours or answer is A.STANDS_BY:
        assert verdict is V.LEAVE
    elif successor and answer is A.SILENT and silent >= 1:
        assert verdict is V.END
    else:
        assert verdict is V.LOOK_AGAIN
    if not successor or answer in (A.SERVES, A.STANDS_BY):
        assert counted == 0


def test_one_missed_deadline_ends_nobody() -> None:
    for before in itertools.product(Answer, ["", "nn2"]):
        _, verdict = superseded.judge(0, Seen(ours=False, successor=before[1], answer=before[0]))
        assert verdict is not V.END


def a_member(namenode: str, state: ServiceState) -> Member:
    return Member(
        namenode=namenode, zkfc_http="", zkfc_rpc="", pid=1, started=utc_now(), health="healthy",
        state=state.value, ready=True, not_ready_reason="", nofailover=False, priority=100,
        in_election=True, out_because="", version="",
    )  # fmt: skip


@dataclass
class Scene:
    """What the follower is given, and the process that it follows."""

    process: subprocess.Popen[bytes]
    namenode: ToyNameNode
    notices: Notices = field(default_factory=Notices)
    holder: str | None = None
    away: bool = False
    ours: bool = False
    looks: int = 0
    """How often its NameNode was asked; it never answers."""
    answers: ServiceState | None = None
    """What it answers after all."""

    async def read_active(self) -> ActiveNodeInfo | None:
        if self.away:
            raise ZooKeeperUnavailable("away")
        return None if self.holder is None else ActiveNodeInfo("ns", self.holder, "h", 1, 2)

    def taken_over(self, by: str = "nn2") -> None:
        self.holder = by
        self.notices = Notices(members=(a_member(by, ServiceState.ACTIVE),), lock_holder=by)

    @property
    def ended(self) -> bool:
        return (
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        )


@dataclass
class Foreign:
    """A process of another user's."""

    watched: Watched

    def ended(self, *, wait_millis: int = 0) -> bool:
        return self.watched.ended(wait_millis=wait_millis)

    def kill(self) -> None:
        raise PermissionError("not permitted")

    def close(self) -> None:
        self.watched.close()


@asynccontextmanager
async def scene(
    *, wanted: bool = True, before: bool = False, foreign: bool = False
) -> AsyncIterator[tuple[Scene, SupersededProcess]]:
    """Make the process active; its NameNode's server takes connections, and nothing answers."""
    namenode = ToyNameNode("nn1", SharedResource(), state=ServiceState.ACTIVE)
    await namenode.start()
    over = asyncio.Event()

    async def hang() -> ServiceStatus:
        made.looks += 1
        if made.answers is None:
            await over.wait()
        return ServiceStatus(made.answers or namenode.state, True, "", None)

    namenode.status = hang  # type: ignore[method-assign] # a frozen process
    own = NameNodeAddress(
        nameservice="ns", namenode="nn1", rpc=namenode.address, service=namenode.address,
        http=HostPort("h", 0), zkfc=HostPort("h", 0), zkfc_http=HostPort("h", 0),
        lifeline=namenode.address,
    )  # fmt: skip
    settings = ZkfcSettings(
        own=own, others=(), bind_host="h", health=HealthSettings(),
        zookeeper=ZooKeeperSettings(hosts="h:1", session_timeout_seconds=1.0, scope="/x"),
        end_superseded=wanted,
    )  # fmt: skip
    with a_process() as process:
        made = Scene(process, namenode)
        if before:
            made.taken_over()
        follower = SupersededProcess(
            settings,
            ours=lambda: made.ours,
            notices=lambda: made.notices,
            read_active=made.read_active,
        )
        watched = watch_process(identity(process))
        assert watched is not None
        follower.follow(identity(process), Foreign(watched) if foreign else watched)
        try:
            yield made, follower
        finally:
            follower.stop()
            over.set()
            process.kill()
            await namenode.die()


async def looks(made: Scene, more: int = 4) -> None:
    """Wait for ``more`` looks at it."""
    before = made.looks
    await until(lambda: made.looks >= before + more, "more looks", seconds=60.0)


async def test_it_is_ended_when_another_has_taken_over() -> None:
    async with scene() as (made, _):
        await looks(made)
        assert not made.ended
        made.taken_over()
        await until(lambda: made.ended, "ended", seconds=60.0)
        assert made.process.wait() == -9


async def test_one_that_we_may_not_end_is_named() -> None:
    async with scene(foreign=True) as (made, follower):
        with captured("zkfc.superseded.") as lines:
            await looks(made)
            made.taken_over()
            await until(lambda: not follower.following, "it is given up", seconds=60.0)
        (line,) = lines
        assert (line["event"], line["log_level"]) == ("zkfc.superseded.not_ended", "error")
        assert (line["why"], line["successor"]) == ("not permitted", "nn2")
        assert not made.ended


async def test_only_the_process_that_was_active_last_is_followed() -> None:
    async with scene() as (made, follower):
        await looks(made)
        with a_process() as later:
            watched = watch_process(identity(later))
            assert watched is not None
            follower.follow(identity(later), watched)
            await looks(made)
            tasks = [task.get_name() for task in asyncio.all_tasks()]
            assert tasks.count("superseded process") == 1
            made.taken_over()
            await until(lambda: later.poll() is not None, "ended", seconds=60.0)
        assert not made.ended


NO_PROOF = {
    "nobody has the lock": Notices(lock_holder=FREE),
    "its own controller has it": Notices(lock_holder="nn1"),
    "another has it and is not active yet": Notices(
        lock_holder="nn2", members=(a_member("nn2", ServiceState.STANDBY),)
    ),
    "another is active without the lock": Notices(
        lock_holder=FREE, members=(a_member("nn2", ServiceState.ACTIVE),)
    ),
}


@pytest.mark.parametrize("notices", NO_PROOF.values(), ids=NO_PROOF)
async def test_silence_alone_ends_nobody(notices: Notices) -> None:
    async with scene() as (made, _):
        made.notices, made.holder = notices, "nn2"
        await looks(made)
        assert not made.ended


async def test_what_was_read_before_it_lost_the_lock_proves_nothing() -> None:
    """Another was active before it, and nothing was heard from ZooKeeper since."""
    async with scene(before=True) as (made, _):
        await looks(made)
        assert not made.ended


@pytest.mark.parametrize("holder", [None, "nn1", "nn3"])
async def test_zookeeper_itself_must_say_so(holder: str | None) -> None:
    async with scene() as (made, _):
        made.taken_over()
        made.holder = holder
        await looks(made)
        made.away = True
        await looks(made)
        assert not made.ended


async def test_one_that_answers_is_left_to_who_demotes_it() -> None:
    async with scene() as (made, follower):
        made.answers = ServiceState.ACTIVE
        made.taken_over()
        await looks(made)
        made.answers = ServiceState.STANDBY
        await until(lambda: not follower.following, "it is left", seconds=60.0)
        assert not made.ended


async def test_the_setting_is_obeyed() -> None:
    async with scene(wanted=False) as (made, follower):
        assert not follower.following
        assert not made.ended
