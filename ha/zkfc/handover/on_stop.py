"""Hands over from an active NameNode before its controller stops.

A stopped controller of Hadoop leaves its lock until the session times out.  Ours asks a peer's
controller for gracefulFailover and serves it until that ends.  The NameNode stays active in a
pause, without a fit peer, or with ``nnha.zkfc.stop.hand-over`` off.

See docs/reference/zkfc.md#stopping.
"""

import asyncio
from collections.abc import Awaitable
from typing import Protocol

import structlog

from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import describe_pause, successor
from ha.zkfc.candidacy.state import Candidacy
from ha.zkfc.settings.settings import ZkfcSettings

log = structlog.get_logger()


class HandOverTo(Protocol):
    """Asks the controller at ``zkfc`` to take over; returns why it did not, or an empty text."""

    def __call__(self, zkfc: str, *, because: str) -> Awaitable[str]:
        """See the class."""


async def hand_over_first(
    settings: ZkfcSettings, candidacy: Candidacy, hand_over_to: HandOverTo
) -> None:
    """Hand over to the fittest peer if we are active, within the limit of a stop; never raise."""
    own, seconds = settings.own.namenode, settings.stop_timeout_seconds
    if candidacy.believed is not ServiceState.ACTIVE:
        return
    reason = _obstacle(settings, candidacy)
    to = successor(candidacy.standing)
    if reason or to is None:
        reason = reason or "no other NameNode is fit to take over"
        log.warning("zkfc.stop.namenode_stays_active", namenode=own, reason=reason)
        return
    log.info("zkfc.stop.handing_over", namenode=own, to=to.namenode, limit_seconds=seconds)
    try:
        async with asyncio.timeout(seconds):
            failure = await hand_over_to(to.zkfc_rpc, because=f"the zkfc of {own} is being stopped")
    except TimeoutError:
        failure = f"it took longer than {seconds:g} s"
    if failure:
        log.warning("zkfc.stop.not_handed_over", namenode=own, to=to.namenode, reason=failure)
    else:
        log.info("zkfc.stop.handed_over", namenode=own, to=to.namenode)


def _obstacle(settings: ZkfcSettings, candidacy: Candidacy) -> str:
    if not settings.hand_over_on_stop:
        return "nnha.zkfc.stop.hand-over is off"
    notices = candidacy.standing.notices
    return "" if notices is None or notices.pause is None else describe_pause(notices.pause)
