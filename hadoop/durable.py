"""Small files that are whole or not there, whatever happens while they are written."""

import os
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Put ``content`` in place of whatever ``path`` held, on the disk when this returns.

    Raises:
        OSError: if the disk refuses; then the old content is still there.
    """
    beside = path.with_name(path.name + ".tmp")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    rename_durably(beside, path)


def rename_durably(old: Path, new: Path) -> None:
    """Rename within a folder; the new name is on the disk when this returns."""
    old.replace(new)
    sync_folder(new.parent)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it; the names of new ones are on the disk when this returns."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Make a folder's names durable: without it a crash may undo a create or a rename."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
