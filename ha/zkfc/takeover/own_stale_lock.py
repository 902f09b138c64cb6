"""Avoids an unnecessary demotion of the active NameNode after its controller was killed.

The bad schedule: the controller of the active is killed and started again while the session of its
earlier process lives on.  The lock is there, and is not this session's; Hadoop's controller takes
that for another's, and makes its own healthy NameNode standby.  There is no active then until the
old session has timed out.  But the lock names our own NameNode: no other can be active while it is
there, and its next holder asks the NameNode in the breadcrumb, which is ours, to stand by.
"""

from collections.abc import Awaitable, Callable

import structlog

from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.service.model import ServiceState

log = structlog.get_logger()


class OwnStaleLock:
    """Knows whether the lock that is not ours was left by an earlier process of ours."""

    def __init__(
        self, own: str, read_active: Callable[[], Awaitable[ActiveNodeInfo | None]]
    ) -> None:
        self._own = own
        self._read_active = read_active
        self.spares = False
        """A demotion was not carried out; the lock's holder must be looked up again."""

    async def holds_lock(self, reported: ServiceState | None) -> bool:
        """Return whether our NameNode, which reports this state, should be left as it is now."""
        before, self.spares = self.spares, False
        if reported is not ServiceState.ACTIVE:
            return False
        try:
            active = await self._read_active()
        except (ZooKeeperRefused, ZooKeeperUnavailable, BadBreadcrumb) as failure:
            log.info("zkfc.lock.unread", namenode=self._own, reason=str(failure))
            return False
        self.spares = active is not None and active.namenode == self._own
        if self.spares and not before:
            log.warning(
                "zkfc.lock.of_own_earlier_session",
                namenode=self._own,
                why="our NameNode stays active until the session of the earlier process is over",
            )
        return self.spares
