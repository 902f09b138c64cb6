"""Keeps a large heap in huge pages, so that the kernel frees it at once when we are killed.

The kernel frees the memory of a killed process before it closes its sockets, and only then the
process has ended.  A controller notices the end by these two, and its peer may skip the wait for
the read lease only because of them.  Pages of 4 KiB take 80 to 170 ms of a core for each gigabyte,
huge pages 2 ms.  Python takes its memory in pieces of 1 MiB, for which the kernel gives small
pages; so what has been filled is collapsed afterwards (madvise, MADV_COLLAPSE, Linux 6.1).
"""

import asyncio
import ctypes
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger()

LEAST_BYTES: Final = 256 << 20
"""A smaller process is freed within 20 ms as it is."""
GROWN_BYTES: Final = 64 << 20
"""Memory is looked through again when it has grown by this."""
LOOK_SECONDS: Final = 5.0
AT_ONCE: Final = 2
"""Huge pages that are made in one go: about a millisecond each, in a thread."""
PAUSE_SECONDS: Final = 0.005
"""Between them: what needs new memory waits while the kernel makes a huge page."""
_COLLAPSE: Final = 25
_ENTRY_BYTES: Final = 8
FACTS: Final = Path("/sys/kernel/mm/transparent_hugepage")


async def keep_in_huge_pages(facts: Path = FACTS) -> None:
    """Collapse the memory of this process when it is large, and again when it has grown.

    Return at once where the kernel has no huge pages, or an operator has forbidden them: ``never``
    in the file ``enabled`` of ``facts``.
    """
    try:
        allowed = "[never]" not in (facts / "enabled").read_text()
        size = int((facts / "hpage_pmd_size").read_text())
    except OSError:
        allowed, size = False, 0
    if not allowed:
        log.info("huge_pages.off", consequence="a failover takes longer the larger the namespace")
        return
    swept_bytes = 0
    while True:
        resident = _resident_bytes()
        swept_bytes = min(swept_bytes, resident)
        if resident >= max(LEAST_BYTES, swept_bytes + GROWN_BYTES):
            await sweep(size)
            swept_bytes = _resident_bytes()
        await asyncio.sleep(LOOK_SECONDS)


async def sweep(size: int) -> None:
    """Collapse each piece of ``size`` bytes of our memory that is nearly all in use, in a thread.

    What the kernel refuses stays as it is: it has no free huge page, or does not know the request.
    """
    began, had = time.monotonic(), [0, 0]
    maps = await asyncio.to_thread(Path("/proc/self/maps").read_text)
    pieces = whole_pieces(maps.splitlines(), size)
    while some := list(islice(pieces, AT_ONCE)):
        made, refused = await asyncio.to_thread(_collapse, some, size)
        had[0] += made
        had[1] += refused
        await asyncio.sleep(PAUSE_SECONDS)
    log.info(
        "huge_pages.made", huge_pages=had[0], refused=had[1],
        seconds=round(time.monotonic() - began, 3),
    )  # fmt: skip


def whole_pieces(maps: Iterable[str], size: int) -> Iterator[int]:
    """Return where the aligned pieces of ``size`` bytes of private memory without a file begin.

    ``maps`` has the lines of /proc/self/maps (proc(5)).
    """
    for line in maps:
        place, rights, _offset, device, _inode, *name = line.split(maxsplit=5)
        if rights != "rw-p" or device != "00:00" or not (not name or name[0] == "[heap]"):
            continue
        first, last = (int(end, 16) for end in place.split("-"))
        yield from range(-(-first // size) * size, last // size * size, size)


def nearly_full(entries: bytes) -> bool:
    """Return whether 15 of 16 pages are in memory, by their entries of /proc/self/pagemap.

    The stack of a thread, of which little is used, must not take all that it may.
    """
    there = sum(last >= 0x80 for last in entries[_ENTRY_BYTES - 1 :: _ENTRY_BYTES])
    return there * _ENTRY_BYTES * 16 >= len(entries) * 15 > 0


def _collapse(pieces: Sequence[int], size: int) -> tuple[int, int]:
    """Return of how many pieces the kernel has made huge pages, and how many it refused."""
    library = ctypes.CDLL(None)
    advise = library.madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    page = os.sysconf("SC_PAGESIZE")
    pagemap = os.open("/proc/self/pagemap", os.O_RDONLY)
    answers = []
    try:
        for piece in pieces:
            entries = os.pread(pagemap, size // page * _ENTRY_BYTES, piece // page * _ENTRY_BYTES)
            if nearly_full(entries):
                answers.append(advise(piece, size, _COLLAPSE))
    finally:
        os.close(pagemap)
    return answers.count(0), len(answers) - answers.count(0)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
