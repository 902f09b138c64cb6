"""Judges when a pause or a drain is over, so that one fast clock does not end it for all."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

import structlog

from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import value_of
from ha.notices.model import Pause
from ha.notices.store import Noted

log = structlog.get_logger()


class Expiry:
    """Asks ZooKeeper for the time where our own clock says that a notice is over.

    It is over when both say so: by our clock its end has passed, and by ZooKeeper's its whole
    duration has, since it was written.  The bad schedule: a controller whose clock is an hour
    ahead reads a pause of 30 minutes, believes that it is over, and deletes it for all.
    """

    def __init__(self, namenode: str) -> None:
        self._namenode = namenode
        self._ends: dict[Noted[Pause], float] = {}

    async def in_force(
        self,
        session: Session,
        now: datetime,
        member: str,
        noted: Noted[Pause] | None,
        clear: Callable[..., Awaitable[bool]],
    ) -> tuple[Pause | None, float]:
        """Return a notice if it is in force, and for how many seconds; take away one that is over.

        ``now`` is our own clock, ``member`` the path of our member znode, which is written again to
        learn ZooKeeper's time.  Where there is none of ours our own clock decides, for us alone.
        """
        if noted is None or noted.value.until is None:
            return None if noted is None else noted.value, math.inf
        left, for_all = await self._seconds_left(session, noted, noted.value.until, now, member)
        if left > 0:
            return noted.value, left
        if for_all:
            # Best effort: a reader of an expired notice knows that it is over.
            with suppress(ZooKeeperUnavailable, ZooKeeperRefused):
                await clear(version=noted.version)
        return None, math.inf

    async def _seconds_left(
        self, session: Session, noted: Noted[Pause], until: datetime, now: datetime, member: str
    ) -> tuple[float, bool]:
        """Return the seconds that it is in force for (0 or less: it is over), and if for all."""
        ours = (until - now).total_seconds()
        if ours > 0 or not noted.written_at or not member:
            return ours, not noted.written_at
        loop = asyncio.get_running_loop()
        if (known := self._ends.get(noted, loop.time())) > loop.time():
            return known - loop.time(), False
        theirs = await self._time(session, member)
        if theirs is None:
            return ours, False
        lasts = (until - noted.value.since).total_seconds()
        left = noted.written_at + lasts - theirs
        if left > 0:
            log.warning(
                "notices.clock_is_ahead",
                namenode=self._namenode,
                clock_ahead_seconds=round(now.timestamp() - theirs),
                meaning="this host's clock, or that of the operator's host, differs from"
                " ZooKeeper's; the notice stays in force",
                seconds_left=round(left),
            )
        known_ends = {one: end for one, end in self._ends.items() if end > loop.time()}
        self._ends = known_ends | {noted: loop.time() + left}
        return left, True

    async def _time(self, session: Session, member: str) -> float | None:
        """Return ZooKeeper's time, by which it writes our member; None: the member is not ours."""
        data, facts = value_of(await session.read(member), f"read {member}")
        if not facts.ours:
            return None
        value_of(await session.write(member, data, version=facts.version), f"write {member}")
        _, written = value_of(await session.read(member), f"read {member}")
        return written.written_at if written.ours else None
