"""The edits of a merge: read for the plan, and again for the replay."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from journal.model import TxId
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Op
from namenode_sim.edits.segment_file import open_segment
from namenode_sim.storage.local_edits import LocalSegment, chain, edits_of, finalized_in


class Edits:
    """The finalized segments behind an image, as edits.

    They are decoded each time they are asked for: that takes 5 µs for each, and to keep them
    takes 500 bytes.
    """

    def __init__(self, folder: Path, after: TxId) -> None:
        """Find them.

        Raises:
            EditsError: if edits are missing, or two segments overlap.
            OSError: if the folder cannot be read.
        """
        current = folder / "current"
        self.segments: Sequence[LocalSegment] = chain(
            finalized_in(current if current.is_dir() else folder), TxId(after + 1)
        )
        self.after = after
        self.total_bytes = sum(segment.path.stat().st_size for segment in self.segments)

    @property
    def count(self) -> int:
        """How many edits the segments promise."""
        return max(0, self.segments[-1].last - self.after) if self.segments else 0

    def layouts(self) -> set[int]:
        """Return the layout versions of the segments.

        Raises:
            EditsError: if one has a damaged header.
        """
        found = set()
        for segment in self.segments:
            with open_segment(segment.path) as file:
                found.add(file.layout)
        return found

    def all(self) -> Iterator[tuple[TxId, Op]]:
        """Yield every edit behind the image, in order.

        Raises:
            EditsError: while iterating; names file, offset and transaction.
        """
        for segment in self.segments:
            for located in edits_of(segment):
                if located.txid > self.after:
                    yield located.txid, located.op

    def error(self, txid: TxId, what: str) -> EditsError:
        """Return an error about one edit, with its place."""
        for segment in self.segments:
            if segment.first <= txid <= segment.last:
                for located in edits_of(segment):
                    if located.txid == txid:
                        return EditsError(
                            what, file=str(segment.path), offset=located.offset, txid=txid
                        )
        return EditsError(what, txid=txid)
