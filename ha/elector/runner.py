"""The election's one task and one inbox: event, step, actions, one log line."""

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
"""Work that may be called off before it has begun."""


class Application(Protocol):
    """What the election drives.  The three long calls run one after the other, as tasks."""

    async def fence_old_active(self, attempt: AttemptNumber, content: bytes, term: Term) -> None:
        """Make the node in the breadcrumb harmless, or raise TakeoverImpossible."""

    async def serve_as_active(self, attempt: AttemptNumber) -> None:
        """Promote our NameNode, or raise TakeoverImpossible."""

    async def serve_as_standby(self) -> None:
        """Demote our NameNode; it must not raise for a NameNode that does not answer."""

    def stepped(self, event: events.Event, before: ElectorState, after: ElectorState) -> None:
        """Take note of an event, and of the state before and after it, which may be the same."""

    def takeover_failed(self, attempt: AttemptNumber, reason: str) -> None:
        """Take note that the attempt failed, and that the election was left."""

    def gave_up(self, reason: str) -> None:
        """Take note that the election cannot go on without an operator."""


class Elector:
    """Owns the election's state.  ``keeper`` is built with ``post``, so that events come here."""

    def __init__(
        self,
        *,
        name: str,
        application: Application,
        keeper: Callable[[Post], Keeper],
        look_interval_seconds: float = LOOK_INTERVAL_SECONDS,
        heartbeat: Callable[[float], None] = lambda _within_seconds: None,
    ) -> None:
        """Call ``heartbeat`` with each step and the seconds within which the next one comes."""
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
        """The state after the last step; a frozen value."""
        return self._state

    def active_by(self, attempt: AttemptNumber) -> bool:
        """Return whether this takeover, and no later one, has made us active."""
        return self._state.role is Role.ACTIVE and self._state.attempt == attempt

    def post(self, event: events.Event) -> None:
        """Put an event into the inbox.  Only on the loop."""
        self._inbox.put_nowait(event)

    def join(self, data: bytes) -> None:
        """Ask to be in the election."""
        self.post(events.JoinRequested(data))

    def quit(self, *, keep_breadcrumb: bool, ended: str = "") -> None:
        """Ask to be out of the election; ``ended`` names the active process that has ended."""
        self.post(events.QuitRequested(keep_breadcrumb, ended))

    def stand_by_again(self) -> None:
        """Call the application again: another controller holds the lock."""
        self._begin(self._application.serve_as_standby)

    async def settled(self) -> None:
        """Return when all that was asked is done, and lock and session are gone or given up."""
        await self._inbox.join()
        await self.keeper.settled()

    async def run(self) -> None:
        """Work until cancelled; then the election is left, the breadcrumb kept."""
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
            await asyncio.shield(self.keeper.settled())

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
        self._application.stepped(event, before, result.state)

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
                self._tell_application(action)
            case _:
                self.keeper.perform(action)

    def _tell_application(self, action: elector_actions.ApplicationAction) -> None:
        application = self._application
        match action:
            case elector_actions.FenceOldActive(attempt=attempt, content=content, term=term):
                fence = partial(application.fence_old_active, attempt, content, term)
                done = events.OldActiveFenced(attempt)
                attempted = partial(self._attempted, fence, attempt, Stage.FENCING, done)
                self._takeover = self._begin(attempted)
            case elector_actions.ServeAsActive(attempt=attempt):
                promote = partial(application.serve_as_active, attempt)
                promoted = events.Promoted(attempt)
                attempted = partial(self._attempted, promote, attempt, Stage.PROMOTING, promoted)
                self._takeover = self._begin(attempted)
            case elector_actions.ServeAsStandby():
                self._begin(application.serve_as_standby)
            case elector_actions.AbandonTakeover():
                if self._takeover is not None:
                    self._takeover.cancel()
            case elector_actions.EnterNeutral():
                # Our NameNode is left as it is: the journal's quorum is the authority now.
                log.warning("elector.neutral", namenode=self._name)
            case elector_actions.ReportFailure(attempt=attempt, reason=reason):
                application.takeover_failed(attempt, reason)
            case elector_actions.GiveUp(reason=reason):
                application.gave_up(reason)
            case _:
                assert_never(action)

    def _begin(self, work: Work) -> asyncio.Task[None]:
        """Begin work behind all other work: a demotion must not overtake a cancelled promotion.

        Each waits for all before it, not for the last one alone: that one may have been cancelled
        while it waited itself, for a demotion which would then end behind the next promotion.
        """
        begun = asyncio.get_running_loop().create_task(_after(frozenset(self._works), work))
        self._works.add(begun)
        begun.add_done_callback(self._works.discard)
        return begun

    async def _attempted(
        self, work: Work, attempt: AttemptNumber, stage: Stage, done: events.Event
    ) -> None:
        try:
            ensure_attempt(self._state, attempt, stage)
            await work()
        except TakeoverImpossible as failure:
            self.post(events.TakeoverFailed(attempt, str(failure)))
        except InvariantBroken as broken:
            self._application.gave_up(str(broken))
        except Exception as failure:
            # A bug in fencing must cost this attempt only: the next try, or the peer, may succeed.
            log.exception("elector.takeover.crashed", attempt=attempt)
            self.post(events.TakeoverFailed(attempt, f"unexpected {failure!r}"))
        else:
            self.post(done)


async def _after(earlier: frozenset[asyncio.Task[None]], work: Work) -> None:
    if earlier:
        await asyncio.wait(earlier)
    await work()


def _describe(thing: events.Event | elector_actions.Action) -> str:
    """Return the class and its useful fields; znode bytes are long and mean nothing to a reader."""
    fields = []
    for name in thing.__slots__:
        value = getattr(thing, name)
        if isinstance(value, Breadcrumb):
            fields.append(f"{name}=version {value.version}")
        elif not isinstance(value, bytes):
            fields.append(f"{name}={value}")
    return f"{type(thing).__name__}({', '.join(fields)})"
