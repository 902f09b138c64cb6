"""The audit log: to standard error like all logs, and to a file if one is configured."""

import atexit
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog
from prometheus_client import Counter

from ha.conf.keys.security import AuditFormat
from ha.security.audit_lines import append, lines_of
from ha.security.audit_text import Entry, fields

log = structlog.get_logger("audit")

Later = Callable[[float, Callable[[], None]], None]
"""Has a function called after some seconds."""


def call_later(seconds: float, function: Callable[[], None]) -> None:
    """Call a function after some seconds, in a thread; not if the process has ended by then."""
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()


LOST = Counter("nnha_audit_lines_lost", "Audit lines that could not be written to nnha.audit.file")
MOST_WAITING: Final = 10_000
CLOSE_SECONDS: Final = 2.0


class Audit(Protocol):
    """Where entries go."""

    def write(self, entry: Entry) -> None:
        """Write one down; never waits."""


class AuditLog:
    """Writes each entry in the configured forms."""

    def __init__(self, form: AuditFormat, path: Path | None) -> None:
        self._form = form
        self._file = None if path is None else _AuditFile(path)

    def write(self, entry: Entry) -> None:
        """Write one down; never waits."""
        lines = list(lines_of(self._form, entry))
        tell = log.info if entry.allowed else log.warning
        if self._form is not AuditFormat.HADOOP:
            tell("audit", **fields(entry))
        if self._form is not AuditFormat.JSON:
            tell("audit.hadoop", line=lines[-1])
        if self._file is not None:
            self._file.append(lines)

    def flush(self) -> None:
        """Wait, for a while, until the file has what was written before."""
        if self._file is not None:
            self._file.flush()


class _AuditFile:
    """Appends lines in a thread, so that a disk that hangs stops no caller."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: queue.Queue[Sequence[str] | threading.Event] = queue.Queue(MOST_WAITING)
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="audit file", daemon=True)
        self._thread.start()
        atexit.register(self.flush)

    def append(self, lines: Sequence[str]) -> None:
        try:
            self._waiting.put_nowait(lines)
        except queue.Full:
            LOST.inc(len(lines))

    def flush(self) -> None:
        done = threading.Event()
        with suppress(queue.Full):
            self._waiting.put(done, timeout=CLOSE_SECONDS)
            done.wait(CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            lines = self._waiting.get()
            if isinstance(lines, threading.Event):
                lines.set()
                continue
            try:
                append(self._path, lines)
                self._failing = False
            except OSError as failure:
                LOST.inc(len(lines))
                if not self._failing:
                    log.warning("audit.not_written", file=str(self._path), because=str(failure))
                self._failing = True
