"""Which frames of which segment files each task reads, and reading them."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.edits.codec import LENGTH_LAYOUT
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.recovery import scan_segment
from namenode_sim.edits.segment_file import SegmentFile, named_range, open_segment
from namenode_sim.storage.local_edits import LocalSegment, Located, chain, finalized_in

_HEAD = Struct(">Biq")
"""Opcode, length, transaction: how every frame begins."""
_AROUND: Final = 5
"""Opcode and checksum, which the length leaves out."""


@dataclass(frozen=True, slots=True)
class EditsPart:
    """Edits that follow each other in one file.

    Attributes:
        path: the segment file.
        first: the first transaction; None where it is unknown.
        last: the last one; None to read up to the end of the file.
        offset: where the first frame begins; 0 for the first one of the file.
    """

    path: str
    first: TxId | None
    last: TxId | None
    offset: int


def parts_of(path: Path, *, in_progress: bool, size: int) -> list[EditsPart]:
    """Return the edits of a directory (or of its ``current``), or of one file, in order.

    Args:
        path: where they are.
        in_progress: whether a segment that is not finalized counts, as far as it is sound.
        size: about how many bytes a part is to have.

    Raises:
        EditsError: if edits are missing in between, or a segment in progress is damaged.
        OSError: if something cannot be read.
    """
    if path.is_dir():
        return [part for segment in _segments(path, in_progress) for part in _cut(segment, size)]
    promised = named_range(path.name)
    if promised is None:
        with open_segment(path):
            return [EditsPart(str(path), None, None, 0)]
    if promised.last is not None:
        return _cut(LocalSegment(promised.first, promised.last, finalized=True, path=path), size)
    if not in_progress:
        raise EditsError(
            "the segment is in progress; read it with the option inProgress = true", file=str(path)
        )
    return _cut(_sound_part(path, promised.first), size)


def _segments(folder: Path, in_progress: bool) -> tuple[LocalSegment, ...]:  # noqa: FBT001
    if not any(named_range(one.name) for one in folder.iterdir()) and (folder / "current").is_dir():
        folder = folder / "current"
    found = list(finalized_in(folder))
    if in_progress:
        for path in sorted(folder.iterdir()):
            promised = named_range(path.name)
            if promised is not None and promised.last is None and not path.suffix:
                found.append(_sound_part(path, promised.first))
    if not found:
        raise EditsError(f"{folder} holds no segments of edits")
    return chain(found, found[0].first)


def _sound_part(path: Path, first: TxId) -> LocalSegment:
    """Return a segment in progress up to its torn tail."""
    if not path.stat().st_size:
        return LocalSegment(first, TxId(first - 1), finalized=False, path=path)
    report = scan_segment(path)
    for damage in report.skipped:
        if damage.before is not None:
            raise EditsError(
                f"{damage.what}; yet transaction {damage.before} behind it is whole, so this is no "
                "torn tail",
                file=str(path), offset=damage.offset,
                txid=None if damage.after is None else TxId(damage.after + 1),
            )  # fmt: skip
    last = TxId(first - 1) if report.last is None else report.last
    return LocalSegment(first, last, finalized=False, path=path)


def _cut(segment: LocalSegment, size: int) -> list[EditsPart]:
    """Cut by the lengths of the frames, which are checked when a part is read."""
    if segment.empty:
        return []
    path, first = str(segment.path), segment.first
    whole = [EditsPart(path, first, segment.last, 0)]
    with open_segment(segment.path) as opened:
        begin, layout = opened.offset, opened.layout
    if layout > LENGTH_LAYOUT or segment.path.stat().st_size <= size * 3 // 2:
        return whole
    begins = [(first, 0)]
    with segment.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
        at, end, due = begin, len(m) - _HEAD.size, begin + size
        while at <= end:
            opcode, length, txid = _HEAD.unpack_from(m, at)
            if opcode == 0xFF or length <= 0 or txid > segment.last:
                break
            if at >= due:
                begins.append((TxId(txid), at))
                due = at + size
            at += length + _AROUND
    lasts = [TxId(following - 1) for following, _ in begins[1:]] + [segment.last]
    return [
        EditsPart(path, start, last, offset)
        for (start, offset), last in zip(begins, lasts, strict=True)
    ]


def read_part(part: EditsPart) -> Iterator[Located]:
    """Yield the edits of a part, each with its checksum proved and its number as it is due.

    Raises:
        EditsError: at the first one that is damaged, missing or out of order; names the file, the
            offset and the transaction.
        OSError: if the file cannot be read.
    """
    with open_segment(Path(part.path)) as segment:
        if part.offset:
            segment.offset, segment.expected = part.offset, part.first
        yield from _up_to(segment, part.last)


def _up_to(segment: SegmentFile, last: TxId | None) -> Iterator[Located]:
    start = segment.offset
    for txid, op in segment.ops():
        yield Located(txid, op, start, segment.offset)
        start = segment.offset
        if txid == last:
            return
    if last is not None:
        raise segment.error(f"the edits end here; they should go on to transaction {last}")
