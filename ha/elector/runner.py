"""Runs the election in one task with one inbox: event, step, actions, one log line."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Protocol, assert_never

import structlog

from ha.elector import actions as elector_actions
from ha.elector import events
from ha.elector.core import step
from ha.elector.invariants import ensure_attempt
from ha.elector.keeper import Keeper, Post
from ha.elector.model import AttemptNumber, Breadcrumb, Role, Stage, Term
from ha.elector.state import ElectorState
from ha.elector.zookeeper.errors import TakeoverImpossible
from ha.invariant import InvariantBroken

log = structlog.get_logger()

LOOK_INTERVAL_SECONDS = 1.0

Work = Callable[[], Coroutine[None, None, None]]
"""Creates the coroutine of some work, only when it begins: it may be cancelled before."""


class Application(Protocol):
    """What the election calls.  The three coroutines run as tasks, one after the other."""

    async def fence_old_active(self, attempt: AttemptNumber, content: bytes, term: Term) -> None:
        """Fence the NameNode in the breadcrumb, or raise TakeoverImpossible."""

    async def serve_as_active(self, attempt: AttemptNumber) -> None:
        """Promote our NameNode, or raise TakeoverImpossible."""

    async def serve_as_standby(self) -> None:
        """Demote our NameNode; do not raise if it does not answer."""

    def observe_step(self, event: events.Event, before: ElectorState, after: ElectorState) -> None:
        """Handle an event and the states before and after it, which may be equal."""

    def takeover_failed(self, attempt: AttemptNumber, reason: str) -> None:
        """Handle a failed attempt, after which the elector left the election."""

    def abort(self, reason: str) -> None:
        """End the controller: the election cannot go on without an operator."""


class Elector:
    """Owns the election's state; ``keeper`` builds the ZooKeeper client, which gets ``post``."""

    def __init__(
        self,
        *,
        name: str,
        application: Application,
        keeper: Callable[[Post], Keeper],
        look_interval_seconds: float = LOOK_INTERVAL_SECONDS,
        heartbeat: Callable[[float], None] = lambda _within_seconds: None,
    ) -> None:
        """Call ``heartbeat`` at each step with the seconds within which the next one comes."""
        self._name = name
        self._application = application
        self.keeper = keeper(self.post)
        self._look_interval_seconds = look_interval_seconds
        self._heartbeat = heartbeat
        self._state = ElectorState()
        self._inbox: asyncio.Queue[events.Event | None] = asyncio.Queue()
        self._works: set[asyncio.Task[None]] = set()
        self._takeover: asyncio.Task[None] | None = None

    @property
    def state(self) -> ElectorState:
        """The state after the last step."""
        return self._state

    def active_by(self, attempt: AttemptNumber) -> bool:
        """Return whether we are active by this takeover, and not by a later one."""
        return self._state.role is Role.ACTIVE and self._state.attempt == attempt

    def post(self, event: events.Event) -> None:
        """Put an event into the inbox; call it on the event loop only."""
        self._inbox.put_nowait(event)

    def join(self, data: bytes) -> None:
        """Request to join the election with ``data`` as the lock's content."""
        self.post(events.JoinRequested(data))

    def quit(self, *, keep_breadcrumb: bool, ended: str = "") -> None:
        """Request to leave; ``ended`` describes the active process if it has ended."""
        self.post(events.QuitRequested(keep_breadcrumb, ended))

    def repeat_standby(self) -> None:
        """Call ``serve_as_standby`` once more."""
        self._start_work(self._application.serve_as_standby)

    async def wait_idle(self) -> None:
        """Return when all events are handled, and the keeper is idle."""
        await self._inbox.join()
        await self.keeper.wait_idle()

    async def run(self) -> None:
        """Handle events until cancelled; then leave the election and keep the breadcrumb."""
        loop = asyncio.get_running_loop()
        ticker = loop.create_task(self._tick())
        try:
            while True:
                self._heartbeat(self._look_interval_seconds)
                event = await self._inbox.get()
                try:
                    self._step(event)
                finally:
                    self._inbox.task_done()
        finally:
            self._heartbeat(math.inf)
            ticker.cancel()
            self._step(events.QuitRequested(keep_breadcrumb=True))
            for work in self._works:
                work.cancel()
            await asyncio.shield(self.keeper.wait_idle())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._look_interval_seconds)
            self.post(events.LookDue())

    def _step(self, event: events.Event | None) -> None:
        assert event is not None
        before = self._state
        result = step(before, event)
        self._state = result.state
        self._log(event, before, result.actions)
        for action in result.actions:
            self._act(action)
        self._application.observe_step(event, before, result.state)

    def _log(
        self, event: events.Event, before: ElectorState, actions: tuple[elector_actions.Action, ...]
    ) -> None:
        looks = all(isinstance(action, elector_actions.WatchLock) for action in actions)
        routine = looks and before.role is self._state.role
        (log.debug if routine else log.info)(
            "elector.step",
            namenode=self._name,
            saw=_describe(event),
            before=before.role.value,
            after=self._state.role.value,
            actions=[_describe(action) for action in actions],
        )

    def _act(self, action: elector_actions.Action) -> None:
        match action:
            case (
                elector_actions.FenceOldActive()
                | elector_actions.ServeAsActive()
                | elector_actions.ServeAsStandby()
                | elector_actions.EnterNeutral()
                | elector_actions.AbandonTakeover()
                | elector_actions.ReportFailure()
                | elector_actions.GiveUp()
            ):
                self._call_application(action)
            case _:
                self.keeper.perform(action)

    def _call_application(self, action: elector_actions.ApplicationAction) -> None:
        application = self._application
        match action:
            case elector_actions.FenceOldActive(attempt=attempt, content=content, term=term):
                fence = partial(application.fence_old_active, attempt, content, term)
                done = events.OldActiveFenced(attempt)
                attempted = partial(self._run_stage, fence, attempt, Stage.FENCING, done)
                self._takeover = self._start_work(attempted)
            case elector_actions.ServeAsActive(attempt=attempt):
                promote = partial(application.serve_as_active, attempt)
                promoted = events.Promoted(attempt)
                attempted = partial(self._run_stage, promote, attempt, Stage.PROMOTING, promoted)
                self._takeover = self._start_work(attempted)
            case elector_actions.ServeAsStandby():
                self._start_work(application.serve_as_standby)
            case elector_actions.AbandonTakeover():
                if self._takeover is not None:
                    self._takeover.cancel()
            case elector_actions.EnterNeutral():
                # Our NameNode keeps its state: the journal's epochs prevent a second writer.
                log.warning("elector.neutral", namenode=self._name)
            case elector_actions.ReportFailure(attempt=attempt, reason=reason):
                application.takeover_failed(attempt, reason)
            case elector_actions.GiveUp(reason=reason):
                application.abort(reason)
            case _:
                assert_never(action)

    def _start_work(self, work: Work) -> asyncio.Task[None]:
        """Start a task that runs the work after all earlier work has ended.

        A demotion must not overtake a cancelled promotion.  The task waits for all earlier work and
        not for the last one: if that one is cancelled, an earlier demotion may still be running.
        """
        begun = asyncio.get_running_loop().create_task(_run_after(frozenset(self._works), work))
        self._works.add(begun)
        begun.add_done_callback(self._works.discard)
        return begun

    async def _run_stage(
        self, work: Work, attempt: AttemptNumber, stage: Stage, done: events.Event
    ) -> None:
        try:
            ensure_attempt(self._state, attempt, stage)
            await work()
        except TakeoverImpossible as failure:
            self.post(events.TakeoverFailed(attempt, str(failure)))
        except InvariantBroken as broken:
            self._application.abort(str(broken))
        except Exception as failure:
            # A bug in fencing fails this attempt only: the next one, or a peer's, may succeed.
            log.exception("elector.takeover.crashed", attempt=attempt)
            self.post(events.TakeoverFailed(attempt, f"unexpected {failure!r}"))
        else:
            self.post(done)


async def _run_after(earlier: frozenset[asyncio.Task[None]], work: Work) -> None:
    if earlier:
        await asyncio.wait(earlier)
    await work()


def _describe(thing: events.Event | elector_actions.Action) -> str:
    """Return the class and its fields as text, without the bytes of znodes."""
    fields = []
    for name in thing.__slots__:
        value = getattr(thing, name)
        if isinstance(value, Breadcrumb):
            fields.append(f"{name}=version {value.version}")
        elif not isinstance(value, bytes):
            fields.append(f"{name}={value}")
    return f"{type(thing).__name__}({', '.join(fields)})"
