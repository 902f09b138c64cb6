"""Decides about newEpoch, prepareRecovery and acceptRecovery.

See docs/reference/journal-node.md#newepoch and what follows there.
"""

from dataclasses import replace
from enum import Enum, auto
from typing import Final

from journal.core import admission
from journal.core import effects as core_effects
from journal.core.admission import damage_refusal, promise
from journal.core.learner import require_vote
from journal.core.limits import require_small_leap
from journal.core.replies import Done, Fetch, Prepared, Promised
from journal.core.requests import AcceptRecovery, AdoptRecovery, NewEpoch
from journal.core.segments import DIGEST_BYTES
from journal.core.state import Decision, JournalState
from journal.errors import BadRequest, Fenced, InvariantBroken, StorageFailed, ensure
from journal.model import NO_EPOCH, Epoch, Segment, TxId


class Fate(Enum):
    """What to do with our copy of a segment after a recovery has decided about it."""

    FETCH = auto()
    KEEP = auto()
    REFUSE = auto()


#   have it?  same edits?  finalized?      what becomes of our copy
FATE: Final = {
    (False, False, False): Fate.FETCH,
    (True, True, False): Fate.KEEP,
    (True, True, True): Fate.KEEP,
    (True, False, False): Fate.FETCH,
    (True, False, True): Fate.REFUSE,  # two finalized contents: history has forked
}


def new_epoch(state: JournalState, request: NewEpoch) -> core_effects.Step:
    """Promise a newer epoch and name the newest segment that has an edit."""
    admission.require_namespace(state, request.namespace)
    require_vote(state)
    if request.epoch <= state.promised:
        raise Fenced(
            f"Proposed epoch {request.epoch} <= last promise {state.promised}",
            promised=state.promised,
        )
    require_small_leap(state, request.epoch)
    promised = promise(state, request.epoch)
    return core_effects.Step(promised.state, promised.effects, Promised(promised.state.newest))


def prepare(state: JournalState, first: TxId) -> core_effects.Step:
    """Return our copy of a segment; close it if it is open, so that the answer stays true."""
    closed = admission.abandon(state)
    state = closed.state
    damaged = damage_refusal(state, first)
    if damaged is not None:
        return core_effects.Step(state, closed.effects, damaged)
    ours = state.find(first)
    decision = state.decisions.get(first)
    if decision is not None and not (ours is not None and ours.finalized):
        if not _same_edits(ours, decision.segment):
            held = "nothing" if ours is None else f"{ours.first}-{ours.last}"
            differs = StorageFailed(
                f"the recovery of segment {first} accepted in epoch {decision.epoch} ends "
                f"at {decision.segment.last}, but the disk holds {held} or other edits"
            )
            return core_effects.Step(state, closed.effects, differs)
        answer = Prepared(decision.segment, decision, state.writer, state.committed)
    else:
        answer = Prepared(ours, None, state.writer, state.committed)
    return core_effects.Step(state, closed.effects, answer)


def peek(state: JournalState, first: TxId | None) -> core_effects.Step:
    """Return what ``prepare`` would answer now, without a change of the state."""
    admission.require_formatted(state)
    if first is None:
        first = admission.abandon(state).state.newest
    if first is None:
        return core_effects.Step(state, (), Prepared(None, None, state.writer, state.committed))
    return core_effects.Step(state, (), prepare(state, first).reply)


def accept(state: JournalState, request: AcceptRecovery) -> core_effects.Step:
    """Accept a recovery at once if our copy has the decided edits; else request a download."""
    closed = admission.abandon(state)
    state = closed.state
    decided = request.segment
    if decided.first <= 0 or decided.last < decided.first:
        bad = BadRequest(f"bad recovery state for segment {decided.first}: end {decided.last}")
        return core_effects.Step(state, closed.effects, bad)
    if len(decided.digest) != DIGEST_BYTES:
        bad = BadRequest(f"a recovery with a digest of {len(decided.digest)} bytes")
        return core_effects.Step(state, closed.effects, bad)
    try:
        fate = _decide_fate(state, decided, request.stamp.epoch)
    except InvariantBroken as broken:
        return core_effects.Step(state, closed.effects, broken)
    if fate is Fate.FETCH:
        return core_effects.Step(state, closed.effects, Fetch(decided, request.stamp.epoch))
    decision = Decision(decided, request.stamp.epoch)
    kept = _keep(state, decided)
    effects = (*closed.effects, core_effects.PersistDecision(decision), *kept.effects)
    return core_effects.Step(kept.state.with_decision(decision), effects, Done())


