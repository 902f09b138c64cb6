"""A loop whose timers wait out a machine that stands still.

A limit of a few seconds, of a call or of a test, is met on a quiet machine within milliseconds.  A
machine that gives a process no time for longer than the limit fails it, though nothing is wrong.
So a turn of the loop that took longer than a turn takes moves all timers by what was lost; their
order and the times between them stay.  Clocks are not touched: what measures a time sees all of it.
"""

import asyncio
import time
from typing import Any, Final, Protocol, cast

from ha.daemon.event_loop import PlainLoop

TURN_SECONDS: Final = 0.1
"""What a turn may take, and a wait for something that comes, without moving any timer."""


class _Inner(Protocol):
    """What asyncio's loop keeps: the selector that it waits in, and its timers as a heap."""

    _selector: Any
    _scheduled: list[asyncio.TimerHandle]


def patient_loop() -> asyncio.AbstractEventLoop:
    """Return asyncio's loop, as ours has it, with timers that wait out a standstill."""
    loop = PlainLoop()
    inner = cast(_Inner, loop)
    select = inner._selector.select
    went_on_at = time.monotonic()

    def wait(seconds: float | None = None) -> Any:  # noqa: ANN401 - the selector's own
        nonlocal went_on_at
        began = time.monotonic()
        events = select(seconds)
        ended = time.monotonic()
        expected = 0.0 if events or seconds is None else max(0.0, seconds)
        lost = max(0.0, began - went_on_at - TURN_SECONDS)
        lost += max(0.0, ended - began - expected - TURN_SECONDS)
        if lost:
            _move(inner._scheduled, lost)
        went_on_at = ended
        return events

    inner._selector.select = wait
    return loop


def _move(timers: list[asyncio.TimerHandle], seconds: float) -> None:
    """Let all fire later, alike, so that the heap stays one."""
    for timer in timers:
        timer._when += seconds  # type: ignore[attr-defined]
