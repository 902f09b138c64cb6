"""Cut a part's life at its first await, its second, and so on; then ask what is left over."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, MutableSequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Any, cast

from tests import ROOT, balance
from tests.log_lines import silenced

SETTLE_SECONDS = 20.0
"""For what ends by itself after a life: aborted transports, threads that are to end."""
POOL_THREADS = ("asyncio_", "ThreadPoolExecutor")
"""Threads that wait for work, and stay."""
QUIET_TURNS = 5
OBJECTS = ("_asyncio.", "ha.", "journal.", "namenode_sim.", "datanode.", "files.", "hadoop.")
OURS = str(ROOT)
"""Where the code of counted tasks lies: those of asyncio and gRPC cannot fail as ours can."""

Life = Callable[[], Coroutine[Any, Any, object]]


class Fault(Enum):
    """What happens at an await."""

    CANCEL = "the life is cancelled"
    EVICT = "a task of the part is cancelled, one that the part cancels itself"
    FAIL = "what is awaited fails"
    BREAK = "what is awaited raises an error that no code expects, which has to come out as it is"
    STOP = "the part is stopped, and its life goes on"


class Unforeseen(Exception):
    """What BREAK raises: a fault of the code, which nothing may take for an error that it knows."""


class _Cut:
    """Counts the suspensions of a life and of all tasks that it begins; acts at one of them."""

    def __init__(self, number: int, act: Callable[[], BaseException | None]) -> None:
        self.seen = 0
        self._number, self._act = number, act

    def suspended(self) -> BaseException | None:
        self.seen += 1
        return self._act() if self.seen == self._number else None


class _Counted:
    """A coroutine whose suspensions are counted, and one of which may end in a failure.

    It is one by its methods, as `collections.abc.Coroutine` asks for.
    """

    def __init__(self, work: Coroutine[Any, Any, Any], cut: _Cut) -> None:
        self._work, self._cut = work, cut
        self.__qualname__ = getattr(work, "__qualname__", "")
        self._failure: BaseException | None = None

    def _suspended(self, waits: object) -> object:
        self._failure = self._cut.suspended()
        return waits

    def send(self, value: Any, /) -> object:  # noqa: ANN401 - as of any coroutine
        failure, self._failure = self._failure, None
        if failure is not None:
            return self._suspended(self._work.throw(failure))
        return self._suspended(self._work.send(value))

    def throw(self, *thrown: Any) -> object:  # noqa: ANN401
        return self._suspended(self._work.throw(*thrown))

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._work.__await__())


@dataclass(frozen=True, slots=True)
class Cuts:
    """What is played, and what happens at an await of it.

    A life ends well, in a cancellation that was asked for, or in an error of the ``typed``; with
    the fault BREAK in that error and no other.  ``stop`` is what the part's owner does at the await
    with the fault STOP.
    """

    life: Life
    fault: Fault = Fault.CANCEL
    failure: Callable[[], Exception] = lambda: ConnectionResetError("planted")
    stop: Life | None = None
    typed: tuple[type[BaseException], ...] = ()
    evicts: str = ""
    """How the names begin of tasks that the part itself cancels."""
    fails: tuple[str, ...] = ()
    """How the names begin of coroutines whose awaits can fail: all, with BREAK those of tests."""
    kept: frozenset[str] = frozenset()
    """Parts of the names of what is meant to stay, or what a library keeps."""

    def keeps(self, name: str) -> bool:
        return any(part in name for part in self.kept)

    async def lived(self, number: int) -> bool:
        """Play a life with a fault at the await of a number; return whether it came to that."""
        begun: list[asyncio.Task[Any]] = []
        stopping: list[asyncio.Task[Any]] = []
        planted: list[BaseException] = []

        def act() -> BaseException | None:
            match self.fault:
                case Fault.CANCEL:
                    asyncio.get_running_loop().call_soon(begun[0].cancel)
                case Fault.EVICT:
                    waits = asyncio.current_task()
                    if waits is not None and waits.get_name().startswith(self.evicts):
                        asyncio.get_running_loop().call_soon(waits.cancel)
                case Fault.STOP:
                    assert self.stop is not None
                    stopping.append(asyncio.create_task(self.stop()))
                case Fault.FAIL | Fault.BREAK:
                    planted.extend(self._failures_here())
                    return planted[0] if planted else None
            return None

        cut = _Cut(number, act)
        async with asyncio.timeout(SETTLE_SECONDS):
            ended = await self._ended(cut, begun)
            await asyncio.gather(*stopping)
        faulty = 0 < number <= cut.seen
        self._judge(ended, planted, faulty, f"at await {number} of {cut.seen}")
        return faulty

    def _failures_here(self) -> list[BaseException]:
        """Return the failure of what is awaited now, if that can fail."""
        failing = asyncio.current_task()
        name = "" if failing is None else _name_of_coroutine(failing)
        ours = "test_" if self.fault is Fault.BREAK else ""
        if not name.startswith(self.fails or ours):
            return []
        return [Unforeseen("planted") if self.fault is Fault.BREAK else self.failure()]

    def _judge(
        self, ended: BaseException | None, planted: list[BaseException], faulty: bool, at: str
    ) -> None:
        """Assert that a life ended as it may; ``planted`` has no traceback if it was not raised."""
        if self.fault is Fault.BREAK and planted and planted[0].__traceback__ is not None:
            assert ended is planted[0], f"{at} it came out as {ended!r}"
        elif isinstance(ended, asyncio.CancelledError):
            assert faulty, f"it cancels itself {at}"
        elif ended is not None and not (faulty and isinstance(ended, self.typed)):
            raise AssertionError(f"{at}: {ended!r}") from ended

    async def _ended(self, cut: _Cut, begun: list[asyncio.Task[Any]]) -> BaseException | None:
        """Play one life, with the tasks that it begins counted, and return its error."""
        loop, asker = asyncio.get_running_loop(), asyncio.current_task()

        def counted(
            loop: asyncio.AbstractEventLoop,
            work: Any,  # noqa: ANN401
            **context: Any,  # noqa: ANN401
        ) -> asyncio.Task[Any]:
            not_theirs = begun and asyncio.current_task() is asker
            code = getattr(work, "cr_code", None)
            if not_theirs or not getattr(code, "co_filename", "").startswith(OURS):
                return asyncio.Task(work, loop=loop, **context)
            return asyncio.Task(_Counted(work, cut), loop=loop, **context)

        loop.set_task_factory(cast(Any, counted))
        try:
            begun.append(asyncio.create_task(self.life(), name="a life"))
            await asyncio.wait(begun)
        finally:
            loop.set_task_factory(None)
        return asyncio.CancelledError() if begun[0].cancelled() else begun[0].exception()


async def cut_at_each_await(
    life: Life | Cuts,
    after: Callable[[int], Awaitable[None]],
    *,
    holdings: Callable[[], Mapping[str, float]] = dict,
) -> int:
    """Play a life whole, then with a fault at its first await, its second, and so on.

    The awaits of the tasks that it begins are counted, too.  ``after`` is given the number of the
    await, 0 for the whole life, and ends what the life leaves on purpose.  Then no task,
    descriptor, thread, timer or unit of ``holdings`` may be left that was not there after the whole
    life; and in the end no object for each of the lives.  Return how many lives were cut.
    """
    cuts = life if isinstance(life, Cuts) else Cuts(life)
    gc.freeze()  # what is looked at afterwards is new, and little
    try:
        with silenced() as logs:  # to show each planted failure would take most of the time
            return await _cut(cuts, after, holdings, logs)
    finally:
        gc.unfreeze()


async def _cut(
    cuts: Cuts,
    after: Callable[[int], Awaitable[None]],
    holdings: Callable[[], Mapping[str, float]],
    logs: MutableSequence[Any],
) -> int:
    before, objects = Counter[str](), Counter[str]()
    for number in count():
        faulty = await cuts.lived(number)
        await after(number)
        logs.clear()
        if number == 0:
            before, objects = await _quiet(holdings), _objects()
        await _balanced(before, cuts, holdings, number)
        if number and not faulty:
            more = (_objects() - objects).items()
            left = {name: n for name, n in more if 2 * n > number > 3 and not cuts.keeps(name)}
            assert not left, f"left of {number} lives: {left}"
            return number - 1
    raise AssertionError("not reached")


async def _quiet(holdings: Callable[[], Mapping[str, float]]) -> Counter[str]:
    """Return what is held once nothing changes any more."""
    last, same = _held(holdings), 0
    while same < QUIET_TURNS:
        await asyncio.sleep(0)
        now = _held(holdings)
        same = same + 1 if now == last else 0
        last = now
    return last


async def _balanced(
    before: Counter[str], cuts: Cuts, holdings: Callable[[], Mapping[str, float]], number: int
) -> None:
    """Wait until no more is held than before."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + SETTLE_SECONDS
    while left := [one for one in _held(holdings) - before if not cuts.keeps(one)]:
        assert loop.time() < ends, f"left over from a cut at await {number}: {left}"
        gc.collect()  # gRPC closes what is not referred to; a socket of ours must not wait for that
        await asyncio.sleep(0)


