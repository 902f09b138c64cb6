"""Cedes: makes our NameNode standby, releases the lock, and stays out of the election for a time.

The target's controller asks for it in a hand-over (ZKFCProtocol's cedeActive), or no ZooKeeper has
answered for longer than an active may serve without one.

See docs/reference/zkfc.md#standing-back.
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
NO_ZOOKEEPER = "no ZooKeeper has answered for longer than an active may serve without one"


class Ceding:
    """Cedes for one controller, and reports each outcome to the candidacy by ``decide``."""

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
        self._deadlines: dict[bytes, float] = {}
        """The end of the time to cede for, by the RPC client id of the hand-over that asked."""
        self._stepping_down: asyncio.Task[None] | None = None

    async def cede(self, seconds: float, client_id: bytes) -> None:
        """Leave the election for ``seconds``; 0 or less releases us from this client's request.

        We join again when no client's request is left.  The bad schedule: two hand-overs run at
        once, one fails and releases us from both, and a third NameNode takes the lock.
        """
        loop = asyncio.get_running_loop()
        if seconds <= 0:
            self._deadlines.pop(client_id, None)
            if not self._has_requests():
                self._decide(CedeEnded())
            return
        self._drop_old_requests(loop.time())
        self._deadlines[client_id] = loop.time() + seconds
        self._decide(TransitionBegun())
        before = self._elector.state
        confirmed = await self._takeover.demote()
        # A promotion may have reached our NameNode after the demotion; then the next owner of the
        # lock must fence it.
        after = self._elector.state
        overtaken = before.role is Role.TAKING_OVER or after.attempt != before.attempt
        # The bad schedule: our NameNode answers only after the hand-over has ended and released us.
        # No second release comes, and our NameNode may be the only candidate that is left.
        released = client_id not in self._deadlines
        needs_fencing = overtaken or not confirmed
        self._decide(CedeAsked(0.0 if released else seconds, needs_fencing))
        if released and not self._has_requests():
            self._decide(CedeEnded())
        try:
            async with asyncio.timeout(self._settings.graceful_fence_timeout_seconds):
                await self._elector.wait_idle()
        except TimeoutError:
            log.warning("zkfc.cede.release_unconfirmed", namenode=self._settings.own.namenode)

    def end_cede(self) -> None:
        """Drop all requests, and make our controller a candidate again."""
        self._deadlines.clear()
        self._decide(CedeEnded())

    def _drop_old_requests(self, now: float) -> None:
        # A client that ended without a release leaves its request.  One whose demotion may still
        # be under way is kept: ``cede`` would take it for released.
        longest = self._settings.graceful_fence_timeout_seconds
        self._deadlines = {
            client: end for client, end in self._deadlines.items() if end + longest > now
        }

    def _has_requests(self) -> bool:
        now = asyncio.get_running_loop().time()
        return any(end > now for end in self._deadlines.values())

    def step_down(self) -> None:
        """Make our NameNode standby in the background, because no ZooKeeper answers."""
        log.error("zkfc.steps_down", namenode=self._settings.own.namenode, because=NO_ZOOKEEPER)
        self._stepping_down = asyncio.get_running_loop().create_task(self._step_down())

    def stop(self) -> None:
        """Cancel a step down that is under way."""
        if self._stepping_down is not None:
            self._stepping_down.cancel()

    async def _step_down(self) -> None:
        # Ceding closes the session.  In the old one we would find our lock when ZooKeeper is back,
        # and believe that our NameNode is still active under it.
        self._decide(TransitionBegun())
        confirmed = await self._takeover.demote()
        self._decide(CedeAsked(STEP_BACK_SECONDS, not confirmed, because=NO_ZOOKEEPER))
