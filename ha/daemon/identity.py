"""Which process is this: enough to find it again on this machine, and to know it is not another."""

import os
from functools import cache
from pathlib import Path

_START_FIELD = 19
"""Of what follows the name in /proc/<pid>/stat: the start, in clock ticks since the boot."""


def machine() -> str:
    """Return an id of this boot and pid namespace, within which a pid means one process."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - no path, a name


@cache
def clock() -> str:
    """Return an id of our loop's monotonic clock: of this boot, shifted by this time namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    try:
        return f"{boot} {os.readlink('/proc/self/ns/time')}"  # noqa: PTH115 - no path, a name
    except FileNotFoundError:
        return boot  # a kernel without them


def started_ticks(pid: int) -> int | None:
    """Return when that process started, in clock ticks since boot; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[_START_FIELD])
