"""What a daemon writes is for its own user: images and edits hold the keys of clients' tokens."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger()

PRIVATE_UMASK: Final = 0o077
OTHERS: Final = 0o077
"""The bits of the group and of everybody else."""


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Give new directories the mode 0700 and new files 0600, whatever the shell before us set."""
    before = os.umask(PRIVATE_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def warn_of_open_folders(folders: Iterable[Path], *, allowed: int = 0o700) -> None:
    """Log each folder that exists already and that others may enter; its mode is its owner's word.

    ``allowed``: the mode that the configuration asks for.
    """
    for folder in dict.fromkeys(folders):
        try:
            mode = stat.S_IMODE(folder.stat().st_mode)
        except OSError:
            continue  # its user reports what is wrong
        if mode & OTHERS & ~allowed:
            log.warning(
                "storage.open_to_others",
                path=str(folder),
                mode=f"{mode:04o}",
                why="other users of this machine may read images and edits",
                advice=f"chmod 700 {folder}",
            )
