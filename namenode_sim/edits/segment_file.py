"""A segment file, read offline: its header, its ops one after the other, and what ends it.

Every error names the file, the offset of the frame and the transaction that was due there.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

from ha.record import dataclass
from journal.frame import MAX_OP_BYTES, TERMINATOR
from journal.model import TxId
from namenode_sim.edits.codec import LENGTH_LAYOUT, decode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.file_header import MAX_HEADER_BYTES, Header, parse_header
from namenode_sim.edits.ops import Op
from namenode_sim.edits.window import FileWindow

PADDING: Final = b"\xff\x00"
MIN_FRAME_BYTES: Final = 17
MIN_OLD_FRAME_BYTES: Final = 13
"""Before layout -56 a frame has no length."""

_OVERHEAD: Final = 5  # opcode and checksum, which a frame's length leaves out
_OLD_CHUNK_BYTES: Final = 1 << 14
_LENGTH = Struct(">i")
_NAME = re.compile(r"edits_(?:inprogress_(\d+)|(\d+)-(\d+))(?:\.\w+)?")


@dataclass(frozen=True, slots=True)
class NamedRange:
    """The transactions that a file's name promises; ``last`` is None while it is in progress."""

    first: TxId
    last: TxId | None


def named_range(name: str) -> NamedRange | None:
    """Return the range in a segment's file name; None for any other name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    if found[1]:
        return NamedRange(TxId(int(found[1])), None)
    return NamedRange(TxId(int(found[2])), TxId(int(found[3])))


class SegmentFile:
    """An open segment file, with a place in it.

    Attributes:
        name: the path as it was given; in every error.
        header: layout and size of the header.
        offset: where the next frame begins; stays at the bad frame when one is refused.
        expected: the transaction that is due next; None when it is unknown.
    """

    def __init__(self, file: BinaryIO, name: str, *, first: TxId | None = None) -> None:
        """Read the header.

        Args:
            file: a file that can seek.
            name: what errors call it.
            first: the transaction that it must begin with; None accepts any.

        Raises:
            EditsError: if the header is not sound or its layout unknown.
        """
        self.name = name
        self._window = FileWindow(file)
        at = self._window.hold(0, MAX_HEADER_BYTES)
        try:
            self.header: Header = parse_header(self._window.data[at : at + MAX_HEADER_BYTES])
        except EditsError as problem:
            raise EditsError(problem.what, file=name, offset=problem.offset, txid=first) from None
        if self.header.layout > LENGTH_LAYOUT:
            # Only its fields show where such a frame ends, so the codec copies all it is given.
            self._window = FileWindow(file, _OLD_CHUNK_BYTES)
        self.offset = self.header.size
        self.expected = first

    @property
    def layout(self) -> int:
        return self.header.layout

    @property
    def size(self) -> int:
        """The file's length in bytes when it was opened."""
        return self._window.size

    @property
    def window(self) -> FileWindow:
        """The bytes around the place, for those who look into a frame."""
        return self._window

    def next(self) -> tuple[TxId, Op] | None:
        """Return the next op; None at the end of the file or at padding that reaches it.

        Raises:
            EditsError: if anything else stands there.
        """
        window, offset = self._window, self.offset
        at = window.hold(offset)
        if at >= len(window.data):
            return None  # Perhaps because its NameNode has cut the padding off in the meantime.
        if window.data[at] == TERMINATOR:
            self._check_padding()
            return None
        try:
            txid, op, end = decode(window.data, at, self.header.layout)
        except EditsError as problem:
            txid, op, end = self._decode_with_more(problem)
            at = offset - window.base
        self.offset = offset + end - at
        self.expected = TxId(txid + 1)
        return txid, op

    def ops(self, *, numbered: bool = True) -> Iterator[tuple[TxId, Op]]:
        """Yield the ops from the place to the end.

        Args:
            numbered: refuse an op whose transaction is not the one that is due.

        Raises:
            EditsError: at the first byte that is neither sound op, padding nor end.
        """
        while True:
            due, place = self.expected, self.offset
            found = self.next()
            if found is None:
                return
            if numbered and due is not None and found[0] != due:
                self.offset, self.expected = place, due
                raise self.error(f"transaction {found[0]} stands where {due} belongs")
            yield found

    def frame(self, start: int) -> bytes:
        """Return the bytes from ``start`` to the place; for the op that was just read."""
        at = self._window.hold(start, self.offset - start)
        return self._window.data[at : at + self.offset - start]

    def error(self, what: str, *, frame_txid: int | None = None) -> EditsError:
        """Return an error at the place, which names the transaction that is due there."""
        if frame_txid is not None and self.expected is not None and frame_txid != self.expected:
            what = f"{what} (the frame says transaction {frame_txid})"
        txid = self.expected if self.expected is not None else frame_txid
        return EditsError(what, file=self.name, offset=self.offset, txid=txid)

    def _decode_with_more(self, problem: EditsError) -> tuple[TxId, Op, int]:
        """Read more of a frame that may only have been cut by the window's end, and try again."""
        window, offset = self._window, self.offset
        while window.end < window.size:
            seen = window.end  # what it was decoded from; looking at its length may move the window
            at = window.hold(offset, _OVERHEAD)
            needed = self._bytes_needed(window.data, at)
            if needed <= seen - offset:
                break
            if needed > window.size - offset:
                left = window.size - offset
                raise self.error(f"a frame claims {needed - _OVERHEAD} bytes; {left} are left")
            at = window.hold(offset, needed)
            try:
                return decode(window.data, at, self.header.layout)
            except EditsError as next_problem:
                problem = next_problem
        raise self.error(problem.what, frame_txid=problem.txid) from None

    def _bytes_needed(self, data: bytes, at: int) -> int:
        """Return how many bytes from the place on hold the frame, as far as that is known."""
        held = len(data) - at
        if self.header.layout > LENGTH_LAYOUT:
            return min(4 * held, MAX_OP_BYTES, self._window.size - self.offset)
        if held < _OVERHEAD:
            return held
        length: int = _LENGTH.unpack_from(data, at + 1)[0]
        return length + _OVERHEAD if 0 < length <= MAX_OP_BYTES - _OVERHEAD else held

    def _check_padding(self) -> None:
        """Check that only 0xFF and 0x00 follow a terminator (docs/reference/formats.md#padding)."""
        window, start = self._window, self.offset
        while start < window.size:
            at = window.hold(start, 1)
            if window.data[at:].strip(PADDING):
                raise self.error("neither a frame nor padding follows the terminator")
            start = window.end


@contextmanager
def open_segment(path: Path) -> Iterator[SegmentFile]:
    """Open a segment file; its name says where it begins.

    Raises:
        EditsError: if the header is not sound or its layout unknown.
        OSError: if the file cannot be read.
    """
    promised = named_range(path.name)
    with path.open("rb", buffering=0) as file:
        yield SegmentFile(file, str(path), first=promised.first if promised else None)


def read_segment(path: Path) -> Iterator[tuple[TxId, Op]]:
    """Yield the ops of a segment file, all of them sound and numbered as its name promises.

    What stands behind the last promised op means nothing.

    Raises:
        EditsError: at the first op that is not sound or not the one that is due, or when a
            finalized file ends before the op that its name ends with.
        OSError: if the file cannot be read.
    """
    promised = named_range(path.name)
    last = promised.last if promised else None
    with open_segment(path) as segment:
        for txid, op in segment.ops():
            yield txid, op
            if txid == last:
                return
        if last is not None:
            raise segment.error(f"the edits end here; the file's name promises them up to {last}")
