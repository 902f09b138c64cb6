"""Local edit segments, as a NameNode without a quorum journal writes them.

See docs/reference/formats.md#local-edits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog

from ha.record import dataclass
from hadoop.durable import rename_durably, sync_folder
from journal.model import TxId
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Op
from namenode_sim.edits.recovery import scan_segment
from namenode_sim.edits.segment_file import SegmentFile, named_range, open_segment
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.errors import usable
from namenode_sim.storage.local_copies import copies_from

log = structlog.get_logger()

PROGRESS_EDITS: Final = 10_000
NO_EDIT: Final = TxId(0)


@dataclass(frozen=True, slots=True)
class LocalSegment:
    """One segment file.  ``last`` is ``first - 1`` where not one edit of it is whole."""

    first: TxId
    last: TxId
    finalized: bool
    path: Path

    @property
    def empty(self) -> bool:
        return self.last < self.first


@dataclass(frozen=True, slots=True)
class Located:
    """An edit and where its frame lies in its file."""

    txid: TxId
    op: Op
    offset: int
    end: int


def list_segments(directories: Iterable[Path]) -> tuple[LocalSegment, ...]:
    """Return the segments in ``<directory>/current``, by first txid; of several copies the best.

    A finalized copy is better than one in progress, a longer one better than a shorter one.

    Raises:
        EditsError: if a segment in progress has a damaged header, or whole edits behind damage.
    """
    best: dict[TxId, LocalSegment] = {}
    for directory in directories:
        for segment in _in_folder(directory / "current"):
            rival = best.get(segment.first)
            if rival is None or _rank(segment) > _rank(rival):
                best[segment.first] = segment
    return tuple(best[first] for first in sorted(best))


def _rank(segment: LocalSegment) -> tuple[bool, int]:
    return segment.finalized, segment.last


def finalized_in(folder: Path) -> tuple[LocalSegment, ...]:
    """Return a folder's finalized segments by first txid; of two with the same, the longer."""
    best: dict[TxId, LocalSegment] = {}
    for path in sorted(folder.iterdir()):
        promised = named_range(path.name)
        if promised is None or promised.last is None or path.suffix:
            continue
        rival = best.get(promised.first)
        if rival is None or rival.last < promised.last:
            best[promised.first] = LocalSegment(
                promised.first, promised.last, finalized=True, path=path
            )
    return tuple(best[first] for first in sorted(best))


def last_local_edit(directories: Iterable[Path], image: TxId) -> TxId:
    """Return the last edit behind an image that any directory holds as its own; 0 without one.

    Raises:
        EditsError: as ``list_segments``, for segments behind the image only.
        StorageError: if one cannot be read.
    """
    last = NO_EDIT
    for directory in directories:
        with usable(directory):
            ends = [segment.last for segment in _acknowledged_here(directory, image)]
        last = max([last, *(end for end in ends if end > image)])
    return last


def _acknowledged_here(directory: Path, image: TxId) -> Iterator[LocalSegment]:
    """Yield what was written without a quorum; copies of the quorum's edits are left to it."""
    return _in_folder(directory / "current", behind=image, before=copies_from(directory))


def _in_folder(
    folder: Path, *, behind: TxId = NO_EDIT, before: TxId | None = None
) -> Iterator[LocalSegment]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        promised = named_range(path.name)
        if promised is None or path.suffix:
            continue  # .corrupt, .empty and .stale are kept for people to look at
        if (promised.first if promised.last is None else promised.last) <= behind:
            continue
        if before is not None and promised.first >= before:
            continue
        last = _end_of(path, promised.first) if promised.last is None else promised.last
        yield LocalSegment(promised.first, last, promised.last is not None, path)


def _end_of(path: Path, first: TxId) -> TxId:
    """Return the last whole edit of a segment that was never closed.

    Raises:
        EditsError: if its header is damaged, or whole edits follow the damage: then it is no torn
            tail, and to end there would lose them.
    """
    if path.stat().st_size == 0:
        return TxId(first - 1)
    report = scan_segment(path)
    for damage in report.skipped:
        if damage.before is not None:
            raise EditsError(
                f"{damage.what}; yet transaction {damage.before} behind it is whole, so this is "
                "no torn tail. To see what is lost and decide: nnha namenode --recover",
                file=str(path),
                offset=damage.offset,
                txid=None if damage.after is None else damage.after + 1,
            )
        log.warning("local_edits.torn_tail", path=str(path), problem=str(damage))
    return TxId(first - 1) if report.last is None else report.last


