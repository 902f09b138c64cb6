"""Planted bugs of the rules that Hadoop does not have: learners, rejoining, sync, damage, purge."""

from dataclasses import replace
from typing import Any

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
from journal.recovery import Held
from journal.storage.segment_file import SegmentCheck
from journal.writer import learner_admission, window
from tests.simulation.engine.mutants import Planting, all_of, replacing

# ---- learners ----


def learner_votes() -> Planting:
    """Let a wiped node answer as if it had always been there."""
    places = (machine, recovery, recent_edits)
    return all_of(*(replacing(place, "require_vote", lambda state: None) for place in places))


def admitted_without_data() -> Planting:
    return replacing(learner, "_held_up_to", lambda state, required: TxId(1 << 60))


def admitted_without_confirmation() -> Planting:
    """Let the writer take its own word for being the newest."""

    async def sure(_self: Any, _channel: Any) -> None:  # noqa: ANN401
        return None

    return replacing(learner_admission.LearnerAdmission, "_still_ours", sure)


def learners_write_counts() -> Planting:
    takes_part = window.Window.takes_part

    def lenient(self: Any, node: Any, seq: int, **_learner: Any) -> None:  # noqa: ANN401
        takes_part(self, node, seq)

    return replacing(window.Window, "takes_part", lenient)


def learners_finalize_counts() -> Planting:
    return replacing(learner, "strip_vote", lambda state, done: done)


# ---- back in the open segment ----


def resume_begins_anew() -> Planting:
    """Throw away a returning node's sound edits of the open segment."""
    open_again = rejoin._open

    def lenient(state: JournalState, first: Any, epoch: Any, layout_version: int) -> Step:  # noqa: ANN401
        ours = rejoin._held(state, first)
        if ours is not None and ours.writer == epoch:
            older = replace(ours, writer=Epoch(epoch - 1))
            state = replace(state, segments={**state.segments, first: older})
        return open_again(state, first, epoch, layout_version)

    return replacing(rejoin, "_open", lenient)


def resume_over_a_decision() -> Planting:
    ensure_current = rejoin._ensure_current

    def lenient(state: JournalState, first: Any, epoch: Any) -> None:  # noqa: ANN401
        ensure_current(replace(state, decisions={}), first, epoch)

    return replacing(rejoin, "_ensure_current", lenient)


def resume_whatever_was_left() -> Planting:
    return replacing(rejoin, "_ensure_current", lambda state, first, epoch: None)


def resume_trusts_the_scan() -> Planting:
    """Take what a file holds when it is opened again for what a start has found in it."""
    return replacing(contents, "reopened_segment", lambda state, request: None)


def damage_stops_the_node() -> Planting:
    """Refuse a damaged copy as if the disk had failed."""
    return replacing(machine, "StorageFailed", BadRequest)


def catch_up_overtakes() -> Planting:
    """Let a late download take away what was acknowledged in the meantime."""
    return replacing(rejoin, "_reaches", lambda state, wanted, epoch: False)


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


def sync_compares_ends() -> Planting:
    return replacing(sync, "_differ", lambda one, other: one.last != other.last)


def sync_replaces_the_open_segment() -> Planting:
    return replacing(sync, "_why_not_now", lambda state, theirs, stalled_at: None)


def damage_votes() -> Planting:
    """Let a damaged copy answer a recovery like a node that has nothing."""
    places = (recovery, rejoin, segments)
    return all_of(
        *(replacing(place, "damage_refusal", lambda state, first: None) for place in places)
    )


def damage_ignored() -> Planting:
    """Forget what the scrubber finds: the segment is listed, served and voted with."""
    return replacing(JournalState, "with_damage", lambda self, first, why: self)


def purge_point_is_not_learned() -> Planting:
    """Let an admission look at what the voters list, holes included."""
    return replacing(learner, "let_go", lambda state, minimum: Step(state, (), Done()))


def newest_segment_is_let_go_of() -> Planting:
    """Let a learner lack even the newest edits, if they are older than the purge point."""
    return replacing(
        learner, "_is_needed", lambda state, wanted, newest: wanted.last >= state.purged
    )


def purge_cuts_into_a_segment() -> Planting:
    def lenient(state: JournalState, segment: Segment, minimum: TxId) -> bool:
        return segment.first < minimum and segment.last <= state.committed

    return replacing(purge, "_is_past", lenient)


def purge_takes_the_open_segment() -> Planting:
    purge_logs = purge.purge

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        closed = abandon(state)
        done = purge_logs(closed.state, request)
        return Step(done.state, (*closed.effects, *done.effects), done.reply)

    return replacing(purge, "purge", lenient)


def purge_uncommitted() -> Planting:
    def lenient(_state: JournalState, segment: Segment, minimum: TxId) -> bool:
        return segment.last < minimum

    return replacing(purge, "_is_past", lenient)


# ---- a segment's writer ----


def ranks_by_the_nodes_writer() -> Planting:
    """Rank by the writer that started any segment on the node, as Hadoop does.

    With it goes Hadoop's order in a start, which our own order of effects makes harmless: the
    node's epoch is on the disk before the older file is out of the way.
    """
    answer_of = codec.answer_from_wire
    start = segments.start_segment

    def lenient(reply: Any) -> Any:  # noqa: ANN401
        answer = answer_of(reply)
        if isinstance(answer, Held):
            writer = Epoch(reply.last_writer_epoch)
            return replace(answer, segment=replace(answer.segment, writer=writer))
        return answer

    def epoch_first(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        done = start(state, request)
        order = sorted(done.effects, key=lambda effect: not isinstance(effect, PersistWriter))
        return Step(done.state, tuple(order), done.reply)

    return all_of(
        replacing(codec, "answer_from_wire", lenient),
        replacing(segments, "start_segment", epoch_first),
    )


# ---- the right to speak ----


def superseded_heartbeat_accepted() -> Planting:
    stamped = machine._stamped

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        if isinstance(request, Heartbeat) and request.stamp.epoch < state.promised:
            return Step(state, (), Done())
        return stamped(state, request)

    return replacing(machine, "_stamped", lenient)


def upgrades_unfenced() -> Planting:
    """Ignore the epoch in these calls, as Hadoop does."""
    stamped = machine._stamped

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        if type(request).__name__ in {
            "PreUpgrade", "Upgrade", "FinalizeUpgrade", "RollBack", "DiscardSegments"
        }:  # fmt: skip
            return upgrade_step(state, request)
        return stamped(state, request)

    return replacing(machine, "_stamped", lenient)


def format_over_a_writer() -> Planting:
    """Ignore what was promised since its caller looked."""
    form = machine._format

    def lenient(state: JournalState, request: Any) -> Step:  # noqa: ANN401
        return form(state, replace(request, seen_promised=state.promised))

    return replacing(machine, "_format", lenient)
