"""Processes that share a campaign's work, and end with it."""

import ctypes
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def workers(
    jobs: int, begin: Callable[..., None] | None = None, *args: object
) -> ProcessPoolExecutor:
    """Return a pool of this size whose processes call ``begin`` first.

    The kernel kills them when the process that opened the pool ends in any way.  A campaign that
    is stopped by a signal would leave them at work.
    """
    return ProcessPoolExecutor(jobs, initializer=partial(_begin, os.getpid(), begin, *args))


def _begin(parent: int, begin: Callable[..., None] | None, *args: object) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel knew of the wish
        os._exit(1)
    if begin is not None:
        begin(*args)
