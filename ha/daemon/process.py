"""A daemon process: its event loop, its signals, its exit codes, and how late its loop runs."""

import asyncio
import contextlib
import ctypes
import faulthandler
import gc
import os
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NoReturn

import structlog
from prometheus_client import Gauge

from ha.daemon import event_loop
from ha.daemon.notify import SERVICE
from ha.daemon.private_files import private_files
from ha.daemon.stderr import START_LINES, let_go_of_stderr, say

log = structlog.get_logger()

UNEXPECTED = 1
"""Exit code of a daemon that died of an error it did not foresee."""

FILES = 65536
"""As many open files as the system allows us, but no more: what we start inherits it, and some
programs look at each number up to it."""

HELD_SECONDS = 0.5
"""How long the lines of a start are kept back, for the reason to come first if it fails."""

LAG_PROBE_SECONDS = 0.25
LAG_WORTH_A_LINE_SECONDS = 1.0

_lag = Gauge(
    "nnha_loop_lag_seconds",
    "How late the event loop woke up the last time",
    ["process"],
)


LONGEST_LAG_SECONDS = 60.0
"""The longest lag of that time is shown, so that a stall is seen by the next scrape."""

_longest_lag = Gauge(
    "nnha_loop_lag_longest_seconds",
    "How late the event loop woke up at worst in the last 60 s",
    ["process"],
)


class Lags:
    """The lags of the last ``LONGEST_LAG_SECONDS``, as far as they can be the longest."""

    def __init__(self) -> None:
        self._falling: deque[tuple[float, float]] = deque()

    def add(self, at: float, seconds: float) -> None:
        """Record a lag measured at that time; earlier and shorter ones do not count any more."""
        while self._falling and self._falling[-1][1] <= seconds:
            self._falling.pop()
        self._falling.append((at, seconds))

    def longest(self, now: float) -> float:
        """Return the longest one that is not too old, in seconds."""
        while self._falling and self._falling[0][0] <= now - LONGEST_LAG_SECONDS:
            self._falling.popleft()
        return self._falling[0][1] if self._falling else 0.0


class ExitWith(Exception):
    """Ends the daemon with an exit code, and a message on stderr that says why."""

    def __init__(self, code: int, message: str) -> None:
        """Exit with ``code`` 0..255, and print ``message`` unless it is empty."""
        super().__init__(message)
        self.code = code
        self.message = message


def halt(name: str, code: int, message: str) -> NoReturn:
    """End the process now: print the message on stderr, clean up nothing, wait for no caller.

    For a daemon that must not go on.  To wait for callers that can never be answered would only
    keep its successor waiting.
    """
    with START_LINES.after():
        log.error("daemon.halted", code=code, reason=message)
    say(f"{name}: {message}")
    os._exit(code)


def run_daemon(
    name: str, main: Callable[[asyncio.Event], Awaitable[None]], *, busy: bool = False
) -> int:
    """Run ``main`` until it returns, and give the exit code for ``sys.exit``.

    A ``busy`` one, which answers thousands of requests a second, runs on the fastest loop that
    there is (``event_loop``), any other one on asyncio's.

    SIGTERM, SIGINT and SIGHUP (unless it is ignored, as under nohup) set the event that ``main``
    gets; it then stops in its own order.  A second SIGTERM or SIGINT cancels it.  ``ExitWith``
    becomes its message and code; any other exception is logged and becomes 1.  Its files are for
    its own user only.  SIGABRT, by which a watchdog ends it, leaves on stderr where it hangs.
    """
    _allow_many_files()
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed, or no file
        # Only the thread that receives the signal, which is the event loop's: reading the stacks of
        # threads that run at the same time crashes now and then, before the loop's is written.
        faulthandler.enable(sys.stderr, all_threads=False)
    START_LINES.hold()
    try:
        with private_files():
            code = _run(name, main, busy=busy)
            if code == UNEXPECTED and (seconds := SERVICE.held_back_seconds()):
                log.info("daemon.held_back", why="its start failed", again_in_seconds=seconds)
                text = f"the start failed, and the next start is in {seconds:g} s"
                SERVICE.status(text, more_seconds=2 * seconds)
                time.sleep(seconds)
            return code
    finally:
        START_LINES.release()
        let_go_of_stderr()


