"""The collector of garbage waits while millions of objects come and nearly none goes."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Turn garbage collection off, which would run again and again and find nothing.

    Measured with a million edits: a fifth of the time of planning.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
