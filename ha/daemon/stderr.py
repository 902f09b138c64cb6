"""Standard error as a daemon needs it: what cannot be written is lost, and nothing else is."""

import contextlib
import os
import sys
from typing import Final, TextIO

import structlog

log = structlog.get_logger()

_CANNOT: Final = (OSError, ValueError)
"""The disk is full, the reader has gone, or the stream was closed."""


class SturdyStream:
    """A text stream that never raises.

    The bad schedule: the disk with the logs is full, and the line that tells of a lost ZooKeeper
    session, or of a batch that was committed, ends the daemon that wrote it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0

    def write(self, text: str) -> int:
        """Write it at once, or count it; the first time that it works again, tell how many.

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
        """Nothing waits here."""


def sturdy_stderr() -> SturdyStream:
    """Standard error, or nowhere if it was closed before we came."""
    if sys.stderr is None:
        # Takes the closed descriptor's number, too, which else the next socket would get.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the rest of the process
    return SturdyStream(sys.stderr)


def say(line: str) -> None:
    """A line for people, if it can be written."""
    with contextlib.suppress(*_CANNOT):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def let_go_of_stderr() -> None:
    """At the end: Python would flush it once more, and make its failure the exit code."""
    try:
        sys.stderr.flush()
    except _CANNOT:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the rest of the process
