"""Turns SIGTERM and SIGHUP into an orderly end, so that `with` blocks stop what they started."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """While the block runs, SIGTERM and SIGHUP raise SystemExit as Ctrl-C raises its own."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
