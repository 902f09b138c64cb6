"""Where an export goes: a folder that appears when it is whole, and replaces only an older export.

    <parent>/.<name>.partial/in_use.lock    held for as long as the export lives
                             new            what it writes
                             old            what it replaces, until the new one has the name

The system lets go of a dead export's lock, so the next one to the same place takes its folder over.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from hadoop.directory_lock import DirectoryLock
from hadoop.errors import InUse

log = structlog.get_logger()

FACTS: Final = "export.json"
"""Which image an export is of; what has no such file is none."""


_TRIES: Final = 10


class ExportRefused(Exception):
    """The output is in the way; nothing was changed."""


def refuse_in_the_way(out: Path, *, overwrite: bool) -> None:
    """Raise ExportRefused if something is there that may not be replaced.

    ``overwrite`` is meant for an older export: a folder of anything else, such as a name directory,
    is never deleted for one.
    """
    if not out.exists():
        return
    if not overwrite:
        raise ExportRefused(f"{out} is there already; give another name, or --overwrite")
    if not out.is_dir() or not ((out / FACTS).is_file() or not any(out.iterdir())):
        raise ExportRefused(
            f"{out} is no export (it has no {FACTS}), and --overwrite replaces nothing else; give "
            "another name, or move it away"
        )


@contextmanager
def published(out: Path) -> Iterator[Path]:
    """Yield a folder next to the output that takes its place if all goes well, or else goes.

    Raises:
        ExportRefused: if another process exports to the same place.
        OSError: if the place cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    room = out.with_name(f".{out.name}.partial")
    with _held(room):
        fresh, old = room / "new", room / "old"
        if fresh.exists() or old.exists():
            log.info("export.removed_unfinished", path=str(room))
        _clear(fresh, old, out)
        fresh.mkdir()
        try:
            yield fresh
            if out.exists():
                out.rename(old)
            fresh.rename(out)
        finally:
            _clear(fresh, old, out)


def _clear(fresh: Path, old: Path, out: Path) -> None:
    """Leave nothing of this export, or of one that died; what it was to replace stays."""
    if old.exists():
        if out.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:  # it died between the two renames
            old.rename(out)
    shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def _held(room: Path) -> Iterator[None]:
    lock = _lock(room)
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):  # the next one may be in it already
            room.rmdir()


def _lock(room: Path) -> DirectoryLock:
    for _ in range(_TRIES):
        room.mkdir(exist_ok=True)
        try:
            return DirectoryLock(room)
        except InUse as problem:
            raise ExportRefused(
                f"{room} {problem.found}: another export writes there; wait for it, or give "
                "another name"
            ) from problem
        except FileNotFoundError:
            continue  # the one before has just left and taken the folder along
    raise OSError(f"{room} does not stay there; does something else remove it?")
