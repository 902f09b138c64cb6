"""Kills what a command has started and what has left its process group, by a mark it carries.

A process may leave its group, its session and its parent (``setsid``, a daemon); its environment it
takes along.  Parents tell nothing once one of them has ended, and to adopt orphans
(PR_SET_CHILD_SUBREAPER) would give a controller children that are none of its own.
"""

import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARK: Final = "nnha_fencing_run"
"""The environment variable that the command and all that it starts carry."""

_ROUNDS: Final = 10
"""One that is not yet found may start another one while we look."""
_SLACK_SECONDS: Final = 1.0
_START_TIME: Final = 19
"""The place of starttime in /proc/PID/stat behind the name, in clock ticks (proc(5), field 22)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What one run's processes are known by."""

    value: str
    since_ticks: float
    """None of them is older; to look into older ones could hang with one that hangs."""

    @property
    def variable(self) -> dict[str, str]:
        """For the command's environment."""
        return {MARK: self.value}


def fresh_mark() -> Mark:
    """A mark that nobody else carries."""
    since = time.clock_gettime(time.CLOCK_BOOTTIME) - _SLACK_SECONDS
    return Mark(secrets.token_hex(16), since * os.sysconf("SC_CLK_TCK"))


def kill_strays(mark: Mark) -> None:
    """Kill every process that carries the mark, as far as this user may look into it."""
    for _ in range(_ROUNDS):
        if sum(_killed(pid, mark) for pid in _young(mark)) == 0:
            return


def _young(mark: Mark) -> Iterator[int]:
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                after_name = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if int(after_name[_START_TIME]) >= mark.since_ticks:
                    yield int(process.name)
            except (OSError, IndexError, ValueError):
                continue  # it has just ended


def _killed(pid: int, mark: Mark) -> bool:
    try:
        # Held before it is looked at: its number may be another one's by the time of the kill.
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if f"{MARK}={mark.value}".encode() not in environment:
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(process)
