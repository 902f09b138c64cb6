"""Read a segment file: how far it is sound, and the digest of its edits."""

import hashlib
from pathlib import Path
from typing import Final

from ha.record import dataclass
from journal.core import effects
from journal.errors import StorageFailed
from journal.frame import HEADER_BYTES, MAX_OP_BYTES, file_header, read_header, scan
from journal.model import Segment, TxId
from journal.storage.files import Files, OpenFile

_HASH_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Contents:
    """What a segment file holds from its header to the first byte that is not a sound edit.

    ``last`` is None when there is no edit.  ``end`` is the offset behind the last one.
    ``layout_version`` is what the header says, 0 where it cannot be read.
    """

    last: TxId | None
    end: int
    digest: bytes
    damage: str | None
    layout_version: int = 0


def inspect(files: Files, path: Path, first: TxId, *, last_wanted: TxId | None = None) -> Contents:
    """Scan a file of which the name says that it begins at ``first``.

    Args:
        last_wanted: a finalized file's last txid; what follows it means nothing.
    """
    with files.view(path) as data:
        try:
            layout_version = read_header(data)
        except ValueError as failure:
            unwritten = not data[:HEADER_BYTES].strip(b"\xff") or len(data) < HEADER_BYTES
            return Contents(None, 0, b"", None if unwritten else str(failure))
        found = scan(data, start=HEADER_BYTES, expected=first, last_wanted=last_wanted)
        digest = _digest(data, found.end).digest()
        return Contents(found.last, found.end, digest, found.damage, layout_version)


def read_layout(files: Files, path: Path) -> int | str:
    """Return the layout version in a file's header, or why there is none."""
    with files.view(path) as data:
        try:
            return read_header(data[:HEADER_BYTES])
        except ValueError as failure:
            return str(failure)


def damage_refusal(segment: Segment, found: Contents) -> str | None:
    """Return how a file differs from the segment that should lie in it, or None."""
    if found.last != segment.last:
        return f"at byte {found.end}: {found.damage or 'it ends there'}"
    if segment.digest and found.digest != segment.digest:
        return f"its edits have digest {found.digest.hex()[:16]}, not {segment.digest.hex()[:16]}"
    if segment.layout_version not in (0, found.layout_version):
        return f"its header says layout {found.layout_version}, not {segment.layout_version}"
    return None


def read_whole(files: Files, path: Path, segment: Segment) -> Contents:
    """Read what the file of a segment holds.

    Raises:
        StorageFailed: it cannot be read, or not all of the segment is in it.
    """
    try:
        found = inspect(files, path, segment.first, last_wanted=segment.last)
    except OSError as failure:
        raise StorageFailed(f"cannot read {path}: {failure}") from failure
    damage = damage_refusal(segment, found)
    if damage is not None:
        raise StorageFailed(
            f"{path} is damaged: {damage}; it should hold {segment.first}-{segment.last}. The "
            "other nodes have this segment: copy it from one of them, and restart this node."
        )
    return found


def sound_part(files: Files, path: Path, segment: Segment) -> int | None:
    """Return where a finalized file's damage begins; None if no edit is known to be sound.

    Where every checksum is right and the digest is not, any edit may be the wrong one.
    """
    if not segment.finalized:
        return None
    found = inspect(files, path, segment.first, last_wanted=segment.last)
    return found.end if found.last is not None and found.last < segment.last else None


def digest_up_to(files: Files, path: Path, end: int) -> "hashlib._Hash":
    """Return the running digest of the edits that end at an offset which a scan has found sound."""
    with files.view(path) as data:
        return _digest(data, end)


def _digest(data: bytes, end: int) -> "hashlib._Hash":
    digest = hashlib.sha256()
    for start in range(HEADER_BYTES, end, _HASH_CHUNK_BYTES):
        digest.update(data[start : min(start + _HASH_CHUNK_BYTES, end)])
    return digest


class SegmentReading:
    """Checks a segment while it streams in: header, checksums, txids and end.

    Feed it chunks and store what it returns; what follows the last wanted edit is dropped.
    It raises ValueError at the first byte that cannot belong to such a segment.  A layout version
    of 0 accepts any header.
    """

    def __init__(self, first: TxId, last: TxId, layout_version: int = 0) -> None:
        self._expected = first
        self._last = last
        self._layout_version = layout_version
        self._hash = hashlib.sha256()
        self._rest = bytearray()
        self._header_seen = False
        self.complete = False
        """Whether the last wanted edit has been seen; nothing more needs to be fed."""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; returns those that are now known to be sound."""
        if self.complete:
            return b""
        self._rest += chunk
        sound = b""
        if not self._header_seen:
            if len(self._rest) < HEADER_BYTES:
                return b""
            found_layout = read_header(bytes(self._rest[:HEADER_BYTES]))
            if self._layout_version not in (0, found_layout):
                raise ValueError(
                    f"the header says layout {found_layout}, decided was {self._layout_version}"
                )
            sound = file_header(found_layout)
            del self._rest[:HEADER_BYTES]
            self._header_seen = True
        data = bytes(self._rest)
        found = scan(data, expected=self._expected, last_wanted=self._last)
        if found.last is not None:
            self._hash.update(data[: found.end])
            self._expected = TxId(found.last + 1)
            self.complete = found.last == self._last
            del self._rest[: found.end]
        if len(self._rest) > MAX_OP_BYTES:
            raise ValueError(found.damage or "padding stands before the last edit")
        return sound + data[: found.end]

    def finish(self) -> bytes:
        """Return the digest of the edits; ValueError unless the last wanted one has been seen."""
        if not self.complete:
            raise ValueError(
                f"the segment ends at {self._expected - 1}, before the decided end {self._last} "
                f"({len(self._rest)} bytes are left over)"
            )
        return self._hash.digest()


class SegmentCheck:
    """A ``SegmentReading`` of a segment whose digest is known beforehand."""

    def __init__(self, wanted: Segment) -> None:
        self._reading = SegmentReading(wanted.first, wanted.last, wanted.layout_version)
        self._first = wanted.first
        self._last = wanted.last
        self._wanted = wanted.digest

    @property
    def complete(self) -> bool:
        """Whether the last wanted edit has been seen; nothing more needs to be fed."""
        return self._reading.complete

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; returns those that are now known to be sound."""
        return self._reading.feed(chunk)

    def finish(self) -> None:
        """Raise ValueError unless exactly the wanted edits have been seen."""
        found = self._reading.finish()
        if found != self._wanted:
            raise ValueError(
                f"the edits {self._first}-{self._last} are not those that were decided on "
                f"(digest {found.hex()[:16]}, wanted {self._wanted.hex()[:16]})"
            )


LEAVE_SEGMENTS_ALONE: Final = (
    effects.AbandonSegment,
    effects.DropDownload,
    effects.ForgetDecision,
    effects.PersistAdmission,
    effects.PersistDecision,
    effects.PersistPromise,
    effects.PersistWriter,
    effects.RecordSegment,
    effects.RememberCommitted,
)
"""Effects after which every closed segment's file is what it was."""


@dataclass(slots=True)
class Writing:
    """The open segment: its file, the digest of its edits, and how far it is durable."""

    first: TxId
    file: OpenFile
    end: int
    hash: "hashlib._Hash"
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a segment's bytes lie: the file, from its beginning to ``end``."""

    path: Path
    end: int
