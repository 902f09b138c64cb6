"""Decides about startLogSegment, journal and finalizeLogSegment.

See docs/reference/journal-node.md#startlogsegment and what follows there.
"""

from dataclasses import replace
from typing import Final

from journal.core import effects as core_effects
from journal.core.admission import abandon, damage_refusal
from journal.core.replies import Done
from journal.core.requests import FinalizeLogSegment, Journal, StartLogSegment
from journal.core.state import JournalState, OpenSegment
from journal.errors import BadRequest, OutOfSync
from journal.frame import scan
from journal.model import Segment, TxId

DIGEST_BYTES: Final = 32
OLDEST_LAYOUT: Final = -16
"""Edit logs from this layout on have framed, checksummed ops.

See docs/reference/formats.md#segment-header.
"""


def start_segment(state: JournalState, request: StartLogSegment) -> core_effects.Step:
    """Begin an empty segment; it may replace an in-progress file with one edit."""
    if request.first <= 0:
        raise BadRequest(f"a segment cannot start at transaction {request.first}")
    if request.layout_version > OLDEST_LAYOUT:
        raise BadRequest(f"layout {request.layout_version} has no framed edits")
    still_open = state.open is not None and state.open.first == request.first
    closed = abandon(state)
    state, effects = closed.state, list[core_effects.Effect](closed.effects)
    existing = state.find(request.first)
    refusal = damage_refusal(state, request.first) or _start_obstacle(
        state, existing, request.first
    )
    if existing is not None and state.writer == request.stamp.epoch and not still_open:
        # Serials do not survive a restart: this may be a late duplicate of the request that began
        # the segment, whose one edit may be acknowledged.  No writer begins a segment twice.
        refusal = refusal or OutOfSync(
            f"epoch {state.writer} has begun segment {request.first} already, and left it"
        )
    if refusal is not None:
        return core_effects.Step(state, tuple(effects), refusal)
    if request.first in state.decisions:
        effects.append(core_effects.ForgetDecision(request.first))
        state = state.without_decision(request.first)
    epoch = request.stamp.epoch
    if existing is not None:
        # The old file is moved before the new one is recorded.  In the other order, a crash in
        # between would leave the older writer's edit with the newer epoch in its record.
        effects.append(core_effects.MoveAside(request.first))
        state = state.without_segment(request.first)
    effects.append(core_effects.CreateSegment(request.first, request.layout_version, epoch))
    if state.writer != epoch:
        effects.append(core_effects.PersistWriter(epoch))
    opened = OpenSegment(
        first=request.first,
        next_txid=request.first,
        writer=epoch,
        layout_version=request.layout_version,
    )
    state = replace(state, writer=epoch, open=opened)
    return core_effects.Step(state, tuple(effects), Done())


def _start_obstacle(state: JournalState, existing: Segment | None, first: TxId) -> OutOfSync | None:
    if existing is not None and existing.finalized:
        return OutOfSync(f"Already have a finalized segment {existing.name()} beginning at {first}")
    if existing is not None and existing.last != existing.first:
        return OutOfSync(
            f"The log file {existing.name()} seems to contain valid transactions "
            f"{existing.first}-{existing.last}"
        )
    for segment in (*state.segments.values(), *(d.segment for d in state.damaged.values())):
        if segment.finalized and segment.holds(first):
            return OutOfSync(f"transaction {first} lies inside the finalized {segment.name()}")
    return None


def journal(state: JournalState, request: Journal) -> core_effects.Step:
    """Append a batch to the open segment, after checking every frame of it."""
    if request.stamp.epoch != state.writer:
        # This writer is not fenced: the node has promised its epoch and missed the segment's
        # start.  A writer cannot distinguish Hadoop's error for that from a fence.
        raise OutOfSync(
            f"epoch {request.stamp.epoch} is not the current writer epoch {state.writer}: "
            "it has started no segment here"
        )
    if request.count == 0 and not request.records:
        return core_effects.Step(state, (), Done())
    if state.open is None:
        raise OutOfSync("Can't write, no segment open")
    if request.segment_first != state.open.first:
        closed = abandon(state)
        out = OutOfSync(
            f"Writer out of sync: it writes segment {request.segment_first}, "
            f"the open segment is {state.open.first}"
        )
        return core_effects.Step(closed.state, closed.effects, out)
    if request.first != state.open.next_txid:
        raise OutOfSync(
            f"Can't write txid {request.first} expecting nextTxId={state.open.next_txid}",
            expected_txid=state.open.next_txid,
        )
    last = _check_frames(request)
    opened = replace(state.open, next_txid=TxId(last + 1), digest=b"")
    append = core_effects.AppendEdits(request.segment_first, request.count, request.records)
    return core_effects.Step(replace(state, open=opened), (append,), Done())


