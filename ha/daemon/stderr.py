"""Standard error as a daemon needs it: what cannot be written is lost, and nothing else is."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Final, TextIO

import structlog

log = structlog.get_logger()

_CANNOT: Final = (OSError, ValueError)
"""The disk is full, the reader has gone, or the stream was closed."""


class LossyStream:
    """A text stream that never raises.

    The bad schedule: the disk with the logs is full, and the line about a lost ZooKeeper session,
    or about a batch that was committed, ends the daemon that wrote it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0

    def write(self, text: str) -> int:
        """Write it at once, or count it; the first time that it works again, log the count.

        Python keeps some of what it could not write and tries again: those only come late.
        """
        if START_LINES.keep(self, text):
            return len(text)
        try:
            self._stream.write(text)
            self._stream.flush()
        except _CANNOT:
            self._lost += 1
            return len(text)
        lost, self._lost = self._lost, 0
        if lost:
            log.warning("log.lines_lost", lines=lost)
        return len(text)

    def flush(self) -> None:
        """Do nothing: ``write`` has flushed."""


class StartLines:
    """What a daemon logs of its start, kept back for a moment: why a start failed comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[LossyStream, str]] | None = None

    def hold(self) -> None:
        """Keep lines back from now on."""
        self._kept = []

    def keep(self, stream: LossyStream, text: str) -> bool:
        """Return whether the line is kept back."""
        with self._lock:
            if self._kept is not None:
                self._kept.append((stream, text))
            return self._kept is not None

    @contextlib.contextmanager
    def after(self) -> Iterator[None]:
        """Write what was kept back after what the ``with`` logs, and keep nothing back any more."""
        with self._lock:
            kept, self._kept = self._kept or [], None
        try:
            yield
        finally:
            for stream, text in kept:
                stream.write(text)

    def release(self) -> None:
        """Write what was kept back."""
        with self.after():
            pass


START_LINES: Final = StartLines()


def sturdy_stderr() -> LossyStream:
    """Return standard error, or the null device if it was closed before the process started."""
    if sys.stderr is None:
        # Takes the closed descriptor's number, too, which else the next socket would get.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the rest of the process
    return LossyStream(sys.stderr)


def say(line: str) -> None:
    """Print a line for people, if it can be written."""
    with contextlib.suppress(*_CANNOT):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def let_go_of_stderr() -> None:
    """Flush at the end; Python would make a failure of its own last flush the exit code."""
    try:
        sys.stderr.flush()
    except _CANNOT:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the rest of the process
