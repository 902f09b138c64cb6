"""The present holder of the lock, as ZooKeeper itself reports it."""

from typing import Final

from ha.elector.keeper import Keeper, LockReader
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.outcome import Unknown
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import active_from, read_active
from ha.zkfc.surroundings.surroundings import Surroundings

DEADLINE_SECONDS: Final = 5.0


async def lock_holder(
    keeper: Keeper, zookeeper: ZooKeeperSettings, around: Surroundings
) -> ActiveNodeInfo | None:
    """Ask in the election's own session if there is one; errors as ``read_active``."""
    asked = keeper.read_lock() if isinstance(keeper, LockReader) else None
    if asked is not None and not isinstance(outcome := await asked, Unknown):
        return active_from(outcome, zookeeper)
    # A session for this one question costs 20 ms, in which nothing of the hand-over happens.
    return await read_active(
        zookeeper, deadline_seconds=DEADLINE_SECONDS, open_session=around.session
    )
