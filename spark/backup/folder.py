"""A folder of backups: each is written under another name, and renamed when all of it is there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hadoop.durable import make_folder, sync_folder
from spark.backup.model import MANIFEST, UNFINISHED, BackupError, Manifest, parse_manifest


@contextmanager
def room_in(folder: Path) -> Iterator[Path]:
    """Have an empty folder to make a backup in; it is removed unless it was published."""
    make_folder(folder, 0o700)
    room = folder / f"{UNFINISHED}{os.getpid()}"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(mode=0o700)
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def publish(room: Path, name: str) -> Path:
    """Give what is in the room its name, durably; raise OSError where that exists already."""
    target = room.with_name(name)
    room.rename(target)
    sync_folder(target.parent)
    return target


def existing(folder: Path, name: str) -> Path:
    """Return a backup's folder; raise BackupError if there is none."""
    if name.startswith(UNFINISHED) or not (folder / name).is_dir():
        raise BackupError(f"there is no backup {folder / name}; see nnha backup list")
    return folder / name


def why_not_whole(backup: Path) -> tuple[Manifest | None, str]:
    """Return a backup's manifest, and why it is not whole by names and lengths; empty if it is."""
    if backup.name.startswith(UNFINISHED):
        return None, "it is being written, or its writer was killed; then delete it"
    try:
        manifest = parse_manifest((backup / MANIFEST).read_bytes())
    except (BackupError, OSError) as problem:
        return None, str(problem)
    sizes = {path.name: path.stat().st_size for path in backup.iterdir()}
    bad = [name for name, file in manifest.files.items() if sizes.get(name) != file.size]
    return manifest, f"missing or of another length: {', '.join(bad)}" if bad else ""
