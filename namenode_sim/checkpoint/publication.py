"""How a finished image appears in a directory: by rename, its digest first, or not at all."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hadoop.directory_lock import DirectoryLock
from hadoop.durable import make_folder, rename_durably
from namenode_sim.image.files import digest_path, read_digest

_STAGE: Final = "merge.tmp"
_CHUNK_BYTES: Final = 1024 * 1024


class MergeRefused(Exception):
    """The merge would overwrite something else; nothing was changed."""


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Yield a folder inside ``out`` for an image in the making, while ``out`` is locked.

    It lies there because only a rename within one file system is atomic.  What a killed run left in
    it is removed; and so is the folder itself at the end, whatever happens.

    Raises:
        InUse: if another merge works in ``out``.
        OSError: if ``out`` cannot be written.
    """
    make_folder(out)
    lock = DirectoryLock(out)
    stage = out / _STAGE
    try:
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir()
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        lock.release()


def publish(made: Path, out: Path) -> bool:
    """Move an image and its digest out of the stage; True if the same one was there already.

    The digest goes first: an image without one would be refused, the reverse is harmless.

    Raises:
        MergeRefused: if another image of the same transaction is there.
        ImageError: if ``made`` has no digest.
        OSError: if a file cannot be read or renamed.
    """
    target, digest = out / made.name, read_digest(made)
    if target.exists():
        if _md5(target) != digest:
            raise MergeRefused(
                f"{target} exists and is another image of the same transaction. It was not "
                "touched; give another --out, or move it away if you are sure."
            )
        if digest_path(target).exists():
            return True
    # The image's writer may have left its bytes to the system; a name must not outlive them.
    _sync(made)
    rename_durably(digest_path(made), digest_path(target))
    rename_durably(made, target)
    return False


def _md5(path: Path) -> str:
    found = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
