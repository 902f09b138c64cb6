"""Files whose bytes stay in memory: the one place that asks the C library to map and lock them."""

import ctypes
import mmap
import os
import resource
import sys
from typing import Final

from ha.record import dataclass

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_LIBC.mlock.argtypes = _LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED: Final = ctypes.c_void_p(-1).value


@dataclass(frozen=True, slots=True)
class LockedPages:
    """A mapping of a file, all in memory; it stays until ``unlock``."""

    address: int
    length: int


def lock_file(fd: int, length: int) -> LockedPages:
    """Read the first bytes of an open file into memory, and keep them there; takes long.

    Raises:
        OSError: if the system refuses, as it does beyond ``most_lockable``.
    """
    address = _LIBC.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if address == _MAP_FAILED:
        raise _refusal()
    if _LIBC.mlock(address, length):
        refusal = _refusal()
        _LIBC.munmap(address, length)
        raise refusal
    return LockedPages(address, length)


def unlock(pages: LockedPages) -> None:
    """Give the memory back; the mapping must not be used again."""
    _LIBC.munmap(pages.address, pages.length)


def _refusal() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def whole_pages(length: int) -> int:
    """Return how many bytes a file takes in memory."""
    return -(-length // mmap.PAGESIZE) * mmap.PAGESIZE


def most_lockable() -> int:
    """Return how many bytes this process may lock (RLIMIT_MEMLOCK)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
