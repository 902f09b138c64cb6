"""Bring a name directory up to what a good one beside it holds."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import structlog

from journal.model import NamespaceInfo
from namenode_sim.durable import rename_durably, sync_folder, write_durably
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest, digest_path
from namenode_sim.storage.version_file import version_text

log = structlog.get_logger()

COMMENT = "written by nnha"


def is_blank(directory: Path) -> bool:
    """Whether nothing would be lost by filling it: no ``current``, or an empty one."""
    current = directory / "current"
    return not current.exists() or (current.is_dir() and not any(current.iterdir()))


def fill(directory: Path, images: Sequence[Path], info: NamespaceInfo, seen_txid: int) -> None:
    """Make a blank directory a copy of the others: newest image, seen_txid, and VERSION last.

    Until VERSION is there the directory is not formatted, whenever the power goes.

    Args:
        directory: the blank directory.
        images: copies of the newest image; the first sound one is taken.
        info: whose directory it is.
        seen_txid: the newest segment that any directory knows of.

    Raises:
        ImageError: if no copy of the image is sound.
        OSError: if the disk refuses.
    """
    current = directory / "current"
    current.mkdir(mode=0o700, exist_ok=True)
    sync_folder(directory)
    copy_image(images, current)
    write_durably(current / "seen_txid", b"%d\n" % seen_txid)
    write_durably(current / "VERSION", version_text(info, comment=COMMENT))
    log.info("storage.filled", path=str(directory), image=images[0].name)


def copy_image(images: Sequence[Path], folder: Path) -> None:
    """Copy an image with its digest and check the copy; of several the first that is sound.

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
