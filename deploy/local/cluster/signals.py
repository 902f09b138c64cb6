"""Turns signals that ask for an end into one in which `with` blocks stop what they started."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into SystemExit with 128 + signal while the block runs.

    Only the first does; what follows would interrupt the orderly end itself.
    """
    ending = False

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal ending
        if not ending:
            ending = True
            raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in _ASKING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
