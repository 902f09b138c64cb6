"""Cuts a command's output into lines for the log, and keeps its end for the report.  Pure."""

from collections import deque
from collections.abc import Callable, Iterable

MAX_LINES = 200
MAX_LINE_BYTES = 2000
TAIL_LINES = 20


class Lines:
    """Cuts bytes into at most ``MAX_LINES`` lines, and counts the other lines."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        """Call ``emit`` with each line up to ``MAX_LINES``."""
        self._emit = emit
        self._pending = bytearray()
        self._emitted = 0
        self.dropped = 0
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    def feed(self, data: bytes) -> None:
        """Add bytes; a line is cut to ``MAX_LINE_BYTES``."""
        *complete, rest = data.split(b"\n", MAX_LINES - self._emitted)
        self._take(complete)
        if self._emitted < MAX_LINES:
            self._append(rest)
        else:
            self._skim(rest)

    def close(self) -> None:
        """End the output, and with it a last line without a line feed."""
        if self._pending:
            self._finish()

    def _skim(self, data: bytes) -> None:
        """Count lines without decoding them: a flood of output would block the event loop."""
        superfluous = data.count(b"\n") - TAIL_LINES
        if superfluous > 0:
            self._pending.clear()
            self.dropped += superfluous
            data = b"\n".join(data.rsplit(b"\n", TAIL_LINES + 1)[1:])
        *complete, rest = data.split(b"\n")
        self._take(complete)
        self._append(rest)

    def _take(self, complete: Iterable[bytes]) -> None:
        for part in complete:
            self._append(part)
            self._finish()

    def _append(self, part: bytes) -> None:
        self._pending += part[: MAX_LINE_BYTES - len(self._pending)]

    def _finish(self) -> None:
        line = self._pending.decode("utf-8", "replace").rstrip("\r")
        self._pending.clear()
        self.tail.append(line)
        if self._emitted < MAX_LINES:
            self._emitted += 1
            self._emit(line)
        else:
            self.dropped += 1
