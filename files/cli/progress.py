"""How far a long copy is: one line on a terminal's standard error, and nothing elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import click

from files.cli.forms import size_text
from ha.console.output import plain

FIRST_SECONDS: Final = 1.0
EVERY_SECONDS: Final = 0.5


def line(name: str, done: int, total: int | None, seconds: float) -> str:
    """Return the line: bytes, rate, and the time left where the whole is known.  Pure."""
    rate = int(done / seconds) if seconds > 0 else 0
    text = f"{name}  {size_text(done, human=True)}"
    if total is not None:
        text += f" of {size_text(total, human=True)}"
    text += f", {size_text(rate, human=True)}/s"
    if total is None or not rate:
        return text
    left = max(0, total - done) // rate
    return f"{text}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"


@contextmanager
def progress_of(name: str, total: int | None) -> Iterator["Progress"]:
    """Yield the progress of a copy, whose line goes away at the end."""
    progress = Progress(name, total)
    try:
        yield progress
    finally:
        progress.end()


@dataclass(slots=True)
class Progress:
    """One copy's progress; ``total``: how many bytes it has, None where that is not known."""

    name: str
    total: int | None
    done: int = 0
    _began: float = field(default_factory=time.monotonic)
    _due: float = field(default_factory=lambda: time.monotonic() + FIRST_SECONDS)
    _shown: bool = False

    def add(self, count: int) -> None:
        """Count bytes that were copied, and show it from time to time."""
        self.done += count
        now = time.monotonic()
        if now >= self._due and sys.stderr.isatty():
            self._due, self._shown = now + EVERY_SECONDS, True
            text = line(plain(self.name), self.done, self.total, now - self._began)
            click.echo(f"\r{text}\x1b[K", err=True, nl=False)

    def end(self) -> None:
        """Take the line away, so that what follows stands at the beginning of one."""
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)
