"""Bounds what libraries, warnings, and strangers may write into a daemon's log.

A line that names a caller, by one of the fields ``CALLER_FIELDS``, may be one that a stranger can
cause as often as it likes, with words of its own.  It is cut, and each caller has few of them: so
one caller fills no disk, and hides no other's.  What is not written is counted, and the count is
logged once a minute.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, Final

import prometheus_client
import structlog

from ha.security.audit import Later, call_later
from ha.security.caller import network_of

log = structlog.get_logger()

LINES_A_MINUTE: Final = 10
"""Of one library and level.  kazoo writes twenty a second while ZooKeeper is away."""
WARNINGS_A_MINUTE: Final = 20
"""Of one event of our own: while a peer is away each of its clients tries again and again."""
CALLERS_LINES_A_MINUTE: Final = 20
"""Of one event and caller."""
LINES_OF_A_CALLER: Final = 60
"""Of all its events, in a minute."""
MOST_CALLERS: Final = 128
"""In a minute; those that come later share the lines of one."""
MAX_CHARACTERS: Final = 500
"""Of one value in a caller's line, or in a library's."""
MAX_NAME_CHARACTERS: Final = 100
MAX_TRACEBACK_CHARACTERS: Final = 8000
CALLER_FIELDS: Final = ("uid", "caller", "peer", "host", "asked_by")
"""The first that a line has names its caller."""
_AUDIT: Final = ("audit", "audit.hadoop")
_MINUTE_SECONDS: Final = 60.0
_SLACK_SECONDS: Final = 0.1
_OTHERS: Final = "others"
_MOST_OF: Final = {"user": MAX_NAME_CHARACTERS, "exception": MAX_TRACEBACK_CHARACTERS}

DROPPED = prometheus_client.Counter(
    "nnha_log_lines_dropped", "Lines that were too many of their kind, or of their caller", ["of"]
)


class LineLimit:
    """Drops lines beyond those of a minute, and says afterwards how many they were."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, later: Later = call_later
    ) -> None:
        """Call ``later`` with the seconds until what was dropped is to be said, and how."""
        self._clock, self._later = clock, later
        self._lock = threading.Lock()
        self._began = -_MINUTE_SECONDS
        self._lines: Counter[Hashable] = Counter()
        self._callers: set[Hashable] = set()
        self._dropped: Counter[str] = Counter()

    def __call__(self, record: logging.LogRecord) -> bool:
        """Return whether to write this line of a library."""
        library = record.name.partition(".")[0]
        return self._admit(library, (((library, record.levelno), LINES_A_MINUTE),))

    def of_own(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Drop a line of our own that comes too often; for structlog.

        Audit lines are bounded by caller (``ha.security.audit_rate``), and not here.
        """
        name = str(event["event"])
        if name in _AUDIT:
            return event
        limits: tuple[tuple[Hashable, int], ...] = ()
        if (caller := caller_in(event)) is not None:
            caller = self._key_of(caller)
            limits = (((caller, name), CALLERS_LINES_A_MINUTE), ((caller,), LINES_OF_A_CALLER))
        elif event["level"] == "warning":
            limits = (((name,), WARNINGS_A_MINUTE),)
        if limits and not self._admit(name, limits):
            raise structlog.DropEvent
        return event

    def say(self) -> None:
        """Log how many lines were dropped, if their minute is over."""
        now = self._clock()
        with self._lock:
            if now - self._began < _MINUTE_SECONDS:
                return
            seconds, dropped = round(now - self._began), self._dropped
            self._began, self._dropped = now, Counter()
            self._lines.clear()
            self._callers.clear()
        for name, lines in dropped.items():
            log.warning("log.lines_dropped", of=name, lines=lines, seconds=seconds)

    def _key_of(self, caller: Hashable) -> Hashable:
        self.say()
        with self._lock:
            if len(self._callers) < MOST_CALLERS:
                self._callers.add(caller)
            return caller if caller in self._callers else _OTHERS

    def _admit(self, name: str, limits: tuple[tuple[Hashable, int], ...]) -> bool:
        self.say()
        with self._lock:
            if all(self._lines[kind] < most for kind, most in limits):
                self._lines.update(kind for kind, _ in limits)
                return True
            is_first = not self._dropped
            self._dropped[name] += 1
            left = self._began + _MINUTE_SECONDS - self._clock()
        DROPPED.labels(name).inc()
        if is_first:
            self._later(left + _SLACK_SECONDS, self.say)
        return False


def caller_in(event: MutableMapping[str, Any]) -> Hashable:
    """Return the caller that a line names: a uid, or the network of an address; None: none."""
    for field in CALLER_FIELDS:
        if (named := event.get(field)) is not None:
            return named if field in ("uid", "caller") else network_of(str(named))
    return None


def cut(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Cut the values of a line that names a caller, or that a library wrote; for structlog."""
    if "logger" not in event and caller_in(event) is None:
        return event
    for name, value in event.items():
        most = _MOST_OF.get(name, MAX_CHARACTERS)
        if name != "exc_info" and len(text := str(value)) > most:
            event[name] = f"{text[:most]}... ({len(text) - most} more)"
    return event
