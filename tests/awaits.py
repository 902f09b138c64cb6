"""Cut a part's life at its first await, its second, and so on; then ask what is left over."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from itertools import count
from pathlib import Path
from typing import Any


class _Counted:
    """Runs a coroutine and cancels its task at the suspension of one number."""

    def __init__(self, work: Coroutine[Any, Any, object], number: int) -> None:
        self.seen = 0
        self._steps, self._number = work, number

    def __await__(self) -> Generator[Any, None, object]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        failure: BaseException | None = None
        while True:
            try:
                waits = self._steps.send(None) if failure is None else self._steps.throw(failure)
            except StopIteration as end:
                return end.value
            self.seen += 1
            if self.seen == self._number:
                loop.call_soon(task.cancel)
            failure = None
            try:
                yield waits
            except BaseException as thrown:  # noqa: BLE001 - handed on to the coroutine
                failure = thrown


async def _run(counted: _Counted) -> None:
    await counted


async def cut_at_each_await(
    life: Callable[[], Coroutine[Any, Any, object]], after: Callable[[int], Awaitable[None]]
) -> int:
    """Play a life, each time cancelled one await later, until one is played to its end.

    ``after`` is given the number of the await and checks what is left over.  Return how many lives
    were cut.
    """
    for number in count(1):
        counted = _Counted(life(), number)
        task = asyncio.create_task(_run(counted))
        try:
            await task
        except asyncio.CancelledError:
            assert counted.seen >= number
        await after(number)
        if counted.seen < number:
            return number - 1
    raise AssertionError("not reached")


def files_open_below(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = str(descriptor.readlink())
        except OSError:
            continue  # closed since it was listed
        if name.startswith(f"{folder}/"):
            found.append(name)
    return sorted(found)


def tasks_left() -> set[str]:
    """Return the names of tasks of this loop other than the one that asks."""
    return {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}}
