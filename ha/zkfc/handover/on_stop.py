"""What a controller that is to stop does with an active NameNode: hand over first.

Hadoop's leaves the lock to expire, and its peer takes over when the session timeout is over.  Ours
has the role moved by the successor's own graceful fail-over while it still can help.  Where that
must not be, in a pause, without a fit peer, or with ``nnha.zkfc.stop.hand-over`` off, the NameNode
stays active; in a pause no peer takes the lock until this controller is started again.

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
    """Asks the controller at this address to take over; answers why it did not, or nothing."""

    def __call__(self, zkfc: str, *, because: str) -> Awaitable[str]:
        """See the class."""


async def hand_over_first(
    settings: ZkfcSettings, candidacy: Candidacy, hand_over_to: HandOverTo
) -> None:
    """Hand over if we are active and somebody is fit; within the limit, and never raising."""
    own, seconds = settings.own.namenode, settings.stop_timeout_seconds
    if candidacy.believed is not ServiceState.ACTIVE:
        return
    reason = _against(settings, candidacy)
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


def _against(settings: ZkfcSettings, candidacy: Candidacy) -> str:
    if not settings.hand_over_on_stop:
        return "nnha.zkfc.stop.hand-over is off"
    notices = candidacy.standing.notices
    return "" if notices is None or notices.pause is None else describe_pause(notices.pause)
