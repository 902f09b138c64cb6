"""Work in a thread whose caller is cancelled: it is waited for, and what it took is let go."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import pytest

from ha.daemon.in_thread import run_in_thread

DEADLINE_SECONDS = 30.0


class Work:
    """Ends when it is let end."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.begun, self.end, self.over = threading.Event(), threading.Event(), threading.Event()
        self.failure = failure

    def __call__(self) -> str:
        self.begun.set()
        assert self.end.wait(DEADLINE_SECONDS)
        self.over.set()
        if self.failure is not None:
            raise self.failure
        return "taken"


@asynccontextmanager
async def cancelled(
    work: Work, let_go: list[str] | None = None
) -> AsyncIterator[asyncio.Task[str]]:
    """Give the task of a caller that was cancelled while the work goes on."""
    taken = None if let_go is None else let_go.append
    task = asyncio.create_task(run_in_thread(work, taken))
    while not work.begun.is_set():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    yield task
    work.end.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_answer_and_the_failure_come_back() -> None:
    seen: ContextVar[str] = ContextVar("seen")
    seen.set("here")
    assert await run_in_thread(seen.get) == "here"
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_cancelled_caller_ends_after_the_thread(times: int) -> None:
    work, let_go = Work(), list[str]()
    async with cancelled(work, let_go) as task:
        for _ in range(times - 1):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        assert let_go == []
    assert work.over.is_set()
    assert let_go == ["taken"]


async def test_nothing_is_let_go_of_work_that_failed() -> None:
    let_go = list[str]()
    async with cancelled(Work(OSError("no space")), let_go):
        pass
    assert let_go == []


async def test_a_cancelled_caller_may_have_nothing_to_let_go() -> None:
    work = Work()
    async with cancelled(work):
        pass
    assert work.over.is_set()


async def test_nothing_is_let_go_that_the_caller_got() -> None:
    let_go = list[str]()
    assert await run_in_thread(lambda: "taken", let_go.append) == "taken"
    assert let_go == []
