"""An asyncio event loop on virtual time, where each process can be frozen or killed."""

import asyncio
import contextvars
import heapq
import math
from asyncio.events import Handle, TimerHandle
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Final

from tests.simulation.engine.verdict import Stuck

_FIRST_PRUNING: Final = 64

PROCESS: ContextVar["Process | None"] = ContextVar("PROCESS", default=None)
"""The simulated process that the running code belongs to."""


class Process:
    """One life of one program on one machine.  What it starts belongs to it."""

    def __init__(self, machine: str, loop: "VirtualLoop") -> None:
        self.machine = machine
        self.alive = True
        self.frozen = False
        self.parked: list[Handle] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.rate = loop.rate_of(machine)
        self._prune_at = _FIRST_PRUNING
        self._loop = loop
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.context.run(self._loop.create_task, work)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self.tasks.append(task)
        if len(self.tasks) > self._prune_at:
            self.tasks = [task for task in self.tasks if not task.done()]
            self._prune_at = max(_FIRST_PRUNING, 2 * len(self.tasks))

    def freeze(self) -> None:
        """Stop it as SIGSTOP does: nothing of it runs, its timers do not either."""
        self.frozen = self.alive

    def thaw(self) -> None:
        """Let it go on; whatever came due in the meantime runs now, in order."""
        self.frozen = False
        parked, self.parked = self.parked, []
        for handle in parked:
            self._loop.resume(handle)

    def kill(self) -> None:
        """End it.  Its tasks unwind, but neither disk nor network listens to them any more."""
        if not self.alive:
            return
        self.alive = False
        self.thaw()
        for task in self.tasks:
            task.cancel()


class VirtualLoop(asyncio.BaseEventLoop):
    """Time stands still while anything can run, and then jumps to the next timer.

    Timers of one instant run in the order in which they were set, so that equal inputs give equal
    runs.  "Threads" are timers too: blocking work happens at one instant.

    ``now`` is the world's time.  Each machine has a clock of its own, which may run a little faster
    or slower; it is what ``time`` shows to the machine's processes, and what their timers go by.
    """

    def __init__(self, blocking_delay: Callable[["Process | None"], float]) -> None:
        super().__init__()
        self.steps = 0
        self.now = 0.0
        self.rate_of: Callable[[str], float] = lambda _machine: 1.0
        self._timers: list[tuple[float, int, TimerHandle]] = []
        self._order = 0
        self._busy_until: dict[int, float] = {}
        self._executors: list[object] = []
        self._blocking_delay = blocking_delay
        self.set_task_factory(_create_task)  # type: ignore[arg-type] # a narrower signature

    def time(self) -> float:
        """Seconds since the beginning of the world, as the machine's clock counts them."""
        process = PROCESS.get()
        return self.now if process is None else self.now * process.rate

    def resume(self, handle: Handle) -> None:
        """Put a parked callback back."""
        self._ready.append(handle)  # type: ignore[attr-defined]

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,  # noqa: ANN401
        context: Context | None = None,
    ) -> TimerHandle:
        """Set a timer by the machine's clock."""
        process = PROCESS.get()
        if process is None or process.rate == 1:
            return self.at(when, callback, *args, context=context)
        due = when / process.rate
        while due * process.rate < when:  # rounded down: a sleeper would wait for it for ever
            due = math.nextafter(due, math.inf)
        return self.at(due, callback, *args, context=context)

    def at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,  # noqa: ANN401
        context: Context | None = None,
    ) -> TimerHandle:
        """Set a timer by the world's time."""
        handle = TimerHandle(when, callback, args, self, context)
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, handle))
        return handle

    def run_in_executor(  # type: ignore[override]
        self,
        executor: object,
        func: Callable[..., Any],
        *args: Any,  # noqa: ANN401
    ) -> "asyncio.Future[Any]":
        """Run blocking work: one instant, a little later, in order per executor."""
        done = self.create_future()
        when = self.now + self._blocking_delay(PROCESS.get())
        if executor is not None:
            when = max(when, self._busy_until.get(id(executor), 0.0))
            if id(executor) not in self._busy_until:
                self._executors.append(executor)  # an id is unique only among the living
            self._busy_until[id(executor)] = when
        self.at(when, _work, done, func, args)
        return done

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        """Do nothing: a cancelled timer is dropped when its time comes."""

    def _write_to_self(self) -> None:
        """Do nothing: no thread sleeps that would have to be woken."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: there are no sockets."""

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers  # type: ignore[attr-defined]
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise Stuck("nothing can run any more, and the world has not ended")
            self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[2]
            if not handle.cancelled():
                ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(PROCESS)
            if process is not None and process.frozen:
                process.parked.append(handle)
                continue
            self.steps += 1
            handle._run()


def _create_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any],
    context: Context | None = None,
) -> asyncio.Task[Any]:
    task = asyncio.Task(work, loop=loop, context=context)
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is not None:
        process.adopt(task)
        if not process.alive:
            task.cancel()
    return task


def _work(done: "asyncio.Future[Any]", func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if done.cancelled():
        return
    try:
        result = func(*args)
    except BaseException as failure:  # noqa: BLE001 - a power cut too is the caller's to see
        if not done.done():  # the work may have killed whoever waits for it
            done.set_exception(failure)
    else:
        if not done.done():
            done.set_result(result)
