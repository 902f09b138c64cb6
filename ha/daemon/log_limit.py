"""Bounds how many lines a minute each library may write into a daemon's log."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger()

LINES_A_MINUTE: Final = 10
"""Of one library and level.  kazoo writes twenty a second while ZooKeeper is away."""
_MINUTE_SECONDS: Final = 60.0


class LineLimit:
    """Drops what a library writes beyond its lines of a minute, and says later how many it were."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}

    def __call__(self, record: logging.LogRecord) -> bool:
        """Return whether to write this line."""
        key, now = (record.name.partition(".")[0], record.levelno), self._clock()
        with self._lock:
            began, lines = self._windows.get(key, (now, 0))
            ended = now - began >= _MINUTE_SECONDS
            self._windows[key] = (now, 1) if ended else (began, lines + 1)
            written = ended or lines < LINES_A_MINUTE
        if ended and lines > LINES_A_MINUTE:
            log.warning(
                "log.lines_dropped",
                library=key[0],
                lines=lines - LINES_A_MINUTE,
                seconds=round(now - began),
            )
        return written
