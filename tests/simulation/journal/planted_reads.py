"""Planted bugs of the read lease, and of the readers who follow the open segment."""

from collections.abc import Mapping
from typing import Any

from journal import durable
from journal.model import NodeName
from journal.node.owner.edits_cache import EditsCache
from journal.reader import lone_segment, tailing
from journal.reader.frame_stream import Chunk
from journal.reader.lone_segment import LoneSegments
from journal.reader.vouching import Confirmation
from journal.writer import heartbeats
from journal.writer.heartbeats import ReadLease
from tests.simulation.engine.mutants import Planting, all_of, replacing

# ---- the lease ----


def lease_from_the_reply() -> Planting:
    """Count from the reply, though one that lay in a socket proves nothing about now."""
    accepted = ReadLease.accepted

    def lenient(self: Any, nodes: Any, _sent_at: float) -> None:  # noqa: ANN401
        accepted(self, nodes, self.clock())

    return replacing(ReadLease, "accepted", lenient)


def lease_from_one_node() -> Planting:
    accepted = ReadLease.accepted

    def lenient(self: Any, nodes: Any, sent_at: float) -> None:  # noqa: ANN401
        if self._lease is not None and list(nodes):
            accepted(self, self._lease.nodes, sent_at)

    return replacing(ReadLease, "accepted", lenient)


def no_wait_for_the_lease() -> Planting:
    return replacing(heartbeats, "left_to_wait", lambda duration, heard_ago: 0.0)


# ---- what is durable, for a reader ----


def cache_outlives_its_writer() -> Planting:
    return replacing(EditsCache, "keep_only", lambda self, segments: None)


def counts_without_comparing() -> Planting:
    """Count nodes that have an edit of that number, as Hadoop does."""

    def lenient(tails: Mapping[Any, Any], at: int, _txid: Any, needed: int) -> bytes | None:  # noqa: ANN401
        copies = [tail.edits[at] for tail in tails.values()]
        return copies[0] if len(copies) >= needed else None

    return all_of(
        replacing(durable, "_chosen", lenient),
        replacing(durable, "_contradicted", lambda tails, edit, at: False),
    )


def equal_bytes_are_enough() -> Planting:
    """Trust equal copies, which a recovery that was not finished makes, too."""

    def lenient(tails: Mapping[Any, Any], at: int, _txid: Any, needed: int) -> bytes | None:  # noqa: ANN401
        copies = [tail.edits[at] for tail in tails.values()]
        return next((edit for edit in copies if copies.count(edit) >= needed), None)

    return replacing(durable, "_chosen", lenient)


def late_knowledge_counts() -> Planting:
    """Count what one node has learnt of commits for the answers of the others."""
    chosen = durable._chosen

    def lenient(tails: Mapping[Any, Any], at: int, txid: Any, needed: int) -> bytes | None:  # noqa: ANN401
        known = max((t.committed for t in tails.values() if t.committed is not None), default=None)
        told = {n: durable.Tail(t.edits, t.writers, known) for n, t in tails.items()}
        return chosen(told, at, txid, needed)

    return replacing(durable, "_chosen", lenient)


def one_file_is_enough() -> Planting:
    agreed = tailing._agreed
    return replacing(tailing, "_agreed", lambda cursors, needed: agreed(cursors, 1))


def lone_segment_believed() -> Planting:
    """Believe what one node calls finalized, as Hadoop does."""
    return replacing(LoneSegments, "concerns", lambda self, part: False)


def any_copy_vouches() -> Planting:
    """Trust another node's edits of these numbers, whatever they are."""

    def lenient(lone: Chunk, others: Mapping[NodeName, Chunk]) -> Confirmation:
        return Confirmation(lone, None, dict.fromkeys(others))

    return replacing(lone_segment, "confirmed_by", lenient)


def others_outvote() -> Planting:
    """Believe two nodes that have the same, whatever the one calls finalized."""

    def lenient(lone: Chunk, others: Mapping[NodeName, Chunk]) -> Confirmation:
        copies = list(others.values())
        twice = next((one for one in copies if copies.count(one) > 1), lone)
        return Confirmation(twice, None, dict.fromkeys(others))

    return replacing(lone_segment, "confirmed_by", lenient)


def files_beyond_the_commit() -> Planting:
    """Hand out whatever a majority's copies hold, out of files."""
    learn = tailing.OpenTail._learn

    def eager(self: Any, replies: Any) -> None:  # noqa: ANN401
        learn(self, replies)
        self._committed = 1 << 60

    return replacing(tailing.OpenTail, "_learn", eager)
