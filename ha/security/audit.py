"""The audit log: to standard error like all logs, and to a file if one is configured."""

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog
from prometheus_client import Counter

from ha.conf.keys.security import AuditFormat
from ha.security.audit_text import Entry, fields, hadoop_line, json_line

log = structlog.get_logger("audit")

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
        self._hadoop = form in (AuditFormat.HADOOP, AuditFormat.BOTH)
        self._json = form in (AuditFormat.JSON, AuditFormat.BOTH)
        self._file = None if path is None else _AuditFile(path)

    def write(self, entry: Entry) -> None:
        """Write one down; never waits."""
        now = time.time()
        lines = []
        tell = log.info if entry.allowed else log.warning
        if self._json:
            tell("audit", **fields(entry))
            lines.append(json_line(entry, _stamp(now, "%Y-%m-%dT%H:%M:%S", ".", time.gmtime) + "Z"))
        if self._hadoop:
            # In local time, as Hadoop's.
            line = hadoop_line(entry, _stamp(now, "%Y-%m-%d %H:%M:%S", ",", time.localtime))
            tell("audit.hadoop", line=line)
            lines.append(line)
        if self._file is not None:
            self._file.append(lines)

    def flush(self) -> None:
        """Wait, for a while, until the file has what was written before."""
        if self._file is not None:
            self._file.flush()


def _stamp(now: float, form: str, mark: str, parts: Callable[[float], time.struct_time]) -> str:
    return f"{time.strftime(form, parts(now))}{mark}{int(now * 1000) % 1000:03d}"


class _AuditFile:
    """Appends lines in a thread, so that a disk that hangs stops nobody.

    The file is opened for each batch: whoever rotates it by a new name needs to tell nobody.
    """

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
            data = "".join(f"{line}\n" for line in lines).encode()
            try:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(self._path, flags, 0o640)
                try:
                    os.write(descriptor, data)
                finally:
                    os.close(descriptor)
                self._failing = False
            except OSError as failure:
                LOST.inc(len(lines))
                if not self._failing:
                    log.warning("audit.not_written", file=str(self._path), because=str(failure))
                self._failing = True
