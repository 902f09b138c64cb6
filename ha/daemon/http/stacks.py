"""/stacks: what a daemon's threads and tasks are doing at this moment."""

import asyncio
import io
import sys
import threading
import traceback
from typing import Final

from ha.daemon.http.pages import PageAnswer, text_answer

MOST_TASKS: Final = 1000
"""A page for people, not a dump of a hundred thousand waiting calls."""


def stacks_page() -> PageAnswer:
    """Return the stacks of all threads, then of the event loop's tasks."""
    return text_answer(stacks())


def stacks() -> str:
    """Return the text of the page; must be called on the event loop."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    text = io.StringIO()
    text.write(f"{len(names)} threads\n")
    for ident, frame in sys._current_frames().items():
        text.write(f'\nThread "{names.get(ident, "?")}" {ident}:\n')
        text.writelines(traceback.format_stack(frame))
    tasks = sorted(asyncio.all_tasks(), key=asyncio.Task.get_name)
    text.write(f"\n{len(tasks)} tasks\n")
    for task in tasks[:MOST_TASKS]:
        text.write("\n")
        text.write(_stack_of(task))
    if len(tasks) > MOST_TASKS:
        text.write(f"\nand {len(tasks) - MOST_TASKS} more\n")
    return text.getvalue()


def _stack_of(task: asyncio.Task[object]) -> str:
    text = io.StringIO()
    try:
        task.print_stack(file=text)
    except TypeError:
        # gRPC's coroutines are compiled: linecache has nothing where it expects their lines.
        return f"{task!r}\n"
    return text.getvalue()
