"""Learners: JournalNodes without a vote, which may have lost their promises and edits.

A JournalNode with a wiped disk answers with promise 0 and no edits.  Hadoop counts it, and with two
such nodes of three acknowledged edits are lost.  Ours gets edits like the others, and gets its vote
back when a writer that has a majority without it finds that it holds all edits.

See docs/reference/quorum-journal.md#learners.
"""

from dataclasses import replace

from journal.core import segments
from journal.core.effects import Effect, PersistAdmission, Step
from journal.core.purge import purge_before
from journal.core.replies import Done
from journal.core.requests import Admit, AdmitByVoters, AdmitFounding, StartLogSegment
from journal.core.state import JournalState
from journal.errors import BadRequest, Fenced, NotAdmitted, OutOfSync
from journal.model import NO_TXID, Epoch, Segment, TxId


def require_vote(state: JournalState) -> None:
    """Raise NotAdmitted if this node is a learner, whose answer must not count."""
    if state.learner:
        raise _no_vote(state)


def _no_vote(state: JournalState) -> NotAdmitted:
    return NotAdmitted(
        f"incarnation {state.incarnation[:8]} of this node has no vote until it is admitted; "
        "nnha journal status says what it waits for, and nnha journal admit --founding gives the "
        "first votes where no node has one"
    )


def start_segment_with_vote(state: JournalState, request: StartLogSegment) -> Step:
    """Begin a segment; a learner refuses, and keeps the writer's epoch as ``start_heard``.

    A writer begins a segment only after its recovery, so it sends no AcceptRecovery any more.
    """
    if not state.learner:
        return segments.start_segment(state, request)
    return Step(replace(state, start_heard=request.stamp.epoch), (), _no_vote(state))


def strip_vote(state: JournalState, done: Step) -> Step:
    """Return the step; for a learner with NotAdmitted, which no writer counts, for Done."""
    if not state.learner or not isinstance(done.reply, Done):
        return done
    reply = NotAdmitted(f"done, but incarnation {state.incarnation[:8]} of this node has no vote")
    return Step(done.state, done.effects, reply)


def admit_without_writer(state: JournalState, request: AdmitFounding | AdmitByVoters) -> Step:
    """Give the vote back on the request of an operator or of the voters."""
    if isinstance(request, AdmitFounding):
        return admit_founding(state, request)
    return admit_by_voters(state, request)


def admit_founding(state: JournalState, request: AdmitFounding) -> Step:
    _require_incarnation(state, request.incarnation)
    return _admit(state, PersistAdmission(state.incarnation, None))


def admit_learner(state: JournalState, request: Admit) -> Step:
    """Give the vote back on a writer's request.

    Raises:
        NotAdmitted: the request is for another incarnation.
        OutOfSync: this node lacks edits.
    """
    _require_incarnation(state, request.incarnation)
    return _admit_if_complete(
        state, request.stamp.epoch, request.required, request.committed, request.purged
    )


def admit_by_voters(state: JournalState, request: AdmitByVoters) -> Step:
    """Give the vote back on the voters' answers, under a writer that admits no learners.

    Raises:
        NotAdmitted: it is for another incarnation, or no writer has begun a segment since the load.
        Fenced: this node has promised another epoch than the voters.
        OutOfSync: this node lacks edits, or the voters have not finalized them.
    """
    _require_incarnation(state, request.incarnation)
    if state.promised != request.epoch:
        raise Fenced(
            f"the voters have promised {request.epoch}, this learner {state.promised}",
            promised=state.promised,
        )
    if state.learner and state.start_heard != request.epoch:
        raise NotAdmitted(
            f"epoch {request.epoch} has begun no segment since this learner was loaded"
        )
    final = request.required[-1].last if request.required else NO_TXID
    if final < request.reached:
        raise OutOfSync(
            f"the voters held edits up to {request.reached}, and have finalized those up to "
            f"{max(final, 0)}: it takes a log roll",
            expected_txid=TxId(max(final, 0) + 1),
        )
    return _admit_if_complete(
        state, request.epoch, request.required, request.reached, request.purged
    )


