"""Tasks that may not end unseen: an unforeseen error is reported to the one that must act."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

log = structlog.get_logger()


def supervise(
    work: Coroutine[Any, Any, None], name: str, on_broken: Callable[[str], None]
) -> asyncio.Task[None]:
    """Start a task; an error that leaves it is logged with its stack and passed to ``on_broken``.

    Left to itself asyncio keeps such an error for as long as the task is referred to.  Bad
    schedule: the log's flusher ends so, every write waits without end, and the active looks
    healthy.
    """
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(partial(_tell, on_broken))
    return task


def _tell(on_broken: Callable[[str], None], task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        report_broken(task.get_name(), error, on_broken)


def report_broken(name: str, error: BaseException, on_broken: Callable[[str], None]) -> None:
    """Log and pass on, likewise, an error that left a callback which does a task's work."""
    log.error("namenode.broken", task=name, exc_info=error)
    on_broken(f"{name} failed unexpectedly: {type(error).__name__}: {error}")
