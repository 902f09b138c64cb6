"""Standard error as a daemon needs it: what cannot be written is lost, and nothing else is."""

import contextlib
import os
import sys
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
