"""Tasks for the engines: top-level functions over small frozen tasks, as the merge's own are."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from namenode_sim.image.errors import ImageError
from spark.engine.outcome import attempt_name

SPIN_SECONDS = 40.0
"""How long a task waits for its test; no good test lets it."""


@dataclass(frozen=True, slots=True)
class Square:
    """A number; ``flag`` is a file that says that this was tried before."""

    number: int
    flag: str = ""


def square(task: Square) -> int:
    return task.number**2


def written(task: Square) -> str:
    """Write by the rules: a file of the attempt's own; return its name."""
    path = Path(task.flag) / attempt_name(f"part-{task.number}")
    path.write_text(str(task.number))
    return path.name


def broken(task: Square) -> int:
    """Find damaged data in the third task."""
    if task.number == 3:
        raise ImageError("fsimage_7: section INODE, byte 12 of the file: malformed")
    return task.number


def disk_fails_once(task: Square) -> int:
    """Fail by what the machine did, and may not do again."""
    if _first_time(task):
        raise OSError(5, "Input/output error", "part-1")
    return task.number


def dies_once(task: Square) -> int:
    if task.flag and _first_time(task):
        os.kill(os.getpid(), signal.SIGKILL)
    return task.number


def always_dies(task: Square) -> int:
    if task.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.number


def waits_for(task: Square) -> int:
    """Wait in the first task for its flag, which the test makes from another's result."""
    if task.number == 0:
        deadline = os.times().elapsed + SPIN_SECONDS
        while not Path(task.flag).exists():
            if os.times().elapsed > deadline:
                raise ImageError("no result came while this one was running")
            os.sched_yield()
    return task.number


def _first_time(task: Square) -> bool:
    flag = Path(task.flag)
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