def adopt(state: JournalState, request: AdoptRecovery) -> core_effects.Step:
    """Finish an acceptance after the download of the decided segment.

    All is checked again: during the download a newer epoch may have been promised, or the writer
    may have gone on without this node.
    """
    admission.require_formatted(state)
    require_vote(state)
    drop = core_effects.DropDownload(request.segment.first, request.epoch)
    if request.epoch != state.promised:
        late = Fenced(
            f"epoch {state.promised} was promised while the recovery of epoch {request.epoch} "
            "fetched its segment",
            promised=state.promised,
        )
        return core_effects.Step(state, (drop,), late)
    closed = admission.abandon(state)
    state = closed.state
    decision = Decision(request.segment, request.epoch)
    effects: tuple[core_effects.Effect, ...] = (
        *closed.effects,
        core_effects.PersistDecision(decision),
    )
    if _decide_fate(state, request.segment, request.epoch) is Fate.FETCH:
        damage = state.damaged.get(request.segment.first)
        repaired = damage is not None and damage.segment.finalized
        adopted = replace(request.segment, finalized=repaired)
        effects = (*effects, core_effects.AdoptDownload(adopted, request.epoch))
        state = state.with_segment(adopted)
    else:
        kept = _keep(state, request.segment)
        state, effects = kept.state, (drop, *effects, *kept.effects)
    return core_effects.Step(state.with_decision(decision), effects, Done())


def _keep(state: JournalState, decided: Segment) -> admission.Admitted:
    """Keep our copy, which has the decided edits, and record the decided writer."""
    ours = state.find(decided.first)
    if ours is None or ours.finalized or decided.writer in (NO_EPOCH, ours.writer):
        return admission.Admitted(state)
    ours = replace(ours, writer=decided.writer)
    return admission.Admitted(state.with_segment(ours), (core_effects.RecordSegment(ours),))


def _decide_fate(state: JournalState, decided: Segment, epoch: Epoch) -> Fate:
    """Return what to do with our copy.

    Raises:
        InvariantBroken: replacing it would lose a committed or a finalized edit.
    """
    earlier = state.decisions.get(decided.first)
    if earlier is not None:
        ensure(
            earlier.epoch <= epoch,
            f"epoch {epoch} decides about segment {decided.first} after epoch {earlier.epoch}",
        )
    damage = state.damaged.get(decided.first)
    ours = state.find(decided.first)
    if damage is not None:
        fate = _decide_fate_of_damaged(damage.segment, decided)
    else:
        fate = FATE[ours is not None, _same_edits(ours, decided), bool(ours and ours.finalized)]
    if ours is not None and fate is not Fate.KEEP:
        _ensure_keeps(ours, decided, state.committed)
    for other in (*state.segments.values(), *(d.segment for d in state.damaged.values())):
        ensure(
            other.first == decided.first
            or not other.finalized
            or other.last < decided.first
            or decided.last < other.first,
            f"the decided segment {decided.first}-{decided.last} overlaps {other.name()}",
        )
    return fate


def _decide_fate_of_damaged(ours: Segment, decided: Segment) -> Fate:
    """Return FETCH for a damaged copy, after checking it against what was finalized."""
    ensure(
        not ours.finalized or (ours.last == decided.last and ours.digest in (b"", decided.digest)),
        f"{ours.name()} is finalized, and a recovery decided on other edits "
        f"{decided.first}-{decided.last}",
    )
    return Fate.FETCH


def _ensure_keeps(ours: Segment, decided: Segment, committed: TxId) -> None:
    ensure(
        not ours.holds(committed) or decided.holds(committed),
        f"replacing {ours.first}-{ours.last} by {decided.first}-{decided.last} would discard "
        f"already-committed txn {committed}",
    )
    ensure(
        not ours.finalized,
        f"{ours.name()} is finalized, and a recovery decided on other edits "
        f"{decided.first}-{decided.last}",
    )


def _same_edits(ours: Segment | None, decided: Segment) -> bool:
    return ours is not None and ours.last == decided.last and ours.digest == decided.digest
