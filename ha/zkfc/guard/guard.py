"""A thread that ends the process when a duty of the controller has stalled.

kazoo sends its pings from its own thread, so a controller whose event loop hangs would keep its
session and its lock for ever, and no peer could take over from a NameNode that is not monitored.

See docs/reference/zkfc.md#standing-still.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import structlog
from prometheus_client import Gauge

from ha.zkfc.guard.core import Stalled, Watch, look
from ha.zkfc.guard.duties import Duties

log = structlog.get_logger()

STOOD_STILL: Final = 7
"""The exit code of a controller that its guard ended; its supervisor starts another one."""
PATIENCE_SHARE: Final = 0.5
"""The time by which a duty may be overdue, as a share of the session's timeout."""
LOOKS: Final = 10
"""The number of looks within that time."""
LAST_SECONDS: Final = 1.0
"""The limit for closing the sessions and for the last line of the log."""
EVENT_LOOP: Final = "event loop"

_longest = Gauge(
    "nnha_zkfc_longest_silence_seconds",
    "The longest time for which this duty of the controller gave no sign",
    ["duty"],
)


class Guard:
    """Watches the duties, and calls ``end`` once, on its own thread, when one has stalled."""

    def __init__(
        self,
        duties: Duties,
        *,
        session_seconds: Callable[[], float],
        end: Callable[[Stalled], None],
    ) -> None:
        """Call ``session_seconds`` on the guard's thread for the session's timeout."""
        self._duties = duties
        self._session_seconds = session_seconds
        self._end = end
        self._over = threading.Event()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch during a ``with`` block."""
        thread = threading.Thread(target=self._watch, name="guard", daemon=True)
        beating = asyncio.create_task(self._beat(), name="guard's beat")
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    @property
    def _interval(self) -> float:
        return self._session_seconds() * PATIENCE_SHARE / LOOKS

    async def _beat(self) -> None:
        give = self._duties.heartbeat_for(EVENT_LOOP)
        while True:
            interval = self._interval
            give(interval)
            await asyncio.sleep(interval)

    def _watch(self) -> None:
        watch, longest = Watch(), dict[str, float]()
        while not self._over.wait(interval := self._interval):
            watch, stalled = look(
                watch,
                self._duties.signs(),
                now=time.monotonic(),
                interval_seconds=interval,
                patience_seconds=LOOKS * interval,
            )
            for silence in watch.silences:
                if silence.seconds > longest.get(silence.duty, -1.0):
                    longest[silence.duty] = silence.seconds
                    _longest.labels(silence.duty).set(silence.seconds)
            if stalled is not None:
                self._end(stalled)
                return


def end_process(stalled: Stalled, *, namenode: str, give_up: Sequence[Callable[[], None]]) -> None:
    """Call ``give_up`` to close the sessions and so release the lock; then end the process.

    It ends after LAST_SECONDS at the latest: what blocks the event loop (a full pipe behind the
    log, a mutex) may block these threads, too.  Then the lock lasts until the session expires.
    """
    where = _stack_of_main_thread()
    works = [
        threading.Thread(target=work, daemon=True)
        for work in (*give_up, lambda: _log_stall(stalled, namenode, where))
    ]
    for work in works:
        work.start()
    deadline = time.monotonic() + LAST_SECONDS
    for work in works:
        work.join(max(0.0, deadline - time.monotonic()))
    os._exit(STOOD_STILL)


def _log_stall(stalled: Stalled, namenode: str, where: list[str]) -> None:
    log.critical(
        "zkfc.stood_still",
        namenode=namenode,
        duty=stalled.duty,
        silent_seconds=round(stalled.silent_seconds, 3),
        allowed_seconds=round(stalled.allowed_seconds, 3),
        code=STOOD_STILL,
        consequence="the lock is given up and this process ends; another one must be started",
        main_thread=where,
    )


def _stack_of_main_thread() -> list[str]:
    """Return where the event loop hangs, the outermost call first."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    if frame is None:
        return []
    return [f"{one.filename}:{one.lineno} {one.name}" for one in traceback.extract_stack(frame)]
