"""Planted bugs of the rules that Hadoop does not have: learners, rejoining, sync, damage, purge."""

from dataclasses import replace
from typing import Any, Final

from journal.core import learner, machine, purge, recovery, rejoin, segments, sync
from journal.core.admission import abandon
from journal.core.effects import PersistWriter, Step
from journal.core.replies import Done
from journal.core.requests import Heartbeat
from journal.core.state import JournalState
from journal.core.upgrade import step as upgrade_step
from journal.errors import BadRequest
from journal.links import codec
from journal.model import Epoch, Segment, TxId
from journal.node.owner import contents, recent_edits
from journal.node.repair import segment_fetch
from journal.recovery import HeldSegment
from journal.storage.segment_file import SegmentCheck
from journal.writer import learner_admission, window
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing

_SIM: Final = "tests/simulation/journal/test_"
_CORE: Final = "tests/journal/core/test_"
_STORAGE: Final = "tests/journal/storage/test_"
_WRITER: Final = "tests/journal/writer/test_"
_X14: Final = _SIM + "writers.py::test_x14_a_crash_in_a_start_over_an_older_edit"
_CHECKS: Final = _CORE + "rules.py::test_the_first_failing_check_answers"
_LEFT: Final = _CORE + "rejoin.py::test_a_twin_does_not_reopen_what_the_writer_has_left"
_NO_LIAR: Final = "no node there serves sound edits that are others than it says"
bug: Final = Planted()

# ---- learners ----


@bug.killed_by(_CORE + "learner.py::test_a_learner_refuses_whatever_counts")
@bug("learner votes", 100)
def learner_votes() -> Planting:
    places = (machine, recovery, recent_edits)
    return all_of(*(replacing(place, "require_vote", lambda state: None) for place in places))


@bug.killed_by(_CORE + "learner.py::test_a_learner_that_lacks_something_is_not_admitted")
@bug("learner admitted without data", 1500)
def admitted_without_data() -> Planting:
    return replacing(learner, "_find_last_held", lambda state, required: TxId(1 << 60))


@bug.killed_by(
    _SIM + "learners.py::test_a_superseded_writer_admits_nobody",
    why="it takes a writer that is superseded just when it admits a learner",
)
@bug.replacing(
    "learner admitted without the voters' word",
    learner_admission.LearnerAdmission,
    "_still_ours",
    0,
)
async def admitted_without_confirmation(_self: Any, _channel: Any) -> None:
    return None


@bug.killed_by(_WRITER + "window.py::test_a_learner_is_fed_and_counts_nowhere")
@bug.replacing("learner's write counts", window.Window, "takes_part", 500)
def learners_write_counts(really: Any, self: Any, node: Any, seq: int, **_learner: Any) -> None:
    really(self, node, seq)


@bug.killed_by(
    _CORE + "learner.py::test_a_learner_finalizes_and_does_not_say_yes",
    why="it takes an end that a learner and a minority have, and a recovery then",
)
@bug("learner's finalize counts", 0)
def learners_finalize_counts() -> Planting:
    return replacing(learner, "strip_vote", lambda state, done: done)


# ---- back in the open segment ----


@bug.killed_by(_CORE + "rejoin.py::test_a_restarted_node_goes_on_behind_its_last_sound_edit")
@bug.replacing("resume begins anew", rejoin, "_open", 1500)
def resume_begins_anew(
    really: Any, state: JournalState, first: Any, epoch: Any, layout_version: int
) -> Any:
    ours = rejoin._sound_copy(state, first)
    if ours is not None and ours.writer == epoch:
        older = replace(ours, writer=Epoch(epoch - 1))
        state = replace(state, segments={**state.segments, first: older})
    return really(state, first, epoch, layout_version)


@bug.killed_by(_CORE + "rejoin.py::test_a_recovery_that_came_between_stands")
@bug.replacing("resume over a decision", rejoin, "_ensure_current", 2000)
def resume_over_a_decision(really: Any, state: JournalState, first: Any, epoch: Any) -> None:
    really(replace(state, decisions={}), first, epoch)