def _admit_if_complete(
    state: JournalState,
    epoch: Epoch,
    required: tuple[Segment, ...],
    until: TxId,
    purged: TxId,
) -> Step:
    """Give the vote back if the required segments and all edits up to ``until`` are held."""
    before: tuple[Effect, ...] = ()
    if state.learner:
        if purged > state.purged:
            # Adopt the purge point.  The voter that reported it may lose its disk later, and then
            # the next learner would need edits that no node has.
            learned = purge_before(state, purged)
            state, before = learned.state, learned.effects
        held = _find_last_held(state, required)
        if held < until:
            raise OutOfSync(
                f"{until} is committed, and this learner holds everything up to {held}",
                expected_txid=TxId(held + 1),
            )
    done = _admit(state, PersistAdmission(state.incarnation, epoch))
    return replace(done, effects=(*before, *done.effects))


def _require_incarnation(state: JournalState, incarnation: str) -> None:
    if incarnation != state.incarnation:
        raise NotAdmitted(
            f"this is incarnation {state.incarnation}, and {incarnation[:64]!r} is to be admitted"
        )


def _admit(state: JournalState, effect: PersistAdmission) -> Step:
    if not state.learner:
        return Step(state, (), Done())
    return Step(replace(state, learner=False), (effect,), Done())


def _find_last_held(state: JournalState, required: tuple[Segment, ...]) -> TxId:
    """Return the last edit up to which we hold all, in the required segments and after them.

    Raises:
        OutOfSync: we lack a required segment.
    """
    chain: set[TxId] = set()
    held: TxId | None = None
    for wanted in required:
        if held is not None and wanted.first != held + 1:
            let_go_between = held < wanted.first <= state.purged
            if not let_go_between:
                raise BadRequest(
                    f"segment {wanted.first} is required behind {held}: the voters list nothing "
                    "between"
                )
        if _is_needed(state, wanted, newest=required[-1]):
            _require_held(state, wanted)
            chain.add(wanted.first)
        held = wanted.last
    if held is None:
        held = TxId(0 if state.open is None else state.open.first - 1)
    while (behind := state.find(TxId(held + 1))) is not None and behind.finalized:
        chain.add(behind.first)
        held = behind.last
    if state.open is not None and state.open.first == held + 1:
        held = TxId(state.open.next_txid - 1)
    _require_no_other(state, chain, held)
    return held


def _is_needed(state: JournalState, wanted: Segment, newest: Segment) -> bool:
    """Return whether the learner must hold ``wanted`` before it gets its vote.

    It need not if a writer has purged that segment and a voter has just missed the purge.
    """
    held = state.find(wanted.first)
    if wanted.last >= state.purged or (held is not None and held.finalized):
        return True
    # An in-progress copy before the purge point is not replaced by a peer's finalized one.  A
    # purge keeps the newest segment, or the journal would seem empty.
    return wanted == newest and state.last_written <= wanted.last


def _require_held(state: JournalState, wanted: Segment) -> None:
    ours = state.find(wanted.first)
    if ours is None or not ours.finalized or ours.last != wanted.last:
        raise OutOfSync(f"this learner lacks {wanted.name()}", expected_txid=wanted.first)
    if not wanted.digest:
        return  # Hadoop's JournalNodes report only the end of a segment
    if not ours.digest:
        raise OutOfSync(f"{wanted.name()} has not been read yet", expected_txid=wanted.first)
    if ours.digest != wanted.digest:
        raise OutOfSync(
            f"this learner has other edits in {wanted.name()}: digest {ours.digest.hex()[:16]} "
            f"here, {wanted.digest.hex()[:16]} on the voters",
            expected_txid=wanted.first,
        )


def _require_no_other(state: JournalState, chain: set[TxId], held: TxId) -> None:
    """Raise OutOfSync if another segment overlaps the voters' ones: readers would get it, too."""
    if not chain:
        return
    for segment in state.segments.values():
        if not segment.finalized or segment.first in chain or segment.last < state.purged:
            continue
        if segment.first <= held and segment.last >= min(chain):
            raise OutOfSync(f"this learner has {segment.name()}, which no voter has")
