"""Planted bugs of the read lease, and of the readers who follow the open segment."""

from collections.abc import Mapping
from typing import Any, Final

from journal import durable
from journal.model import NodeName
from journal.node.owner.edits_cache import EditsCache
from journal.reader import lone_segment, tailing
from journal.reader.frame_stream import Chunk
from journal.reader.lone_segment import LoneSegments
from journal.reader.vouching import Confirmation
from journal.writer import heartbeats
from journal.writer.heartbeats import ReadLease
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing

_WRITER: Final = "tests/journal/writer/test_"
_LONE: Final = "tests/journal/reader/test_lone.py::test_"
_NO_LIAR: Final = "no node there serves sound edits that are others than it says"
_OTHER_TAILS: Final = (
    "it takes nodes with other edits of one number behind what is committed, and a reader that "
    "asks in the midst of a recovery"
)
bug: Final = Planted()

# ---- the lease ----


@bug.killed_by(
    _WRITER + "lease.py::test_a_reply_that_lay_in_a_socket_proves_nothing_new",
    why="it takes an answer that is late by a lease, and a newer writer",
)
@bug.replacing("lease counted from the reply", ReadLease, "accepted", 0)
def lease_from_the_reply(really: Any, self: Any, nodes: Any, _sent_at: float) -> None:
    really(self, nodes, self.clock())


@bug.killed_by(
    _WRITER + "lease.py::test_without_a_majority_the_lease_runs_out",
    why="it takes a writer that reaches one node alone, and a caller who saw a newer one",
)
@bug.replacing("lease from one node", ReadLease, "accepted", 0)
def lease_from_one_node(really: Any, self: Any, nodes: Any, sent_at: float) -> None:
    if self._lease is not None and list(nodes):
        really(self, self._lease.nodes, sent_at)


@bug.killed_by(_WRITER + "lease.py::test_a_new_writer_lets_the_old_lease_run_out_first")
@bug("no wait for the older lease", 1500)
def no_wait_for_the_lease() -> Planting:
    return replacing(heartbeats, "left_to_wait", lambda duration, heard_ago: 0.0)


# ---- what is durable, for a reader ----


@bug.killed_by(
    "tests/journal/node/test_recent_edits.py::"
    "test_a_new_epoch_takes_back_what_its_recovery_may_replace",
    why=_OTHER_TAILS,
)
@bug("cache outlives its writer", 0)
def cache_outlives_its_writer() -> Planting:
    return replacing(EditsCache, "keep_only", lambda self, segments: None)


@bug.killed_by(
    "tests/journal/test_durable.py::test_other_bytes_under_the_same_numbers_do_not_count",
    why=_OTHER_TAILS,
)
@bug("edits counted, not compared", 0)
def counts_without_comparing() -> Planting:
    def lenient(tails: Mapping[Any, Any], at: int, _txid: Any, needed: int) -> bytes | None:
        copies = [tail.edits[at] for tail in tails.values()]
        return copies[0] if len(copies) >= needed else None

    return all_of(
        replacing(durable, "_choose_edit", lenient),
        replacing(durable, "_contradicted", lambda tails, edit, at: False),
    )


@bug.killed_by(
    "tests/journal/test_durable.py::test_equal_bytes_of_a_half_finished_recovery_are_not_durable",
    why=_OTHER_TAILS,
)
@bug.replacing("equal bytes are durable", durable, "_choose_edit", 0)
def equal_bytes_are_enough(
    tails: Mapping[Any, Any], at: int, _txid: Any, needed: int
) -> bytes | None:
    copies = [tail.edits[at] for tail in tails.values()]
    return next((edit for edit in copies if copies.count(edit) >= needed), None)


@bug.killed_by(
    "tests/journal/test_durable.py::test_equal_bytes_of_a_half_finished_recovery_are_not_durable",
    why=_OTHER_TAILS,
)
@bug.replacing("late knowledge counts", durable, "_choose_edit", 0)
def late_knowledge_counts(
    really: Any, tails: Mapping[Any, Any], at: int, txid: Any, needed: int
) -> Any:
    known = max((t.committed for t in tails.values() if t.committed is not None), default=None)
    told = {n: durable.Tail(t.edits, t.writers, known) for n, t in tails.items()}
    return really(told, at, txid, needed)


@bug.killed_by(
    "tests/journal/reader/test_tailing.py::test_one_file_of_an_edit_is_not_enough", why=_OTHER_TAILS
)
@bug("one file is enough", 0)
def one_file_is_enough() -> Planting:
    agreed = tailing._agreed_stretches
    return replacing(tailing, "_agreed_stretches", lambda cursors, needed: agreed(cursors, 1))


@bug.killed_by(_LONE + "a_forged_segment_at_the_end_is_not_believed", why=_NO_LIAR)
@bug("one node's finalized segment is believed", 0)
def lone_segment_believed() -> Planting:
    return replacing(LoneSegments, "concerns", lambda self, part: False)


@bug.killed_by(_LONE + "a_copy_with_other_bytes_vouches_for_nothing", why=_NO_LIAR)
@bug.replacing("any copy vouches for a lone segment", lone_segment, "confirmed_by", 0)
def any_copy_vouches(lone: Chunk, others: Mapping[NodeName, Chunk]) -> Confirmation:
    return Confirmation(lone, None, dict.fromkeys(others))


@bug.killed_by(_LONE + "stale_copies_that_agree_do_not_outvote_the_finalized_one", why=_NO_LIAR)
@bug.replacing("stale copies outvote a finalized one", lone_segment, "confirmed_by", 0)
def others_outvote(lone: Chunk, others: Mapping[NodeName, Chunk]) -> Confirmation:
    copies = list(others.values())
    twice = next((one for one in copies if copies.count(one) > 1), lone)
    return Confirmation(twice, None, dict.fromkeys(others))


@bug.killed_by("tests/journal/reader/test_tailing.py::test_tail_without_cache", why=_OTHER_TAILS)
@bug.replacing("files read beyond what is committed", tailing.OpenTail, "_learn", 0)
def files_beyond_the_commit(really: Any, self: Any, replies: Any) -> None:
    really(self, replies)
    self._committed = 1 << 60
