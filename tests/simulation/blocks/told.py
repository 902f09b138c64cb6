"""Tasks of simulated processes whose errors are the world's to see."""

import asyncio
from functools import partial
from typing import Any


def told(task: "asyncio.Task[Any]", loop: asyncio.AbstractEventLoop) -> "asyncio.Task[Any]":
    """Report an error that ends this task to the loop at once."""
    task.add_done_callback(partial(_tell, loop))
    return task


def _tell(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        loop.call_exception_handler(
            {"message": f"{task.get_coro()} ended", "exception": error, "task": task}
        )
