"""Which event loop a daemon runs on: uvloop's where it is installed, or asyncio's own.

See docs/operations.md#the-event-loop.
"""

import asyncio
import time
from collections.abc import Callable
from enum import Enum
from importlib.util import find_spec
from typing import Any, Final

LOOP_VARIABLE: Final = "NNHA_LOOP"
"""Says which one, in place of what is installed."""

MOST_PORT: Final = 65535


class EventLoop(Enum):
    """The loops, by the names that people give them."""

    ASYNCIO = "asyncio"
    UVLOOP = "uvloop"


class NoSuchLoop(Exception):
    """The environment asks for a loop that is not there."""


def uvloop_installed() -> bool:
    """Return whether uvloop is installed, without loading it."""
    return find_spec(EventLoop.UVLOOP.value) is not None


def chosen_loop(asked: str | None, *, installed: bool) -> EventLoop:
    """Return the loop that the environment asks for, else uvloop's if it is installed.

    Raises:
        NoSuchLoop: the one asked for is unknown or not installed.
    """
    if not asked:
        return EventLoop.UVLOOP if installed else EventLoop.ASYNCIO
    try:
        loop = EventLoop(asked)
    except ValueError:
        known = " or ".join(one.value for one in EventLoop)
        raise NoSuchLoop(f"{LOOP_VARIABLE} is {asked!r}; it must be {known}") from None
    if loop is EventLoop.UVLOOP and not installed:
        raise NoSuchLoop(f"{LOOP_VARIABLE} is {asked}, which is not installed: nnha[fast] has it")
    return loop


def loop_factory(loop: EventLoop) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of such loops for ``asyncio.Runner``; None for asyncio's own."""
    return fast_loop if loop is EventLoop.UVLOOP else None


def fast_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop's; its clock and its ports are as true as asyncio's."""
    import uvloop  # 4 ms, for those who run it

    class FastLoop(uvloop.Loop):
        # Its own clock is read once in a turn, in milliseconds.  What takes long within a turn
        # would take no time, and a process that was stopped in the middle of one would not know
        # it.  Timers count from their start, so that they are none the wiser.
        time = staticmethod(time.monotonic)

        async def create_connection(
            self,
            protocol_factory: Callable[[], Any],
            host: str | None = None,
            port: int | None = None,
            **options: Any,  # noqa: ANN401 - they are handed on
        ) -> tuple[Any, Any]:
            # It would cut the number to 16 bits, and so reach somebody else.
            if port is not None and not 0 <= port <= MOST_PORT:
                raise OverflowError(f"a port is at most {MOST_PORT}, and not {port}")
            return await super().create_connection(
                protocol_factory,
                host,  # type: ignore[arg-type] # None where ``options`` has a socket
                port,  # type: ignore[arg-type]
                **options,
            )

    return FastLoop()
