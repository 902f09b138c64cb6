"""The records of failovers in ZooKeeper, read for whoever asks, at most every few seconds."""

import asyncio
from typing import Final

from ha.cluster.query import NoAnswer
from ha.cluster.zookeeper_queries import OpenSession
from ha.conf.configuration import Configuration
from ha.conf.keys.cluster import AUTO_FAILOVER
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.settings import zookeeper_settings
from ha.notices.model import HistoryEntry
from ha.notices.store import read_history

READ_SECONDS: Final = 1.5
KEPT_SECONDS: Final = 3.0


class Records:
    """Reads them in the session that the looks use."""

    def __init__(
        self, configuration: Configuration, nameservice: str, open_session: OpenSession
    ) -> None:
        automatic = configuration.get(AUTO_FAILOVER, nameservice=nameservice)
        self._settings = (
            zookeeper_settings(configuration, nameservice=nameservice) if automatic else None
        )
        self._open_session = open_session
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._newest: tuple[HistoryEntry, ...] = ()

    async def newest(self) -> tuple[HistoryEntry, ...]:
        """Return all that are kept, the newest first.

        Raises:
            NoAnswer: ZooKeeper did not give them in time.
        """
        loop = asyncio.get_running_loop()
        if self._settings is None:
            return ()
        async with self._lock:
            if loop.time() - self._read_at < KEPT_SECONDS:
                return self._newest
            try:
                async with (
                    asyncio.timeout(READ_SECONDS),
                    self._open_session(self._settings, deadline_seconds=READ_SECONDS) as session,
                ):
                    self._newest = await read_history(session, self._settings)
            except TimeoutError as failure:
                raise NoAnswer(f"ZooKeeper gave no answer in {READ_SECONDS:g} s") from failure
            except (ZooKeeperRefused, ZooKeeperUnavailable) as failure:
                raise NoAnswer(str(failure)) from failure
            self._read_at = loop.time()
            return self._newest
