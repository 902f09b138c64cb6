"""Compares the edits of a segment that only one node lists with other nodes' copies.

See docs/reference/quorum-journal.md#segments-that-one-node-lists.

Pure.
"""

from collections.abc import Mapping

from ha.record import dataclass
from journal.model import NodeName, Segment
from journal.reader.frame_stream import Chunk


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The result of comparing a range of the listed copy with the others.

    ``chunk`` is from the listed copy, never from another: the others may have edits of a superseded
    writer, even the same ones.  It is None if no other node has the same bytes.
    """

    chunk: Chunk | None
    rest: Chunk | None
    """The listed copy's edits after the range."""
    agreeing: Mapping[NodeName, Chunk | None]
    """The nodes with the same bytes, each with its edits after the range."""


def confirmed_by(lone: Chunk, others: Mapping[NodeName, Chunk]) -> Confirmation:
    """Compare the longest range that all chunks have; they must begin at the same edit."""
    last = min([lone.last, *(other.last for other in others.values())])
    head, rest = lone.cut(last)
    agreeing: dict[NodeName, Chunk | None] = {}
    for node, other in others.items():
        same, behind = other.cut(last)
        if (same.layout_version, same.records) == (head.layout_version, head.records):
            agreeing[node] = behind
    return Confirmation(head if agreeing else None, rest if agreeing else lone, agreeing)


def copy_in(segments: list[Segment], wanted: Segment) -> Segment | None:
    """Return a node's copy, finalized or not, that may contain the edits of ``wanted``."""
    return next(
        (
            one
            for one in segments
            if one.first == wanted.first
            and (one.last == wanted.last or (not one.finalized and one.last > wanted.last))
        ),
        None,
    )