def _run(name: str, main: Callable[[asyncio.Event], Awaitable[None]], *, busy: bool) -> int:
    try:
        loop = _loop_for(busy=busy)
        with asyncio.Runner(loop_factory=event_loop.loop_factory(loop)) as runner:
            runner.run(_supervise(name, main, loop))
    except ExitWith as wish:
        tell = log.error if wish.code else log.info
        with START_LINES.after():
            tell("daemon.exit", code=wish.code, reason=wish.message)
        if wish.message:
            say(f"{name}: {wish.message}")
        return wish.code
    except asyncio.CancelledError:
        log.warning("daemon.cancelled", why="a second signal came before it had stopped")
        return UNEXPECTED
    except Exception:
        with START_LINES.after():
            log.exception("daemon.failed")
        return UNEXPECTED
    log.info("daemon.stopped")
    return 0


def _loop_for(*, busy: bool) -> event_loop.EventLoop:
    if not busy:
        return event_loop.EventLoop.ASYNCIO
    try:
        return event_loop.chosen_loop(
            os.environ.get(event_loop.LOOP_VARIABLE), installed=event_loop.uvloop_installed()
        )
    except event_loop.NoSuchLoop as wrong:
        raise ExitWith(UNEXPECTED, str(wrong)) from wrong


def _allow_many_files() -> None:
    """Raise the soft limit, as Java does: 1,024, which is usual, are fewer than our connections.

    A daemon without a free descriptor reaches neither its peers nor ZooKeeper, and cannot fence.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _supervise(
    name: str, main: Callable[[asyncio.Event], Awaitable[None]], loop: event_loop.EventLoop
) -> None:
    stop = asyncio.Event()
    SERVICE.adopt()
    async with _signals(stop), _lag_gauge(name):
        calm_collector()
        lean_heap()
        log.info("daemon.started", pid=os.getpid(), loop=loop.value)
        asyncio.get_running_loop().call_later(HELD_SECONDS, START_LINES.release)
        await main(stop)


@contextlib.asynccontextmanager
async def _signals(stop: asyncio.Event) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def heard(number: signal.Signals) -> None:
        log.info("daemon.signal", signal=number.name, again=stop.is_set())
        # A terminal that closes may say so twice: the shell passes it on, and the kernel.
        if stop.is_set() and task is not None and number is not signal.SIGHUP:
            task.cancel()
        stop.set()
        SERVICE.stopping()

    # As Java does: a terminal that closes is no reason to leave a lock behind until it expires.
    hangups = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    numbers = (signal.SIGTERM, signal.SIGINT, *hangups)
    for number in numbers:
        loop.add_signal_handler(number, heard, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _lag_gauge(name: str) -> AsyncIterator[None]:
    task = asyncio.create_task(_measure_lag(name), name="loop lag")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _measure_lag(name: str) -> None:
    loop = asyncio.get_running_loop()
    gauge = _lag.labels(process=name)
    lags = Lags()
    _longest_lag.labels(process=name).set_function(lambda: lags.longest(loop.time()))
    told_at = loop.time()
    while True:
        asked = loop.time() + LAG_PROBE_SECONDS
        await asyncio.sleep(LAG_PROBE_SECONDS)
        late = max(0.0, loop.time() - asked)
        gauge.set(late)
        lags.add(loop.time(), late)
        if late >= LAG_WORTH_A_LINE_SECONDS:
            log.warning("daemon.loop_was_late", seconds=round(late, 3))
        if 0 < SERVICE.alive_every_seconds <= loop.time() - told_at:
            told_at = loop.time()
            if why := SERVICE.overdue():
                log.error("daemon.duty_overdue", why=why, consequence="no sign of life is given")
            else:
                SERVICE.alive()


_M_ARENA_MAX: Final = -8


def lean_heap() -> None:
    """Use one C heap for all threads, and give back what start-up freed: together 1-2 MB less.

    It does nothing where the C library is not glibc.

    Arenas are for threads that allocate at the same time, which Python's threads do not.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(_M_ARENA_MAX, 1)
        library.malloc_trim(0)


NEW_OBJECTS: Final = 20_000
"""Python looks for cycles after 700 new objects, which is several times for each batch of edits."""


def calm_collector() -> None:
    """Leave everything that exists now out of collections, and collect less often.

    The modules of a daemon are some hundred thousand objects that never go away.  Each full
    collection walks over all of them: 15-30 ms in which nothing is answered.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)
