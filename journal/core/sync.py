"""Finds and adopts segments that peers have finalized and that are missing here.

A writer finalizes a segment only after a majority holds its last edit.  So a segment that one voter
has finalized never changes, and is adopted without a writer or an epoch.

See docs/reference/journal-node.md#background-sync.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from ha.record import dataclass
from journal.core import effects as core_effects
from journal.core.admission import Admitted, abandon, require_formatted
from journal.core.replies import Done, FetchFinalized
from journal.core.requests import AdoptFinalized
from journal.core.segments import DIGEST_BYTES
from journal.core.state import JournalState
from journal.errors import BadRequest, InvariantBroken, OutOfSync, ensure
from journal.model import NO_EPOCH, NO_TXID, Segment, TxId


@dataclass(frozen=True, slots=True)
class Missing:
    """The missing segments in order, and the first txids of segments with different contents."""

    segments: tuple[Segment, ...]
    forked: tuple[TxId, ...]


def find_missing(
    state: JournalState, reported: Iterable[Segment], stalled_at: TxId | None = None
) -> Missing:
    """Compare our segments with those that peers have finalized."""
    wanted: dict[TxId, Segment] = {}
    seen: dict[TxId, Segment] = {}
    forked: set[TxId] = set()
    reported = tuple(reported)
    newest = max((theirs.last for theirs in reported), default=NO_TXID)
    for theirs in reported:
        ours = _find_finalized(state, theirs.first)
        if not theirs.finalized or len(theirs.digest) != DIGEST_BYTES:
            continue
        known = seen.setdefault(theirs.first, theirs)
        let_go = theirs.last < min(state.purged, newest)  # and not the newest either
        if _differ(known, theirs) or (ours is not None and _differ(ours, theirs)):
            forked.add(theirs.first)
        elif not (let_go and theirs.first not in state.damaged) and _is_wanted(
            state, theirs, stalled_at
        ):
            wanted[theirs.first] = theirs
    for first in forked:
        wanted.pop(first, None)
    return Missing(tuple(wanted[first] for first in sorted(wanted)), tuple(sorted(forked)))


def find_without_digest(state: JournalState, reported: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return each finalized segment that we lack and that peers report without a digest."""
    lacking: dict[TxId, Segment] = {}
    for theirs in reported:
        ours = _find_finalized(state, theirs.first)
        whole = ours is not None and theirs.first not in state.damaged
        if theirs.finalized and not theirs.digest and not whole:
            lacking.setdefault(theirs.first, theirs)
    return tuple(lacking[first] for first in sorted(lacking))


def first_txid_to_ask(state: JournalState) -> TxId:
    """Return the txid from which on to request the peers' segments."""
    if state.last_written < state.purged:
        return TxId(1)  # the segment that a purge keeps is before its minimum
    return TxId(min((max(1, state.purged), *state.damaged)))


def _is_wanted(state: JournalState, theirs: Segment, stalled_at: TxId | None) -> bool:
    ours = state.find(theirs.first)
    have = ours is not None and ours.finalized
    return not have and _adoption_obstacle(state, theirs, stalled_at) is None


def _find_finalized(state: JournalState, first: TxId) -> Segment | None:
    """Return our finalized segment with that start, even a damaged one; None if there is none."""
    damage = state.damaged.get(first)
    held = state.find(first) if damage is None else damage.segment
    return held if held is not None and held.finalized else None


def _differ(one: Segment, other: Segment) -> bool:
    digests = {one.digest, other.digest} - {b""}
    return one.last != other.last or len(digests) > 1


def _adoption_obstacle(
    state: JournalState, theirs: Segment, stalled_at: TxId | None
) -> OutOfSync | None:
    if state.open is not None and state.open.first <= theirs.last:
        left = state.open.first == theirs.first and state.open.next_txid == stalled_at
        if not left:
            # The writer may be about to finalize it here, or writes a later segment.
            return OutOfSync(f"segment {state.open.first} is being written")
    if state.promised == NO_EPOCH and not state.learner:
        # This node was just formatted; a peer that is not yet has the old journal's edits.
        return OutOfSync("no writer has been heard of yet")
    let_go = theirs.last < state.purged and theirs.first not in state.damaged
    # A purge keeps the newest segment, or the journal would seem empty.
    if let_go and theirs.last < state.last_written:
        return OutOfSync(f"the edits before {state.purged} were let go of")
    return None


