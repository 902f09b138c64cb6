"""Runs one ``nnha`` command line inside the test's process, where its servers run, too."""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from click.testing import CliRunner

from ha.cli.main import main


@dataclass(frozen=True)
class Told:
    """What one command line exited with and printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.out)


async def nnha(*words: str, typed: str | None = None) -> Told:
    """Run it in a thread of its own; it has its own event loop."""

    def run() -> Told:
        with untouched_logging():
            result = CliRunner().invoke(main, list(words), input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Told(result.exit_code, result.stdout, result.stderr)

    return await asyncio.to_thread(run)


@contextmanager
def untouched_logging() -> Iterator[None]:
    """Commands silence the libraries for a process of their own; here others live on."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
