"""The C heap of a daemon: one arena for all its threads, and what start-up freed given back."""

import ctypes
from typing import Final

_M_ARENA_MAX: Final = -8


def lean_heap() -> None:
    """Together 1-2 MB less; does nothing where the C library is not glibc.

    Arenas are for threads that allocate at the same time, which Python's threads do not.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(_M_ARENA_MAX, 1)
        library.malloc_trim(0)
