"""Which images and local edits may go after a checkpoint (docs/reference/namenode.md#retention)."""

import re
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

import structlog

from ha.record import dataclass
from hadoop.durable import rename_durably
from journal.model import TxId
from namenode_sim.edits.segment_file import named_range
from namenode_sim.image.files import digest_path, image_name

log = structlog.get_logger()

IMAGE = re.compile(r"fsimage_(\d+)")
_LEFT_OVER = re.compile(r"fsimage\.ckpt_\d+(\.received)?")


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept; Hadoop's keys and defaults."""

    images: int = 2
    extra_edits: int = 1_000_000
    extra_segments: int = 10_000


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """Images to delete by txid, and the first edit that must stay."""

    images: tuple[int, ...]
    edits_from: int


def plan_purge(
    images: Iterable[int], segments: Iterable[tuple[int, int]], retention: Retention
) -> PurgePlan:
    """Decide what to delete.

    Args:
        images: the txids of all images, over all directories.
        segments: first and last txid of each finalized local segment.
        retention: what is to be kept.
    """
    newest = sorted(set(images), reverse=True)
    kept, dropped = newest[: retention.images], newest[retention.images :]
    if not kept:
        return PurgePlan((), 0)
    required = kept[-1] + 1
    purge_from = max(0, required - retention.extra_edits)
    extra = sorted({pair for pair in segments if pair[1] >= purge_from and pair[0] < required})
    while len(extra) > retention.extra_segments:
        # The segment that holds the first required edit is never among what goes.
        purge_from = min(extra.pop(0)[1] + 1, required)
    return PurgePlan(tuple(sorted(dropped)), purge_from)


def purge(directories: Sequence[Path], retention: Retention, spared: Set[str]) -> PurgePlan:
    """Delete what is no longer wanted, oldest first; a file that cannot be deleted stays.

    Left-over ``fsimage.ckpt_N`` go as well, but for the ``spared``: they are never taken for
    images.  Return the plan.
    """
    folders = [directory / "current" for directory in directories]
    files = [path for folder in folders for path in _list_files(folder)]
    images = [int(match[1]) for path in files if (match := IMAGE.fullmatch(path.name))]
    plan = plan_purge(images, _finalized_ranges(files), retention)
    for txid in plan.images:
        for folder in folders:
            image = folder / image_name(TxId(txid))
            # The image goes first: a digest without an image is harmless, the reverse is not.
            _delete(image)
            _delete(digest_path(image))
    for path in files:
        if _LEFT_OVER.fullmatch(path.name):
            if path.name not in spared:
                _delete(path)
        else:
            _purge_segment(path, plan.edits_from)
    return plan


def purge_segments(folder: Path, edits_from: int, spared: Path | None) -> None:
    """Delete a folder's segments that end before an edit, but for one that is being written."""
    for path in _list_files(folder):
        if path != spared:
            _purge_segment(path, edits_from)


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as problem:
        log.warning("storage.not_purged", path=str(folder), problem=str(problem))
        return []


def _finalized_ranges(files: Iterable[Path]) -> list[tuple[int, int]]:
    ranges = [named_range(path.name) for path in files if not path.suffix]
    return [(found.first, found.last) for found in ranges if found and found.last is not None]


def _purge_segment(path: Path, edits_from: int) -> None:
    found = named_range(path.name)
    if found is None or path.suffix:
        return
    if found.last is not None:
        if found.last < edits_from:
            _delete(path)
    elif found.first < edits_from:
        # It was never closed, so its end is unknown: it is set aside, not deleted.
        try:
            rename_durably(path, path.with_name(f"{path.name}.stale"))
        except OSError as problem:
            log.warning("storage.not_purged", path=str(path), problem=str(problem))
            return
        log.warning("storage.stale_segment", path=str(path))


def _delete(path: Path) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as problem:
        log.warning("storage.not_purged", path=str(path), problem=str(problem))
        return
    log.info("storage.purged", path=str(path))
