"""Bounds how many lines a minute each library, and each warning, may write into a daemon's log."""

import logging
import threading
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import structlog

log = structlog.get_logger()

LINES_A_MINUTE: Final = 10
"""Of one library and level.  kazoo writes twenty a second while ZooKeeper is away."""
WARNINGS_A_MINUTE: Final = 20
"""Of one event of our own: while a peer is away each of its clients tries again and again."""
_MINUTE_SECONDS: Final = 60.0


class LineLimit:
    """Drops what a library writes beyond its lines of a minute, and says later how many it were."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}

    def __call__(self, record: logging.LogRecord) -> bool:
        """Return whether to write this line."""
        return self._admit(record.name.partition(".")[0], record.levelno, LINES_A_MINUTE)

    def of_own(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Drop a warning of our own that comes too often; for structlog.

        Audit lines are bounded by caller (``ha.security.audit_rate``), and not here.
        """
        name = str(event["event"])
        limited = event["level"] == "warning" and not name.startswith("audit")
        if limited and not self._admit(name, logging.WARNING, WARNINGS_A_MINUTE):
            raise structlog.DropEvent
        return event

    def _admit(self, name: str, level: int, most: int) -> bool:
        key, now = (name, level), self._clock()
        with self._lock:
            began, lines = self._windows.get(key, (now, 0))
            ended = now - began >= _MINUTE_SECONDS
            self._windows[key] = (now, 1) if ended else (began, lines + 1)
            written = ended or lines < most
        if ended and lines > most:
            dropped, seconds = lines - most, round(now - began)
            log.warning("log.lines_dropped", of=name, lines=dropped, seconds=seconds)
        return written
