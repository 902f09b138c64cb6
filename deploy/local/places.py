"""Where local clusters are kept, and which one was started last."""

import contextlib
import datetime
import os
from pathlib import Path

_HOME = Path("var")
_LAST = "last"


def fresh_directory(kind: str) -> Path:
    """A new directory below ``var/`` of the current directory, named after the time."""
    moment = datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%dT%H%M%S")
    directory = Path.cwd() / _HOME / f"{kind}-{moment}-{os.getpid()}"
    directory.mkdir(parents=True)
    return directory


def remember(directory: Path) -> None:
    """Make this cluster the last one, for commands that are given none."""
    home = Path.cwd() / _HOME
    home.mkdir(exist_ok=True)
    fresh = home / f"{_LAST}.{os.getpid()}"
    with contextlib.suppress(OSError):
        fresh.unlink()
    with contextlib.suppress(OSError):  # a convenience, not worth failing for
        fresh.symlink_to(directory.resolve())
        fresh.replace(home / _LAST)


def last_cluster() -> Path | None:
    """The directory of the cluster that was started last from the current directory."""
    link = Path.cwd() / _HOME / _LAST
    return link.resolve() if link.is_dir() else None