def _held(holdings: Callable[[], Mapping[str, float]]) -> Counter[str]:
    """Count this loop's other tasks and its timers, and this process's descriptors and threads."""
    found = Counter(f"task {name}" for name in _names_of_tasks())
    for thread in threading.enumerate():
        if not thread.name.startswith(POOL_THREADS):
            found[f"thread {thread.name}"] += 1
    for name in balance.descriptors().values():
        found[name.partition("[")[0]] += 1
    timers = vars(asyncio.get_running_loop()).get("_scheduled", ())
    found["timers"] = sum(not timer.cancelled() for timer in timers)
    found.update(holdings())
    return found


def _objects() -> Counter[str]:
    """Count the objects of the product and of asyncio that are not frozen."""
    gc.collect()
    names = (f"{type(one).__module__}.{type(one).__name__}" for one in gc.get_objects())
    return Counter(name for name in names if name.startswith(OBJECTS))


def files_open_below(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    return sorted(name for name in balance.descriptors().values() if name.startswith(f"{folder}/"))


def tasks_left() -> set[str]:
    """Return the names of tasks of this loop other than the one that asks."""
    return set(_names_of_tasks())


def _names_of_tasks() -> list[str]:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    numbered = (task for task in tasks if task.get_name().startswith("Task-"))
    for task in numbered:
        task.set_name(_name_of_coroutine(task))
    return [task.get_name() for task in tasks]


def _name_of_coroutine(task: asyncio.Task[Any]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", ""))
