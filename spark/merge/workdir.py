"""Work directories: what a run writes on the way, and what is left of runs that died.

    <parent>/nnha-merge-<id>/in_use.lock     held until the run ends

The system lets go of a dead run's lock, so the next run can distinguish what is left over from what
is being used, and removes it.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import structlog

from hadoop.directory_lock import DirectoryLock
from hadoop.errors import InUse

log = structlog.get_logger()

PREFIX: Final = "nnha-merge-"
_GONE: Final = ".gone"
_TRIES: Final = 10


@contextmanager
def work_directory(parent: Path) -> Iterator[Path]:
    """Yield a fresh folder in ``parent``, removed at the end; remove dead runs' first.

    Raises:
        OSError: if ``parent`` cannot be written.
    """
    parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(parent)
    room, lock = _make_room(parent)
    try:
        yield room
    finally:
        _remove(room)
        lock.release()


def remove_left_over(parent: Path) -> list[Path]:
    """Remove the work directories in ``parent`` of runs that have died; returns which they were."""
    removed = []
    for path in sorted(parent.glob(f"{PREFIX}*")):
        try:
            lock = DirectoryLock(path)
        except (InUse, OSError):
            continue  # somebody works in it, has just removed it, or lets no other user into it
        _remove(path)
        lock.release()
        removed.append(path)
        log.info("merge.removed_left_over", path=str(path))
    return removed


def _make_room(parent: Path) -> tuple[Path, DirectoryLock]:
    for _ in range(_TRIES):
        room = parent / f"{PREFIX}{uuid4().hex[:12]}"
        room.mkdir(mode=0o700)
        try:
            return room, DirectoryLock(room)
        except (InUse, FileNotFoundError):
            continue  # another run took it for left over before we had the lock
    raise OSError(f"{parent}: no work directory stays there; does something else remove them?")


def _remove(room: Path) -> None:
    """Remove a folder although tasks of a dead run may still be writing: they lose its name."""
    aside = room if room.name.endswith(_GONE) else room.with_name(room.name + _GONE)
    if aside != room:
        room.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)
