"""Which edits of a segment that one node alone lists another node's copy vouches for.

See docs/reference/quorum-journal.md#segments-that-one-node-lists.

Pure.
"""

from collections.abc import Mapping

from ha.record import dataclass
from journal.model import NodeName, Segment
from journal.reader.frame_stream import Chunk


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What comes of comparing a stretch of the one copy with the others.

    ``chunk`` is of the one copy, never of another: others may hold what an older writer left, and
    it takes no majority to have been stale together.  None: no other node has the same bytes.
    """

    chunk: Chunk | None
    rest: Chunk | None
    """What the one copy has behind the stretch."""
    agreeing: Mapping[NodeName, Chunk | None]
    """The nodes that have the same bytes, each with what it has behind the stretch."""


def confirmed_by(lone: Chunk, others: Mapping[NodeName, Chunk]) -> Confirmation:
    """Compare the longest stretch that all of them have; all begin at the same edit."""
    last = min([lone.last, *(other.last for other in others.values())])
    head, rest = lone.cut(last)
    agreeing: dict[NodeName, Chunk | None] = {}
    for node, other in others.items():
        same, behind = other.cut(last)
        if (same.layout_version, same.records) == (head.layout_version, head.records):
            agreeing[node] = behind
    return Confirmation(head if agreeing else None, rest if agreeing else lone, agreeing)


def copy_in(segments: list[Segment], wanted: Segment) -> Segment | None:
    """Return a node's copy, finalized or not, that may have the same edits as that segment."""
    return next(
        (
            one
            for one in segments
            if one.first == wanted.first
            and (one.last == wanted.last or (not one.finalized and one.last > wanted.last))
        ),
        None,
    )