def _check_frames(request: Journal) -> TxId:
    """Return the last txid of a batch.

    Raise BadRequest if its frames are damaged, not contiguous, or not of the announced number.
    """
    found = scan(request.records, expected=request.first)
    if found.damage is not None:
        raise BadRequest(
            f"the batch at {request.first} is damaged at byte {found.end}: {found.damage}"
        )
    if found.end != len(request.records):
        raise BadRequest(
            f"the batch at {request.first} has {len(request.records) - found.end} bytes of "
            "padding behind its edits"
        )
    if found.count != request.count or found.last is None:
        raise BadRequest(
            f"the batch at {request.first} holds {found.count} edits, {request.count} were "
            "announced"
        )
    return found.last


def finalize(state: JournalState, request: FinalizeLogSegment) -> core_effects.Step:
    """Finalize a segment if its end and its digest are those of the request."""
    size = DIGEST_BYTES if request.digest is None else len(request.digest)
    if request.last < request.first or size != DIGEST_BYTES:
        raise BadRequest(
            f"cannot finalize {request.first}-{request.last} with a digest of {size} bytes"
        )
    effects: list[core_effects.Effect] = []
    still_open = state.open is not None and state.open.first == request.first
    if still_open:
        # Close it even if the check fails: its writer does not write to it any more.
        closed = abandon(state)
        state, effects = closed.state, list(closed.effects)
    ours = state.find(request.first)
    refusal = damage_refusal(state, request.first) or _finalize_obstacle(
        ours, request, written_now=still_open
    )
    if refusal is None and ours is not None and request.digest is None:
        refusal = _find_unproven_edits(state, ours, request, written_now=still_open)
    if refusal is not None:
        return core_effects.Step(state, tuple(effects), refusal)
    if ours is not None and not ours.finalized:
        closed_for_good = replace(ours, finalized=True)
        effects.append(core_effects.FinalizeSegment(closed_for_good))
        state = state.with_segment(closed_for_good)
    if request.first in state.decisions:
        effects.append(core_effects.ForgetDecision(request.first))
        state = state.without_decision(request.first)
    return core_effects.Step(state, tuple(effects), Done())


def _finalize_obstacle(
    ours: Segment | None, request: FinalizeLogSegment, *, written_now: bool
) -> OutOfSync | BadRequest | None:
    wanted = f"finalize {request.first}-{request.last}"
    if ours is None:
        return OutOfSync(f"No log file to finalize at transaction ID {request.first}")
    if ours.last != request.last:
        if ours.finalized:
            return BadRequest(f"Trying to re-{wanted}, but {ours.name()} is finalized")
        held = "but only written up to" if written_now else "disk only contains up to"
        return OutOfSync(
            f"Asked to {wanted}, {held} txid {ours.last}", expected_txid=TxId(ours.last + 1)
        )
    if request.digest is not None and ours.digest != request.digest:
        return OutOfSync(
            f"Asked to {wanted}, but our edits differ: digest {ours.digest.hex()[:16]} here, "
            f"{request.digest.hex()[:16]} there"
        )
    return None


def _find_unproven_edits(
    state: JournalState, ours: Segment, request: FinalizeLogSegment, *, written_now: bool
) -> OutOfSync | None:
    """Return why our edits may not be those that a writer without digests finalizes.

    Hadoop compares only the end.  A node that missed acceptRecovery would then finalize other edits
    with the same txids.  So our edits must be written by this epoch, accepted in a recovery of it,
    or already finalized.

    See docs/reference/quorum-journal.md#equal-length-is-not-equal-content.
    """
    epoch = request.stamp.epoch
    if ours.finalized or ours.writer == epoch or (written_now and state.writer == epoch):
        return None
    decision = state.decisions.get(request.first)
    if decision is not None and decision.epoch == epoch and decision.segment.digest == ours.digest:
        return None
    return OutOfSync(
        f"Asked to finalize {request.first}-{request.last}, but epoch {epoch} has neither written "
        "our edits nor had them accepted, and gives no digest of what it means"
    )
