"""The audit log: to standard error like all logs, and to a file if one is configured."""

import atexit
import queue
import threading
import time
from collections.abc import Callable, Sequence
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
    timer.name, timer.daemon = "later", True
    timer.start()


LOST = Counter("nnha_audit_lines_lost", "Audit lines that could not be written to nnha.audit.file")
MOST_WAITING: Final = 10_000
CLOSE_SECONDS: Final = 2.0
GATHER_SECONDS: Final = 0.02


class Audit(Protocol):
    """Where entries go."""

    def write(self, entry: Entry) -> None:
        """Write one down; never waits."""


class AuditLog:
    """Writes each entry in the configured forms."""

    def __init__(self, form: AuditFormat, path: Path | None) -> None:
        self._form = form
        self._file = None if path is None else AuditFile(path, LOST)

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


class AuditFile:
    """Appends lines in a thread, so that a disk that hangs stops no caller."""

    def __init__(self, path: Path, lost: Counter) -> None:
        """Count lines that could not be written in ``lost``."""
        self._path = path
        self._counter = lost
        self._waiting: queue.SimpleQueue[Sequence[str] | threading.Event] = queue.SimpleQueue()
        self._failing, self._lost = False, 0
        self._thread = threading.Thread(target=self._run, name="audit file", daemon=True)
        self._thread.start()
        atexit.register(self.flush)

    def append(self, lines: Sequence[str]) -> None:
        """Write lines after a moment; where too many wait, they are counted and logged instead."""
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(lines)
            return
        self._counter.inc(len(lines))
        self._lost += len(lines)

    def flush(self) -> None:
        """Wait, for a while, until what was appended before is written."""
        done = threading.Event()
        self._waiting.put(done)
        done.wait(CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            # What came in a moment goes with it: to open the file for each line takes a third of a
            # call's time, and to wake this thread as much.
            taken = [self._waiting.get()]
            time.sleep(GATHER_SECONDS)
            taken += [self._waiting.get() for _ in range(self._waiting.qsize())]
            lines = [line for one in taken if not isinstance(one, threading.Event) for line in one]
            try:
                append(self._path, lines)
                self._failing = False
            except OSError as failure:
                self._counter.inc(len(lines))
                if not self._failing:
                    log.warning("audit.not_written", file=str(self._path), because=str(failure))
                self._failing = True
            for one in taken:
                if isinstance(one, threading.Event):
                    one.set()
            if self._lost:
                lost, self._lost = self._lost, 0
                log.warning("audit.lines_lost", file=str(self._path), lines=lost)
