"""What the election asks of the NameNode is done in order, whatever is cancelled in between."""

import asyncio
import math
from contextlib import suppress

import pytest

from ha.elector import events
from ha.elector.actions import Action, CloseSession, ReleaseLock, WatchLock
from ha.elector.model import AttemptNumber, Breadcrumb, Role, SessionNumber, Term
from ha.elector.runner import LOOK_INTERVAL_SECONDS, Elector
from ha.elector.state import ElectorState
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.invariant import InvariantBroken
from tests.ha.zkfc.zkfc_world import until
from tests.log_lines import captured

S = SessionNumber(1)


class Door:
    """A keeper without ZooKeeper: the test gives its answers."""

    last_contact: float | None = None
    session_timeout_seconds: float | None = None

    def __init__(self) -> None:
        self.asked: list[Action] = []
        self.may_settle = asyncio.Event()
        self.may_settle.set()

    def perform(self, action: Action) -> None:
        self.asked.append(action)

    async def wait_idle(self) -> None:
        await self.may_settle.wait()


class SlowToStandBy:
    """A NameNode that answers a demotion when the test lets it."""

    def __init__(self, trouble: Exception | None = None) -> None:
        """``trouble`` is what fencing ends in."""
        self.trouble = trouble
        self.done: list[str] = []
        self.standing_by = asyncio.Event()
        self.may_stand_by = asyncio.Event()

    async def fence_old_active(self, attempt: AttemptNumber, content: bytes, term: Term) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.done.append("fenced")

    async def serve_as_active(self, attempt: AttemptNumber) -> None:
        self.done.append("active")

    async def serve_as_standby(self) -> None:
        self.standing_by.set()
        await self.may_stand_by.wait()
        self.done.append("standby")

    def observe_step(
        self, event: events.Event, before: ElectorState, after: ElectorState
    ) -> None: ...

    def takeover_failed(self, attempt: AttemptNumber, reason: str) -> None:
        self.done.append(f"failed: {reason}")

    def abort(self, reason: str) -> None:
        self.done.append(f"gave up: {reason}")


async def test_a_demotion_does_not_overtake_a_promotion_behind_a_takeover_that_was_called_off() -> (
    None
):
    """Found by seed 18045 of `./run soak failover`: standby for good, with the lock in its hand.

    A demotion hangs; the lock comes, and the fencing waits for the demotion; the lock goes, which
    calls the fencing off; the lock comes again.  The second fencing waited for the first only, so
    the promotion was done while the demotion was still on its way.
    """
    namenode, crumb = SlowToStandBy(), Breadcrumb(b"nn9", 7)
    elector = Elector(name="nn1", application=namenode, keeper=lambda _: Door())
    running = asyncio.create_task(elector.run())
    for event in (
        events.JoinRequested(b"nn1"),
        events.SessionOpened(S),
        events.LockSeen(S, ours=False),
    ):
        elector.post(event)
    await namenode.standing_by.wait()

    for lock_was in (1, 2):
        elector.post(events.LockSeen(S, ours=True, made=lock_was))
        await until(lambda: elector.state.role is Role.TAKING_OVER, "the takeover")
        elector.post(events.BreadcrumbRead(S, elector.state.attempt, crumb))
        await elector.wait_idle()
        if lock_was == 1:
            elector.post(events.LockGone(S))
            await until(lambda: elector.state.role is not Role.TAKING_OVER, "it is called off")
            await asyncio.sleep(0)  # what was called off ends
    for _ in range(5):
        await asyncio.sleep(0)
    assert namenode.done == [], "nothing may begin before the demotion has ended"

    namenode.may_stand_by.set()
    await until(lambda: "fenced" in namenode.done, "the fencing")
    elector.post(events.BreadcrumbWritten(S, elector.state.attempt, 8))
    await until(lambda: elector.state.role is Role.ACTIVE, "the promotion")
    assert namenode.done == ["standby", "fenced", "active"]
    await _cancelled(running)


async def _taking_over(elector: Elector) -> "asyncio.Task[None]":
    """Run the election until the lock is ours, and another's breadcrumb was there."""
    running = asyncio.create_task(elector.run())
    for event in (
        events.JoinRequested(b"nn1"),
        events.SessionOpened(S),
        events.LockSeen(S, ours=True, made=1),
    ):
        elector.post(event)
    await until(lambda: elector.state.role is Role.TAKING_OVER, "the takeover")
    elector.post(events.BreadcrumbRead(S, elector.state.attempt, Breadcrumb(b"nn9", 7)))
    return running


async def _cancelled(running: "asyncio.Task[None]") -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (TakeoverImpossible("no way to it"), "failed: no way to it"),
        (ZeroDivisionError("a bug"), "failed: unexpected ZeroDivisionError('a bug')"),
        (InvariantBroken("it must never be"), "gave up: it must never be"),
    ],
)
async def test_a_fencing_that_ends_badly_is_told_and_nobody_is_promoted(
    trouble: Exception, told: str
) -> None:
    namenode = SlowToStandBy(trouble)
    elector = Elector(name="nn1", application=namenode, keeper=lambda _: Door())
    with captured("elector.takeover.") as lines:
        running = await _taking_over(elector)
        await until(lambda: namenode.done, "told")
        await elector.wait_idle()
    assert namenode.done == [told]
    crashed = ["elector.takeover.crashed"] * isinstance(trouble, ZeroDivisionError)
    assert [line["event"] for line in lines if line["log_level"] == "error"] == crashed
    assert elector.state.role is not Role.ACTIVE
    await _cancelled(running)


async def test_who_is_cancelled_gives_up_the_lock_and_keeps_the_breadcrumb() -> None:
    """Leave what the next owner needs to find and fence our NameNode, which may be active."""
    namenode, door, signs = SlowToStandBy(), Door(), list[float]()
    elector = Elector(
        name="nn1", application=namenode, keeper=lambda _: door, heartbeat=signs.append
    )
    running = await _taking_over(elector)
    await until(lambda: "fenced" in namenode.done, "the fencing")
    elector.post(events.BreadcrumbWritten(S, elector.state.attempt, 8))
    await until(lambda: elector.state.role is Role.ACTIVE, "the promotion")
    assert elector.active_by(elector.state.attempt)
    assert not elector.active_by(AttemptNumber(elector.state.attempt - 1))
    elector.repeat_standby()
    await namenode.standing_by.wait()
    door.asked.clear()
    door.may_settle.clear()
    assert set(signs) == {LOOK_INTERVAL_SECONDS}
    running.cancel()
    try:
        await until(lambda: door.asked == [ReleaseLock(S), CloseSession(S)], "it leaves")
        assert signs[-1] == math.inf
        await until(lambda: len(asyncio.all_tasks()) == 3, "no work goes on but to settle that")
        assert not running.done()
    finally:
        door.may_settle.set()  # or a failure would wait for it
    await _cancelled(running)
    assert len(asyncio.all_tasks()) == 1


async def test_the_lock_is_looked_at_again_and_again() -> None:
    door = Door()
    elector = Elector(
        name="nn1", application=SlowToStandBy(), keeper=lambda _: door, look_interval_seconds=0.01
    )
    running = asyncio.create_task(elector.run())
    elector.post(events.JoinRequested(b"nn1"))
    elector.post(events.SessionOpened(S))
    elector.post(events.LockTaken(S))
    for looks in range(1, 4):
        await until(lambda: door.asked.count(WatchLock(S)) == looks, "a look")  # noqa: B023
        elector.post(events.LockSeen(S, ours=False))
    await _cancelled(running)