# The node stops: it has a finalized segment's name for a file that it would go on writing.
@bug.killed_by(_LEFT)
@bug("resume of what was left", 1500)
def resume_whatever_was_left() -> Planting:
    return replacing(rejoin, "_ensure_current", lambda state, first, epoch: None)


@bug.killed_by(
    _SIM + "found.py::test_what_rots_behind_the_scan_of_the_start_is_not_voted_with",
    why="it takes rot in an open segment between a node's start and its writer's return",
)
@bug("resume trusts the scan of the start", 0)
def resume_trusts_the_scan() -> Planting:
    return replacing(contents, "reopened_segment", lambda state, request: None)


@bug.killed_by(
    _SIM + "found.py::test_what_rots_behind_the_scan_of_the_start_is_not_voted_with",
    why="a node that stops on a damaged disk breaks no promise there",
)
@bug("damage refused by stopping", 0)
def damage_stops_the_node() -> Planting:
    return replacing(machine, "StorageFailed", BadRequest)


@bug.killed_by(
    _CORE + "rejoin.py::test_a_download_that_is_overtaken_takes_nothing_away",
    why="it takes a batch that overtakes a catch-up to the same node",
)
@bug("catch-up takes acknowledged edits away", 0)
def catch_up_overtakes() -> Planting:
    return replacing(rejoin, "_holds_all_of", lambda state, wanted, epoch: False)


def _unchecked(wanted: Segment) -> SegmentCheck:
    """Check that the edits are whole and as many as wanted, and not which ones they are."""
    check = SegmentCheck(wanted)
    finish = check.finish
    check.finish = lambda: None if check.complete else finish()  # type: ignore[method-assign]
    return check


def download_unchecked() -> Planting:
    """Take any edits of the right numbers, for a recovery, a catch-up or the syncer."""
    return replacing(segment_fetch, "SegmentCheck", _unchecked)


# ---- sync, damage, purge ----


@bug.killed_by(
    _CORE + "syncing.py::test_contradictions_are_reported_and_nothing_is_touched", why=_NO_LIAR
)
@bug("sync compares ends only", 0)
def sync_compares_ends() -> Planting:
    return replacing(sync, "_differ", lambda one, other: one.last != other.last)


@bug.killed_by(
    _CORE + "syncing.py::test_the_open_segment_is_the_writers_business",
    why="it takes a look of the syncer while peers have closed what is open here",
)
@bug("sync replaces the open segment", 0)
def sync_replaces_the_open_segment() -> Planting:
    return replacing(sync, "_adoption_obstacle", lambda state, theirs, stalled_at: None)


@bug.killed_by(
    _STORAGE + "records.py::test_x08_damage_in_an_unclosed_segment_has_no_vote",
    why="worlds damage a minority, and the majority that is left has the edits",
)
@bug("damaged copy votes", 0)
def damage_votes() -> Planting:
    places = (recovery, rejoin, segments)
    return all_of(
        *(replacing(place, "damage_refusal", lambda state, first: None) for place in places)
    )


@bug.killed_by("tests/journal/node/test_sync.py::test_damage_is_never_served")
@bug("damage that is found is ignored", 100)
def damage_ignored() -> Planting:
    return replacing(JournalState, "with_damage", lambda self, first, why: self)


@bug.killed_by(
    _SIM + "found.py::test_a_hole_below_the_purge_point_keeps_nobody_out",
    why="a learner only waits for longer: the next segment lets it in",
)
@bug("purge point not learned from voters", 0)
def purge_point_is_not_learned() -> Planting:
    return replacing(learner, "purge_before", lambda state, minimum: Step(state, (), Done()))


@bug.killed_by(
    _SIM + "found.py::test_the_newest_segment_is_needed_wherever_the_purge_point_lies",
    why="it takes a purge up to the newest edit, and a learner that has none of it",
)
@bug("newest segment let go of", 0)
def newest_segment_is_let_go_of() -> Planting:
    return replacing(
        learner, "_is_needed", lambda state, wanted, newest: wanted.last >= state.purged
    )


