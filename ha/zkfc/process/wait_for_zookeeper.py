"""Waits at the start for ZooKeeper, without a limit, and logs that it waits.

A controller may start before ZooKeeper, or while its ensemble has no quorum.  It ends only if
waiting cannot help: ZooKeeper is not formatted, or refuses our credentials.

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
"""No wait is logged if ZooKeeper answers within this time."""
FIRST_PAUSE_SECONDS: Final = 60.0
LONGEST_PAUSE_SECONDS: Final = 1800.0
"""The pause between two log lines doubles up to this limit."""
RETRY_SECONDS: Final = 0.5
"""The pause after a connection that was lost before the request was answered."""

_waiting = Gauge(
    "nnha_zkfc_waiting_for_zookeeper",
    "1 while the controller has not reached ZooKeeper since its start",
    ["node"],
)


class ZooKeeperWait:
    """Makes the first connection of a controller to ZooKeeper."""

    def __init__(
        self, settings: ZooKeeperSettings, node: str, *, open_session: SessionFactory = Session
    ) -> None:
        """Label the gauge with ``node``: ``<nameservice>.<namenode>``."""
        self._settings = settings
        self._open_session = open_session
        self._gauge = _waiting.labels(node)
        self._node = node
        self._session: Session | None = None
        self._began: float | None = None
        self.reached = asyncio.Event()
        """Set when ZooKeeper has answered and the nameservice's znode exists."""

    def describe(self) -> str:
        """Return why there is no failover yet; empty once ZooKeeper was reached."""
        if self._began is None or self.reached.is_set():
            return ""
        seconds = asyncio.get_running_loop().time() - self._began
        return (
            f"waiting for ZooKeeper since the start {seconds:.0f} s ago: no server of "
            f"{self._settings.hosts} answers{self._trouble()}; failover is off until one does"
        )

    async def wait_until_formatted(self) -> None:
        """Return when ZooKeeper has answered and is formatted.

        Raises ExitWith if it is not formatted, ZooKeeperRefused if it refuses us.
        """
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        self._gauge.set(1)
        logging = loop.create_task(self._log_wait(), name="waiting for ZooKeeper")
        try:
            while (found := await self._parent_exists()) is None:  # noqa: ASYNC110 - no event
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            logging.cancel()
        if not found:
            raise ExitWith(
                NO_PARENT_ZNODE,
                f"Unable to start failover controller. Parent znode {self._settings.scope} does "
                f"not exist; run with --format-zk (-formatZK) once to initialize ZooKeeper",
            )
        self._gauge.set(0)
        self.reached.set()
        if (seconds := loop.time() - self._began) >= QUIET_SECONDS:
            log.info("zkfc.zookeeper.reached", node=self._node, after_seconds=round(seconds, 3))

    async def _parent_exists(self) -> bool | None:
        """Return whether the nameservice's znode exists; None if the connection was lost."""
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

    async def _log_wait(self) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        pause = FIRST_PAUSE_SECONDS
        while True:
            log.warning(
                "zkfc.zookeeper.awaited",
                node=self._node,
                reason=self.describe(),
                next_line_in_seconds=pause,
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


class BoardAfter:
    """A board that starts when ZooKeeper was reached: before, its znodes may not exist."""

    def __init__(self, contact: ZooKeeperWait, board: NoticeBoard) -> None:
        self._contact = contact
        self._board = board

    def publish(self, member: Member) -> None:
        """See ``NoticeBoard``."""
        self._board.publish(member)

    async def run(self) -> None:
        """See ``NoticeBoard``."""
        await self._contact.reached.wait()
        await self._board.run()
