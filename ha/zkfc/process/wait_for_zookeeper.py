"""Waits at the start for a ZooKeeper, however long that takes, and says so.

A controller may be started before ZooKeeper is, or while its ensemble has no quorum; everything
that is started at once must come up by itself.  What no waiting can mend ends it: the
nameservice's znode was never created, or ZooKeeper refuses our credentials.

See docs/reference/zkfc.md#start.
"""

import asyncio
from typing import Final

import structlog
from prometheus_client import Gauge

from ha.daemon.process import ExitWith
from ha.elector.zookeeper.client import Session, SessionFactory
from ha.elector.zookeeper.errors import ZooKeeperUnavailable
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, parent_exists
from ha.notices.model import Member
from ha.zkfc.handover.membership import NoticeBoard
from ha.zkfc.process.format_zk import NO_PARENT_ZNODE

log = structlog.get_logger()

QUIET_SECONDS: Final = 1.0
"""A server that answers within this was there: nothing is logged."""
FIRST_PAUSE_SECONDS: Final = 60.0
LONGEST_PAUSE_SECONDS: Final = 1800.0
"""Between two lines of the log; each pause is twice the one before."""
RETRY_SECONDS: Final = 0.5
"""After a connection that was lost again before the question was answered."""

_waiting = Gauge(
    "nnha_zkfc_waiting_for_zookeeper",
    "1 while the controller has not reached ZooKeeper since its start",
    ["node"],
)


class ZooKeeperWait:
    """The first connection of a controller's life."""

    def __init__(
        self, settings: ZooKeeperSettings, node: str, *, open_session: SessionFactory = Session
    ) -> None:
        """Label the gauge with ``node``, which is ``<nameservice>.<namenode>``."""
        self._settings = settings
        self._open_session = open_session
        self._gauge = _waiting.labels(node)
        self._node = node
        self._session: Session | None = None
        self._began: float | None = None
        self.made = asyncio.Event()
        """ZooKeeper has answered, and the nameservice's znode is there."""

    def told(self) -> str:
        """Return why there is no failover yet; empty once there was contact."""
        if self._began is None or self.made.is_set():
            return ""
        seconds = asyncio.get_running_loop().time() - self._began
        return (
            f"waiting for ZooKeeper since the start {seconds:.0f} s ago: no server of "
            f"{self._settings.hosts} answers{self._trouble()}; failover is off until one does"
        )

    async def formatted(self) -> None:
        """Return when ZooKeeper has answered and is formatted.

        Raises:
            ExitWith: it is not formatted.
            ZooKeeperRefused: it refuses us.
        """
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        self._gauge.set(1)
        telling = loop.create_task(self._tell(), name="waiting for ZooKeeper")
        try:
            while (found := await self._ask()) is None:  # noqa: ASYNC110 - ZooKeeper has no event
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            telling.cancel()
        if not found:
            raise ExitWith(
                NO_PARENT_ZNODE,
                f"Unable to start failover controller. Parent znode {self._settings.scope} does "
                f"not exist; run with --format-zk (-formatZK) once to initialize ZooKeeper",
            )
        self._gauge.set(0)
        self.made.set()
        if (seconds := loop.time() - self._began) >= QUIET_SECONDS:
            log.info("zkfc.zookeeper.reached", node=self._node, after_seconds=round(seconds, 3))

    async def _ask(self) -> bool | None:
        """Return whether the nameservice's znode is there; None if the connection was lost."""
        try:
            async with connected(
                self._settings, deadline_seconds=None, open_session=self._open
            ) as session:
                return await parent_exists(session, self._settings)
        except ZooKeeperUnavailable as failure:
            log.info("zkfc.zookeeper.lost_again", node=self._node, reason=str(failure))
            return None

    def _open(self, *arguments: object, **named: object) -> Session:
        self._session = self._open_session(*arguments, **named)  # type: ignore[arg-type]
        return self._session

    def _trouble(self) -> str:
        trouble = "" if self._session is None else self._session.trouble
        return f" ({trouble})" if trouble else ""

    async def _tell(self) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        pause = FIRST_PAUSE_SECONDS
        while True:
            log.warning(
                "zkfc.zookeeper.awaited",
                node=self._node,
                reason=self.told(),
                next_line_in_seconds=pause,
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


class BoardAfter:
    """A board that begins only when there was contact: before it, nothing is known of znodes."""

    def __init__(self, contact: ZooKeeperWait, board: NoticeBoard) -> None:
        self._contact = contact
        self._board = board

    def publish(self, member: Member) -> None:
        """See ``NoticeBoard``."""
        self._board.publish(member)

    async def run(self) -> None:
        """See ``NoticeBoard``."""
        await self._contact.made.wait()
        await self._board.run()