def has_hole(state: JournalState) -> bool:
    """Return whether edits that exist on peers are missing or not finalized here."""
    if state.damaged or state.learner:
        return True
    held = list(state.segments.values())
    if state.open is not None:
        held.append(state.open.as_segment())
    for segment, following in pairwise(held):
        if not segment.finalized or segment.last + 1 != following.first:
            return True
    return state.claimed > state.last_written


def adopt_finalized(state: JournalState, request: AdoptFinalized) -> core_effects.Step:
    """Adopt a segment that a peer has finalized.

    Raises:
        BadRequest: it is not a finalized segment with a digest.
        OutOfSync: the segment is being written here, or was purged.
        InvariantBroken: finalized or committed edits here contradict it.
    """
    require_formatted(state)
    theirs = request.segment
    if (
        not theirs.finalized
        or len(theirs.digest) != DIGEST_BYTES
        or not 0 < theirs.first <= theirs.last
    ):
        raise BadRequest(f"{theirs.name()} is not a finalized segment with its digest")
    refusal = _adoption_obstacle(state, theirs, request.stalled_at)
    if refusal is not None:
        raise refusal
    final = _find_finalized(state, theirs.first)
    if final is not None:
        ensure(not _differ(final, theirs), f"{final.name()} and a peer's {theirs.name()} differ")
    before, closed = state, abandon(state) if _is_open(state, theirs) else Admitted(state)
    state = closed.state
    ours = state.find(theirs.first)
    if ours is not None and ours.finalized:
        return core_effects.Step(state, (), Done())
    _ensure_fits(state, theirs)
    if ours is not None and ours.last == theirs.last and ours.digest == theirs.digest:
        return _put_in_place(state, closed.effects, core_effects.FinalizeSegment(theirs))
    if request.fetched:
        return _put_in_place(state, closed.effects, core_effects.AdoptFetched(theirs))
    return core_effects.Step(before, (), FetchFinalized(theirs))


def _is_open(state: JournalState, theirs: Segment) -> bool:
    return state.open is not None and state.open.first == theirs.first


def _put_in_place(
    state: JournalState,
    before: Sequence[core_effects.Effect],
    putting: core_effects.FinalizeSegment | core_effects.AdoptFetched,
) -> core_effects.Step:
    """Install the segment, and move segments that overlap it aside."""
    theirs, effects = putting.segment, [*before]
    overlapped = [
        other.first
        for other in (*state.segments.values(), *(d.segment for d in state.damaged.values()))
        if theirs.first < other.first <= theirs.last
    ]
    for first in overlapped:
        # Before the installation: after it no sync would find the overlapping files, and a crash
        # in between would leave them for ever.
        effects.append(core_effects.MoveAside(first))
        state = state.without_segment(first)
    effects.append(putting)
    for first in (theirs.first, *overlapped):
        if first in state.decisions:
            effects.append(core_effects.ForgetDecision(first))
            state = state.without_decision(first)
    return core_effects.Step(state.with_segment(theirs), tuple(effects), Done())


def _ensure_fits(state: JournalState, theirs: Segment) -> None:
    for other in (*state.segments.values(), *(d.segment for d in state.damaged.values())):
        if other.first == theirs.first and other.finalized:
            continue  # compared already
        overlaps = other.first <= theirs.last and theirs.first <= other.last
        if other.finalized and overlaps:
            raise InvariantBroken(f"a peer's {theirs.name()} overlaps {other.name()}")
        if other.first == theirs.first:
            ensure(
                not other.holds(state.committed)
                or theirs.holds(state.committed)
                or _is_behind(state, theirs, state.committed),
                f"replacing {other.first}-{other.last} by {theirs.first}-{theirs.last} would "
                f"discard already-committed txn {state.committed}",
            )


def _is_behind(state: JournalState, theirs: Segment, committed: TxId) -> bool:
    """Return whether we hold a committed edit in a segment after theirs.

    Then our copy of that edit at the place of their segment is an older writer's, and was never
    acknowledged.
    """
    if state.open is not None and theirs.last < state.open.first <= committed:
        return True
    return any(
        other.finalized and other.holds(committed) and theirs.last < other.first
        for other in state.segments.values()
    )
