"""An election with a fault at each await: no session, lock or task is left, and the next one ends.

Each life takes over from another controller's NameNode (fencing, breadcrumb, promotion, record of
the term), and leaves the election again.
"""

import asyncio

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.events import Event
from ha.elector.keeper import KazooKeeper
from ha.elector.model import AttemptNumber, Role, Term
from ha.elector.runner import Elector
from ha.elector.state import ElectorState
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from tests import awaits
from tests.awaits import Cuts, Fault

pytestmark = pytest.mark.zookeeper

OTHERS = b"another controller's NameNode"
KEPT = frozenset({"anon_inode:"})
"""The session of the test itself has one whenever kazoo waits for its server."""


class Candidate:
    """A controller that becomes active, or tries again as long as an attempt fails."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.active = asyncio.Event()
        self.elector = Elector(
            name="nn1", application=self, keeper=lambda post: KazooKeeper(settings, post)
        )

    def join(self) -> None:
        self.elector.join(b"nn1")

    async def fence_old_active(self, attempt: AttemptNumber, content: bytes, term: Term) -> None:
        assert content == OTHERS
        await asyncio.sleep(0)

    async def serve_as_active(self, attempt: AttemptNumber) -> None:
        await asyncio.sleep(0)

    async def serve_as_standby(self) -> None:
        await asyncio.sleep(0)

    def observe_step(self, event: Event, before: ElectorState, after: ElectorState) -> None:
        if after.role is Role.ACTIVE:
            self.active.set()

    def takeover_failed(self, attempt: AttemptNumber, reason: str) -> None:
        assert "planted" in reason
        self.join()

    def abort(self, reason: str) -> None:
        raise AssertionError(reason)


async def one_election(settings: ZooKeeperSettings) -> None:
    """Take over, leave, and end; raise what ended the elector's task before it was cancelled."""
    candidate = Candidate(settings)
    elector = candidate.elector
    running = asyncio.create_task(elector.run(), name="elector")
    tasks = [running, asyncio.create_task(candidate.active.wait())]
    try:
        candidate.join()
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        elector.quit(keep_breadcrumb=False, ended="a test")
        tasks.append(asyncio.create_task(elector.wait_idle()))
        await asyncio.wait([running, tasks[-1]], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not running.cancelled():
        running.result()


async def left_by(session: Session, settings: ZooKeeperSettings) -> None:
    """Wait until the lock is gone, and leave another's breadcrumb for the next life."""
    async with asyncio.timeout(20):
        while await session.look(settings.lock) != Done(None):
            await asyncio.sleep(0.01)
    await session.delete(settings.breadcrumb)
    assert isinstance(await session.create(settings.breadcrumb, OTHERS), Done)


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.EVICT, Fault.FAIL])
async def test_an_election_that_is_cut_short_leaves_nothing(
    zookeeper: ZooKeeper, fault: Fault
) -> None:
    settings = ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=30.0,
        scope=f"/hadoop-ha/cut-{fault.name}",
        acl=parse_acl("world:anyone:rwcda"),
    )
    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)
        await left_by(session, settings)
        cuts = Cuts(
            lambda: one_election(settings),
            fault,
            evicts="elector",
            fails=("_run_request", "LockKeeper", "TermKeeper", "_run_after"),
            typed=(ConnectionResetError,),
            kept=KEPT,
        )
        assert await awaits.cut_at_each_await(cuts, lambda _: left_by(session, settings)) > 10