def edits_of(segment: LocalSegment) -> Iterator[Located]:
    """Yield the edits of a segment file, in order and without a gap.

    What stands behind the last edit that its name or its scan promises is not looked at.

    Raises:
        EditsError: at the first edit that is damaged, missing or out of order; names the file,
            the offset and the transaction.
    """
    with open_segment(segment.path) as file:
        yield from _locate_ops(file, segment)


def frames_of(segment: LocalSegment) -> Iterator[tuple[TxId, bytes]]:
    """Yield the framed bytes of each edit; raise as ``edits_of``."""
    with open_segment(segment.path) as file:
        for located in _locate_ops(file, segment):
            yield located.txid, file.frame(located.offset)


def _locate_ops(file: SegmentFile, segment: LocalSegment) -> Iterator[Located]:
    start = file.offset
    for txid, op in file.ops():
        yield Located(txid, op, start, file.offset)
        start = file.offset
        if txid == segment.last:
            return
    if not segment.empty:
        raise file.error(f"the edits end here; they should go on to transaction {segment.last}")


def chain(
    segments: Sequence[LocalSegment], first: TxId, *, at_least: TxId = NO_EDIT
) -> tuple[LocalSegment, ...]:
    """Return the segments that hold every edit from ``first`` on (Hadoop's checkForGaps).

    Args:
        segments: by first txid.
        first: the edit after the image.
        at_least: a transaction that must be among them, such as seen_txid.

    Raises:
        EditsError: if edits are missing, or two segments overlap.
    """
    chosen: list[LocalSegment] = []
    expected = first
    for segment in segments:
        if segment.empty or segment.last < expected:
            continue
        if segment.first > expected:
            raise EditsError(
                f"transactions {expected} to {segment.first - 1} are missing: this is the next "
                "segment. Look for them in another directory or backup",
                file=str(segment.path),
                txid=expected,
            )
        if chosen and segment.first != expected:
            raise EditsError(
                f"it overlaps {chosen[-1].path.name}; move the wrong one of the two away",
                file=str(segment.path),
            )
        chosen.append(segment)
        expected = TxId(segment.last + 1)
    if expected <= at_least:
        raise EditsError(
            f"the edits end at transaction {expected - 1}, but seen_txid says that {at_least} was "
            "written. Look for the missing segment in another directory or backup",
            txid=expected,
        )
    return tuple(chosen)


def replay(
    namespace: Namespace,
    segments: Iterable[LocalSegment],
    *,
    progress: Callable[[LocalSegment, Located], None] | None = None,
) -> None:
    """Apply every edit behind the namespace's last one; ``progress`` hears every 10,000th.

    Raises:
        EditsError: at the edit that cannot be read or applied; names file, offset, transaction.
    """
    for segment in segments:
        for located in edits_of(segment):
            if located.txid <= namespace.last_applied:
                continue
            try:
                namespace.apply(located.txid, located.op)
            except ApplyError as problem:
                raise EditsError(
                    f"it cannot be applied: {problem}",
                    file=str(segment.path),
                    offset=located.offset,
                    txid=located.txid,
                ) from problem
            if progress is not None and located.txid % PROGRESS_EDITS == 0:
                progress(segment, located)


def recover_unclosed(directory: Path) -> None:
    """Close the segments that a crash left open, by Hadoop's table.

    Raises:
        EditsError: if one has a damaged header (it is kept as ``.corrupt``), or damage that is
            no torn tail.
        OSError: if the disk refuses.
    """
    current = directory / "current"
    for path in sorted(current.iterdir()) if current.is_dir() else ():
        promised = named_range(path.name)
        if promised is None or promised.last is not None or path.suffix:
            continue
        if path.stat().st_size == 0:
            path.unlink()
            sync_folder(current)
            log.info("local_edits.removed_empty_file", path=str(path))
        else:
            _close(path, promised.first)


def _close(path: Path, first: TxId) -> None:
    try:
        with open_segment(path):
            pass
    except EditsError as problem:
        kept = path.with_name(f"{path.name}.corrupt")
        rename_durably(path, kept)
        raise EditsError(
            f"{problem.what}; the file is kept as {kept.name}", file=str(path), offset=0
        ) from problem
    last = _end_of(path, first)
    if last < first:
        closed = path.with_name(f"{path.name}.empty")
    else:
        closed = path.with_name(f"edits_{first:019d}-{last:019d}")
    rename_durably(path, closed)
    log.info("local_edits.closed", path=str(path), into=closed.name)


def uninitialized(reached: TxId, must_reach: TxId) -> str:
    """Return why a NameNode whose local edits no journal has does not become active."""
    return (
        f"the name directory holds edits up to {must_reach} that were written without a quorum "
        f"journal, and the journal gives none behind {reached}; run: nnha namenode "
        "--initialize-shared-edits"
    )
