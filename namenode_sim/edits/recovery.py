"""What a damaged segment still holds; only for recovery, which asks before it believes it.

No other code looks behind damage: an op found behind a hole is sound, but what it builds on may be
what is missing.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final

from ha.record import dataclass
from journal.frame import MAX_OP_BYTES, TERMINATOR
from journal.model import TxId
from namenode_sim.edits import segment_file
from namenode_sim.edits.codec import LENGTH_LAYOUT, decode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import OP_CLASSES, Op

_FRAME = Struct(">Biq")
_OLD_FRAME = Struct(">Bq")
_TXID = Struct(">q")
_OVERHEAD: Final = 5  # opcode and checksum, which a frame's length leaves out
_OLD_SEARCH_BYTES: Final = 1 << 15
"""Without a length there is no telling how much may belong to a frame; larger ones are not found
behind damage before layout -56."""
_HIGHEST: Final = 0x7FFFFFFFFFFFFFFF
_SEARCH_BYTES: Final = 1 << 20
_LAST_OPCODE: Final = max(op.opcode for op in OP_CLASSES)
_CHECK_FACTOR: Final = 8
"""How many times the file's size may be spent on checksums of what only looks like a frame: a
file made for it could otherwise keep us busy for years."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Bytes that are no sound ops, and what they cost.

    ``after`` and ``before`` are the sound transactions around them; None at an end of the file or
    where they are unknown.
    """

    offset: int
    length: int
    what: str
    after: TxId | None
    before: TxId | None

    def __str__(self) -> str:
        return f"offset {self.offset}: {self.length} bytes skipped, {self._loss()}: {self.what}"

    def _loss(self) -> str:
        if self.before is None:
            return "all edits behind it lost" if self.after is None else (
                f"everything behind transaction {self.after} lost")  # fmt: skip
        if self.after is None:
            return "an unknown number of transactions lost"
        first, last = self.after + 1, self.before - 1
        if first > last:
            return "no transaction lost"
        return (
            f"transaction {first} lost" if first == last else f"transactions {first} to {last} lost"
        )


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """What a segment file holds.

    Attributes:
        last: the last sound transaction, which may stand behind damage; None when there is none.
        count: sound ops.
        skipped: the damage.
    """

    last: TxId | None
    count: int
    skipped: tuple[Skipped, ...]


def salvage(path: Path) -> Iterator[tuple[TxId, Op] | Skipped]:
    """Yield every sound op of a segment file in order, and a ``Skipped`` for all in between.

    Raises:
        EditsError: if the header is not sound or its layout unknown: then no op can be read.
        OSError: if the file cannot be read.
    """
    with segment_file.open_segment(path) as segment:
        yield from salvage_ops(segment)


def salvage_ops(
    segment: segment_file.SegmentFile, *, numbered: bool = True
) -> Iterator[tuple[TxId, Op] | Skipped]:
    """Yield as ``salvage`` does, from the place of an open segment file.

    Args:
        segment: the file.
        numbered: transactions that are not the one that is due are damage too.
    """
    search = _Search(segment, numbered=numbered)
    while True:
        try:
            yield from segment.ops(numbered=numbered)
        except EditsError as problem:
            expected, start = segment.expected, segment.offset
            before = search.forward()
            after = None if expected is None else TxId(expected - 1)
            yield Skipped(start, segment.offset - start, problem.what, after, before)
            segment.expected = before
            if before is None:
                return
        else:
            return


def scan_segment(path: Path) -> SegmentReport:
    """Read a whole segment file and report what it holds.

    Raises:
        EditsError: if the header is not sound or its layout unknown.
        OSError: if the file cannot be read.
    """
    last: TxId | None = None
    count = 0
    skipped: list[Skipped] = []
    with segment_file.open_segment(path) as segment:
        for found in salvage_ops(segment):
            if isinstance(found, Skipped):
                skipped.append(found)
            else:
                last = found[0]
                count += 1
        short = _short_of_name(path, segment, last)
    if short is not None and not skipped:
        skipped.append(short)
    return SegmentReport(last, count, tuple(skipped))


def _short_of_name(
    path: Path, segment: segment_file.SegmentFile, last: TxId | None
) -> Skipped | None:
    """Return what a finalized file lacks that ends, undamaged, before the txid in its name."""
    promised = segment_file.named_range(path.name)
    if promised is None or promised.last is None or (last is not None and last >= promised.last):
        return None
    what = f"the edits end here; the file's name promises them up to {promised.last}"
    after = TxId(promised.first - 1) if last is None else last
    return Skipped(segment.offset, 0, what, after, TxId(promised.last + 1))


class _Search:
    """Looks for the next sound op behind damage, with a limit on the work."""

    def __init__(self, segment: segment_file.SegmentFile, *, numbered: bool) -> None:
        self._segment = segment
        self._numbered = numbered
        self._window = segment.window
        self._budget = _CHECK_FACTOR * segment.size + MAX_OP_BYTES
        self._padding_at: int | None = None
        self._framed = segment.layout <= LENGTH_LAYOUT
        self._head = _FRAME if self._framed else _OLD_FRAME
        self._smallest = (
            segment_file.MIN_FRAME_BYTES if self._framed else segment_file.MIN_OLD_FRAME_BYTES
        )

    def forward(self) -> TxId | None:
        """Move the segment's place to the next sound op, or to the padding or the end.

        Returns:
            The op's transaction; None when there is no op any more.
        """
        segment = self._segment
        lowest, highest = 0, _HIGHEST
        if self._numbered and segment.expected is not None:
            lowest = segment.expected
            # Transactions are numbered without gaps, and each takes some bytes.
            highest = min(highest, lowest + (segment.size - segment.offset) // self._smallest)
        # A sound op may stand at the place itself, only with transactions missing before it.
        here = self._sound_at(segment.offset, lowest, _HIGHEST)
        if here is not None:
            return here
        for offset in self._candidates(lowest, highest):
            txid = self._sound_at(offset, lowest, highest)
            if txid is not None:
                segment.offset = offset
                return txid
        segment.offset = self._padding_start()
        return None

    def _candidates(self, lowest: int, highest: int) -> Iterator[int]:
        """Yield offsets behind the place where the first bytes look like those of a frame."""
        if lowest > highest:
            return
        pattern = _looks_like_a_frame(lowest, highest, framed=self._framed)
        stop = self._padding_start()
        for start in range(self._segment.offset + 1, stop, _SEARCH_BYTES):
            # The head of one that begins in these bytes may end behind them.
            count = min(_SEARCH_BYTES, stop - start) + segment_file.MIN_FRAME_BYTES
            at = self._window.hold(start, count)
            data, base = self._window.data, self._window.base
            for found in pattern.finditer(data, at, at + count):
                yield base + found.start()

    def _sound_at(self, offset: int, lowest: int, highest: int) -> TxId | None:
        """Return the transaction of the sound op at ``offset`` if it may stand there."""
        window, head = self._window, self._head
        at = window.hold(offset, self._smallest)
        if len(window.data) - at < self._smallest:
            return None
        fields = head.unpack_from(window.data, at)
        size = fields[1] + _OVERHEAD if self._framed else _OLD_SEARCH_BYTES
        if (
            not lowest <= fields[-1] <= highest
            or not segment_file.MIN_FRAME_BYTES <= size <= self._budget
        ):
            return None
        if self._framed and size > min(MAX_OP_BYTES, window.size - offset):
            return None
        self._budget -= size
        at = window.hold(offset, size)
        with suppress(EditsError):
            return decode(window.data, at, self._segment.layout)[0]
        return None

    def _padding_start(self) -> int:
        """Return where, from the place on, a terminator begins padding up to the file's end."""
        place = self._segment.offset
        if self._padding_at is None or self._padding_at < place:
            window = self._window
            start = window.last_not_in(segment_file.PADDING, place)
            while start < window.size:
                at = window.hold(start)
                found = window.data.find(TERMINATOR, at)
                if found >= 0:
                    start = window.base + found
                    break
                start = window.end
            self._padding_at = start
        return self._padding_at


def _looks_like_a_frame(lowest: int, highest: int, *, framed: bool) -> re.Pattern[bytes]:
    """Match an opcode, a possible length and the bytes that all possible txids begin with."""
    low, high = _TXID.pack(lowest), _TXID.pack(highest)
    same = 0
    while same < len(low) and low[same] == high[same]:
        same += 1
    opcode = b"[\\x00-\\x%02x]" % _LAST_OPCODE
    length = b"[\\x00-\\x03].{3}" if framed else b""
    return re.compile(b"(?=" + opcode + length + re.escape(low[:same]) + b")", re.DOTALL)
