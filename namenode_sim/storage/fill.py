"""Bring a name directory up to what a good one next to it holds."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from hadoop.durable import rename_durably, sync_folder, write_durably
from journal.model import NamespaceInfo
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest, digest_path
from namenode_sim.storage.version_file import version_text

log = structlog.get_logger()

COMMENT = "written by nnha"
_UNFINISHED: Final = "current.filling"


def is_blank(directory: Path) -> bool:
    """Return whether filling it loses nothing: ``current`` and ``previous`` hold nothing."""
    if (directory / "previous").exists():
        return False
    current = directory / "current"
    return not current.exists() or (current.is_dir() and not any(current.iterdir()))


def fill(directory: Path, images: Sequence[Path], info: NamespaceInfo, seen_txid: int) -> None:
    """Make a directory a copy of the others: newest image, seen_txid, and VERSION last.

    One that is blank stays so until all is there, whenever the power goes or the disk is full: the
    next start fills it again.  Where local edits have made ``current`` anew they stay in it.

    Args:
        directory: one without VERSION.
        images: copies of the newest image; the first sound one is taken.
        info: whose directory it is.
        seen_txid: the newest segment that any directory knows of.

    Raises:
        ImageError: if no copy of the image is sound.
        OSError: if the disk refuses.
    """
    current, unfinished = directory / "current", directory / _UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)  # of a start that did not come to its end
    replaceable = is_blank(directory) and not current.is_symlink() and not current.is_mount()
    folder = unfinished if replaceable else current
    folder.mkdir(mode=0o700, exist_ok=True)
    copy_image(images, folder)
    write_durably(folder / "seen_txid", b"%d\n" % seen_txid)
    write_durably(folder / "VERSION", version_text(info, comment=COMMENT))
    if folder != current:
        folder.rename(current)  # over an empty folder, but over nothing else
    sync_folder(directory)
    log.info("storage.filled", path=str(directory), image=images[0].name)


def copy_image(images: Sequence[Path], folder: Path) -> None:
    """Copy an image with its digest and check the copy; of several take the first sound one.

    Raises:
        ImageError: if none is sound.
        OSError: if the disk refuses.
    """
    source = _first_sound(images)
    beside = folder / source.name.replace("fsimage_", "fsimage.ckpt_", 1)
    try:
        with source.open("rb") as original, beside.open("wb") as copy:
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
        target = folder / source.name
        write_durably(digest_path(target), digest_path(source).read_bytes())
        rename_durably(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    check_digest(target)


def _first_sound(images: Sequence[Path]) -> Path:
    *others, last = images
    for path in others:
        try:
            check_digest(path)
        except (ImageError, OSError) as problem:
            log.warning("storage.image_copy_unusable", path=str(path), problem=str(problem))
        else:
            return path
    check_digest(last)
    return last
