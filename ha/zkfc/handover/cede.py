"""Leaves the election for a time: makes our NameNode standby, then releases the lock.

A peer's controller asks for it in a hand-over (cedeActive), or ZooKeeper has been away for longer
than an active may serve without it.  See docs/reference/zkfc.md#standing-back.
"""

import asyncio
from collections.abc import Callable

import structlog

from ha.elector.model import Role
from ha.elector.runner import Elector
from ha.zkfc.candidacy.model import CedeAsked, CedeEnded, Event, TransitionBegun
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.takeover.takeover import Takeover

log = structlog.get_logger()

STEP_BACK_SECONDS = 1.0
LEFT_ALONE = "no ZooKeeper has answered for longer than an active may serve without one"


class Ceding:
    """Carries out what others want of one controller; ``decide`` gets what has come of it."""

    def __init__(
        self,
        settings: ZkfcSettings,
        takeover: Takeover,
        elector: Elector,
        decide: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._takeover = takeover
        self._elector = elector
        self._decide = decide
        self._asked_until: dict[bytes, float] = {}
        """Until when each asker, by its RPC client id, wants us away, on the loop's clock."""
        self._stepping_down: asyncio.Task[None] | None = None

    async def cede(self, seconds: float, asker: bytes) -> None:
        """Leave the election for ``seconds``; 0 or less: ``asker`` lets us come back now.

        Of two hand-overs at once, the one that gives up must not release us from what the other has
        asked: a third NameNode would take the lock from both.
        """
        loop = asyncio.get_running_loop()
        if seconds <= 0:
            self._asked_until.pop(asker, None)
            if not self._is_asked():
                self._decide(CedeEnded())
            return
        self._forget_the_dead(loop.time())
        self._asked_until[asker] = loop.time() + seconds
        self._decide(TransitionBegun())
        before = self._elector.state
        confirmed = await self._takeover.demote()
        # A promotion that was or came under way in the meantime may have won over the demotion:
        # then the successor must fence.
        after = self._elector.state
        overtaken = before.role is Role.TAKING_OVER or after.attempt != before.attempt
        # A slow NameNode may have kept us until the hand-over was over, and all were released: no
        # asker would release us once more, and the only candidate that is left may be ours.
        over = asker not in self._asked_until
        self._decide(CedeAsked(0.0 if over else seconds, needs_fencing=overtaken or not confirmed))
        if over and not self._is_asked():
            self._decide(CedeEnded())
        try:
            async with asyncio.timeout(self._settings.graceful_fence_timeout_seconds):
                await self._elector.settled()
        except TimeoutError:
            log.warning("zkfc.cede.release_unconfirmed", namenode=self._settings.own.namenode)

    def come_back(self) -> None:
        """Be a candidate again, whoever asked us to stand back."""
        self._asked_until.clear()
        self._decide(CedeEnded())

    def _forget_the_dead(self, now: float) -> None:
        """Forget ended hand-overs: each has a client id of its own.

        No demotion lasts longer than its deadline.
        """
        longest = self._settings.graceful_fence_timeout_seconds
        self._asked_until = {
            one: until for one, until in self._asked_until.items() if until + longest > now
        }

    def _is_asked(self) -> bool:
        """Return whether any asker's time still runs; one that died cannot release us earlier."""
        now = asyncio.get_running_loop().time()
        return any(until > now for until in self._asked_until.values())

    def step_down(self) -> None:
        """Make our NameNode standby for want of a ZooKeeper; return at once."""
        log.error("zkfc.steps_down", namenode=self._settings.own.namenode, because=LEFT_ALONE)
        self._stepping_down = asyncio.get_running_loop().create_task(self._step_down())

    def stop(self) -> None:
        """Give up what is under way."""
        if self._stepping_down is not None:
            self._stepping_down.cancel()

    async def _step_down(self) -> None:
        """Make our NameNode standby, and be a candidate again, in a session of its own.

        Kept, the old session would find its lock when ZooKeeper is back, and rest on a promotion
        that is undone.
        """
        self._decide(TransitionBegun())
        confirmed = await self._takeover.demote()
        self._decide(CedeAsked(STEP_BACK_SECONDS, not confirmed, because=LEFT_ALONE))
