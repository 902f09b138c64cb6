"""Blocking work in a thread that ends before its caller does, cancelled or not."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], let_go: Callable[[T], object] | None = None) -> T:
    """Return what ``work`` returns in a thread, or raise what it raises.

    If the caller is cancelled, wait for the thread before CancelledError goes on, and call
    ``let_go`` with what it returned: `asyncio.to_thread` leaves the thread running, so that a lock
    that it takes stays taken, and what cleans up runs at the same time as the work.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            try:
                await asyncio.wait([working])
            except asyncio.CancelledError:
                continue  # the second one must not hand the thread's work to nothing either
        if not working.cancelled() and working.exception() is None and let_go is not None:
            let_go(working.result())
        raise
