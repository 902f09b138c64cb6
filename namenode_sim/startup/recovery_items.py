"""All that can be read of damaged edits, in order: edits, and the troubles between them."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from struct import Struct
from typing import Final

from ha.record import dataclass, replace
from journal.errors import GapFound, InvariantBroken, JournalError
from journal.model import TxId
from journal.reader.frame_stream import Chunk
from journal.reader.reader import JournalReader
from namenode_sim.edits.codec import decode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Op
from namenode_sim.edits.recovery import SegmentReport, Skipped, salvage, scan_segment
from namenode_sim.edits.segment_file import NamedRange, named_range
from namenode_sim.storage.local_copies import copies_from

_LENGTH = Struct(">i")
_OVERHEAD: Final = 5


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit that can be read."""

    where: str
    txid: TxId
    op: Op


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that cannot be read.  ``last`` is the last edit it may have cost, if known."""

    where: str
    what: str
    last: TxId | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


Item = Edit | Trouble


@dataclass(frozen=True, slots=True)
class Copy:
    """The best copy of one local segment; no report where not even its header is sound.

    ``promised`` ends where the segment was closed, by the name of any copy.  Where it was never
    closed that is the last edit that any copy has, and None if none has one.
    """

    path: Path
    promised: NamedRange
    report: SegmentReport | None
    problem: str

    @property
    def damaged(self) -> bool:
        """Whether it lacks a promised edit, or one before an edit that it has."""
        if self.report is None:
            return True
        end = self.promised.last
        if end is not None and (self.report.last or 0) < end:
            return True
        return any(hole.before is not None for hole in self.report.skipped)

    @property
    def last(self) -> TxId:
        """The last edit that was promised, or that it has."""
        return self.promised.last or TxId(self.promised.first - 1)


def best_copies(directories: Iterable[Path], image: TxId) -> list[Copy]:
    """Return the best copy of each local segment behind an image: whole, then long ones first.

    That alone mends what only one directory has lost.
    """
    found: dict[TxId, list[tuple[Path, TxId | None]]] = {}
    for directory in directories:
        for path, promised in _own_segments(directory):
            found.setdefault(promised.first, []).append((path, promised.last))
    best = []
    for first, named in sorted(found.items()):
        closed = max((last for _, last in named if last is not None), default=None)
        if closed is not None and closed <= image:
            continue
        copies = [_examine(path, NamedRange(first, closed)) for path, _ in named]
        if closed is None:
            read = (copy.report.last for copy in copies if copy.report is not None)
            known = max((last for last in read if last is not None), default=None)
            copies = [replace(copy, promised=NamedRange(first, known)) for copy in copies]
        copy = max(copies, key=_rank)
        # What was in a file of which nothing can be read is not known.
        if copy.last > image or copy.report is None:
            best.append(copy)
    return best


def _own_segments(directory: Path) -> Iterator[tuple[Path, NamedRange]]:
    folder, copied = directory / "current", copies_from(directory)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        promised = named_range(path.name)
        if promised is None or path.suffix:
            continue
        if promised.last is None and path.stat().st_size == 0:
            continue  # it was only just made
        if copied is not None and promised.first >= copied:
            continue  # the quorum has it, and knows where it truly ends
        yield path, promised


def _examine(path: Path, promised: NamedRange) -> Copy:
    try:
        return Copy(path, promised, scan_segment(path), "")
    except EditsError as problem:
        return Copy(path, promised, None, problem.what)


def _rank(copy: Copy) -> tuple[bool, int, bool]:
    count = 0 if copy.report is None else copy.report.count
    if copy.promised.last is not None:
        count = min(count, copy.promised.last - copy.promised.first + 1)
    return not copy.damaged, count, "inprogress" not in copy.path.name


def local_items(copies: Iterable[Copy]) -> Iterator[Item]:
    for copy in copies:
        if copy.report is None:
            what = f"nothing of it can be read: {copy.problem}"
            yield Trouble(str(copy.path), what, copy.promised.last)
            continue
        yield from _segment_items(copy)


def _segment_items(copy: Copy) -> Iterator[Item]:
    where, end = str(copy.path), copy.promised.last
    told = last = TxId(copy.promised.first - 1)
    for found in salvage(copy.path):
        if not isinstance(found, Skipped):
            if end is not None and found[0] > end:
                return  # what stands behind the last promised edit means nothing
            last = told = found[0]
            yield Edit(where, *found)
        elif found.before is not None:
            told = TxId(found.before - 1)
            yield Trouble(where, str(found), told)
        elif end is not None and told < end:
            told = end
            yield Trouble(where, str(found), end)
        # else it is the torn tail of a segment that was open when the power went: none of its edits
        # was acknowledged
    if end is not None and told < end:
        yield Trouble(where, f"it ends at {last}, and edits up to {end} were written", end)


async def shared_items(reader: JournalReader, first: TxId) -> AsyncGenerator[Item]:
    """Yield what the quorum journal holds from ``first`` on.

    Raises:
        JournalError: if the journal as a whole cannot be read, so that nothing can be decided.
    """
    end = await reader.last_known()
    expected, up_to = first, None
    while expected <= end:
        try:
            async with aclosing(reader.edits(expected, up_to=up_to)) as chunks:
                async for chunk in chunks:
                    for item in _chunk_items(chunk):
                        yield item
                    expected = TxId(chunk.last + 1)
            if up_to is None and expected <= end:
                raise _unlisted_gap(expected, end)
            up_to = None
        except InvariantBroken:
            raise
        except JournalError as failure:
            if isinstance(failure, GapFound) and failure.missing_first > expected:
                up_to = TxId(failure.missing_first - 1)  # first what stands before the gap
                continue
            lost = await _lost_up_to(reader, failure, expected, end)
            async with aclosing(_remains(reader, expected, lost, failure)) as items:
                async for item in items:
                    yield item
            expected = TxId(lost + 1)


def _unlisted_gap(first: TxId, last: TxId) -> GapFound:
    return GapFound(
        f"no answering node lists transactions {first}-{last}, though they were there",
        missing_first=first,
        missing_last=last,
    )


async def _lost_up_to(
    reader: JournalReader, failure: JournalError, expected: TxId, end: TxId
) -> TxId:
    if isinstance(failure, GapFound):
        return failure.missing_last
    after = await reader.next_segment(expected)
    return end if after is None else TxId(after - 1)


async def _remains(
    reader: JournalReader, first: TxId, last: TxId, why: JournalError
) -> AsyncGenerator[Item]:
    """Yield the parts that are left of what no node holds whole."""
    async with aclosing(reader.remains(first, last)) as chunks:
        async for chunk in chunks:
            for item in _chunk_items(chunk):
                yield item
            first = TxId(chunk.last + 1)
    if first <= last:
        yield Trouble("the journal", f"edits {first} to {last} cannot be read: {why}", last)


def _chunk_items(chunk: Chunk) -> Iterator[Item]:
    """Yield edits out of frames of right checksums; their content may still make no sense."""
    offset, expected = 0, chunk.first
    while offset < len(chunk.records):
        where = f"the journal, transaction {expected}"
        try:
            txid, op, _ = decode(chunk.records, offset, chunk.layout_version)
        except EditsError as problem:
            yield Trouble(where, problem.what, expected)
        else:
            yield Edit(where, txid, op)
        offset += int(_LENGTH.unpack_from(chunk.records, offset + 1)[0]) + _OVERHEAD
        expected = TxId(expected + 1)
