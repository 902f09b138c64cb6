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


class StandingBack:
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
        self._let_back = 0
        self._newest_asked_at = 0
        """How often we had been let back when we were last asked to leave."""
        self._stepping_down: asyncio.Task[None] | None = None

    async def cede(self, seconds: float) -> None:
        """Leave the election for so long; 0 or less: come back now."""
        if seconds <= 0:
            self._let_back += 1
            self._decide(CedeEnded())
            return
        let_back = self._newest_asked_at = self._let_back
        self._decide(TransitionBegun())
        before = self._elector.state
        confirmed = await self._takeover.demote()
        # A promotion that was or came under way meanwhile may have won over the demotion: then
        # the successor must fence.
        after = self._elector.state
        overtaken = before.role is Role.TAKING_OVER or after.attempt != before.attempt
        # A slow NameNode may have kept us until the hand-over was over, and all were let go: nobody
        # would let us go once more, and the only candidate that is left may be ours.
        over = self._let_back != let_back
        self._decide(CedeAsked(0.0 if over else seconds, needs_fencing=overtaken or not confirmed))
        if over and self._newest_asked_at == let_back:
            self._decide(CedeEnded())
        # else: a second hand-over has asked since then, and its time stands.
        try:
            async with asyncio.timeout(self._settings.graceful_fence_timeout_seconds):
                await self._elector.settled()
        except TimeoutError:
            log.warning("zkfc.cede.release_unconfirmed", namenode=self._settings.own.namenode)

    def step_down(self) -> None:
        """Make our NameNode standby for want of a ZooKeeper; returns at once."""
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
