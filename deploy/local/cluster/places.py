"""Where local clusters are kept, which one was started last, and which ones run."""

import contextlib
import datetime
import os
from pathlib import Path

_HOME = Path("var")
_LAST = "last"
OWNER_FILE = "owner.pid"
"""Holds the process of the `nnha cluster up` that runs in the directory."""


def fresh_directory(kind: str) -> Path:
    """Make a directory below ``var/`` of the current directory, named after the time."""
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
    """Return the directory of the cluster started last from the current directory."""
    link = Path.cwd() / _HOME / _LAST
    return link.resolve() if link.is_dir() else None


def owner_of(directory: Path) -> int | None:
    """Return the process that runs the cluster, if it is still that one and not a reused pid."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((directory / OWNER_FILE).read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"cluster" in arguments and b"up" in arguments:
            return pid
    return None


def running_clusters() -> list[Path]:
    """Return the directories that a `nnha cluster up` runs in, the newest first.

    Those below ``var/`` of the current directory and the last one used here: a demo, a soak or a
    bench that came later is not what `nnha cluster down` is for.
    """
    kept = [one.parent for one in (Path.cwd() / _HOME).glob(f"*/{OWNER_FILE}")]
    last = last_cluster()
    found = {one.resolve() for one in (*kept, *([] if last is None else [last]))}
    started: dict[Path, float] = {}
    for one in found:
        with contextlib.suppress(OSError):  # it may end while we look
            if owner_of(one) is not None:
                started[one] = (one / OWNER_FILE).stat().st_mtime
    return sorted(started, key=started.__getitem__, reverse=True)