@bug.killed_by(_CORE + "purge.py::test_a_segment_that_reaches_the_minimum_stays")
@bug.replacing("purge cuts into a segment", purge, "_is_past", 100)
def purge_cuts_into_a_segment(state: JournalState, segment: Segment, minimum: TxId) -> bool:
    return segment.first < minimum and segment.last <= state.committed


@bug.killed_by(
    _CORE + "purge.py::test_the_open_and_the_newest_segment_stay",
    why="a writer there asks for no purge beyond what it has finalized",
)
@bug.replacing("purge takes the open segment", purge, "purge", 0)
def purge_takes_the_open_segment(really: Any, state: JournalState, request: Any) -> Any:
    closed = abandon(state)
    done = really(closed.state, request)
    return Step(done.state, (*closed.effects, *done.effects), done.reply)


@bug.killed_by(
    _CORE + "purge.py::test_what_is_not_known_to_be_committed_stays",
    why="a writer there asks for no purge beyond what it has finalized",
)
@bug.replacing("purge of what may not be committed", purge, "_is_past", 0)
def purge_uncommitted(_state: JournalState, segment: Segment, minimum: TxId) -> bool:
    return segment.last < minimum


# ---- a segment's writer ----


# Masked by the order of a start's effects, so that order is planted with it.
@bug.killed_by(
    _X14 + "[killed]",
    why="it takes a crash inside a start, and a recovery that the same copy decides",
)
@bug("ranked by the node's writer epoch", 0)
def ranks_by_the_nodes_writer() -> Planting:
    """Rank by the writer that started any segment on the node, as Hadoop does.

    With it goes Hadoop's order in a start, which our own order of effects makes harmless: the
    node's epoch is on the disk before the older file is out of the way.
    """
    answer_of = codec.answer_from_wire
    start = segments.start_segment

    def lenient(reply: Any) -> Any:
        answer = answer_of(reply)
        if isinstance(answer, HeldSegment):
            writer = Epoch(reply.last_writer_epoch)
            return replace(answer, segment=replace(answer.segment, writer=writer))
        return answer

    def epoch_first(state: JournalState, request: Any) -> Step:
        done = start(state, request)
        order = sorted(done.effects, key=lambda effect: not isinstance(effect, PersistWriter))
        return Step(done.state, tuple(order), done.reply)

    return all_of(
        replacing(codec, "answer_from_wire", lenient),
        replacing(segments, "start_segment", epoch_first),
    )


# ---- the right to speak ----


@bug.killed_by(_CHECKS)
@bug.replacing("superseded writer's heartbeat accepted", machine, "_handle_stamped", 1500)
def superseded_heartbeat_accepted(really: Any, state: JournalState, request: Any) -> Any:
    if isinstance(request, Heartbeat) and request.stamp.epoch < state.promised:
        return Step(state, (), Done())
    return really(state, request)


@bug.killed_by(_CORE + "upgrade.py::test_no_step_is_for_a_fenced_writer")
@bug.replacing("upgrade, roll back and discard unfenced", machine, "_handle_stamped", 100)
def upgrades_unfenced(really: Any, state: JournalState, request: Any) -> Any:
    if type(request).__name__ in {
        "PreUpgrade", "Upgrade", "FinalizeUpgrade", "RollBack", "DiscardSegments"
    }:  # fmt: skip
        return upgrade_step(state, request)
    return really(state, request)


@bug.killed_by(_STORAGE + "format_fence.py::test_a_writer_that_came_since_is_not_destroyed")
@bug.replacing("format over a newer writer", machine, "_format", 100)
def format_over_a_writer(really: Any, state: JournalState, request: Any) -> Any:
    return really(state, replace(request, seen_promised=state.promised))


bug.add(
    "catch-up without its digest",
    download_unchecked(),
    0,
    killer="tests/journal/node/test_transfer.py::test_a_catch_up_takes_no_other_edits",
    why=_NO_LIAR,
)
bug.add(
    "sync takes other edits",
    download_unchecked(),
    0,
    killer="tests/journal/node/test_transfer.py::test_a_peer_that_lies_is_not_believed_by_the_syncer",
    why=_NO_LIAR,
)
