"""Decides about each request to a journal: ``step(state, request) -> Step``.

The rules: docs/reference/journal-node.md.
"""

from dataclasses import replace
from typing import Final, assert_never

from journal.core import learner, purge, recovery, rejoin, requests, segments, sync, upgrade
from journal.core.admission import Admitted, admit, require_formatted
from journal.core.effects import FormatStorage, PersistReadLease, Step
from journal.core.learner import require_vote
from journal.core.replies import Done, JournalStateReply, Manifest
from journal.core.state import JournalState
from journal.errors import BadRequest, Fenced, InvariantBroken, Rejected, StorageFailed
from journal.model import NamespaceInfo, Segment

_WRITING: Final = (
    requests.StartLogSegment,
    requests.Journal,
    requests.Heartbeat,
    requests.ResumeSegment,
    requests.CatchUp,
)
"""Requests that a writer sends only after the read leases of older writers have ended."""

_PROMISING: Final = (
    requests.StartLogSegment,
    requests.PrepareRecovery,
    requests.AcceptRecovery,
    requests.ResumeSegment,
    requests.CatchUp,
)
"""Requests with which a node that missed newEpoch promises the epoch: a writer sends them after
a majority has promised it."""


def step(state: JournalState, request: requests.Request) -> Step:  # noqa: C901, PLR0912 - one case per request
    """Decide about one request.

    A refusal that changes the state is the Step's reply.

    Raises:
        Rejected: the request is refused and changes nothing.
        InvariantBroken: carrying it out could lose an acknowledged edit; nothing changes.
    """
    match request:
        case requests.Format():
            return _format(state, request)
        case requests.GetJournalState():
            require_formatted(state)
            require_vote(state)
            return Step(state, (), JournalStateReply(state.promised))
        case requests.GetEditLogManifest():
            require_formatted(state)
            require_vote(state)
            return Step(state, (), manifest(state, request))
        case requests.PeekRecovery(first):
            return recovery.peek(state, first)
        case requests.NewEpoch():
            return recovery.new_epoch(state, request)
        case requests.AdoptRecovery():
            return recovery.adopt(state, request)
        case requests.AdmitFounding() | requests.AdmitByVoters():
            require_formatted(state)
            return learner.admit_without_writer(state, request)
        case requests.ReportDamage(first, why):
            return Step(state.with_damage(first, why), (), Done())
        case requests.LearnDigest():
            return Step(state, (), Done())
        case requests.CanRollBack():
            return Step(state, (), upgrade.can_roll_back(state, request))
        case requests.GetJournalCTime():
            return Step(state, (), upgrade.ctime(state))
        case requests.AdoptFinalized():
            return sync.adopt_finalized(state, request)
        case requests.AdoptCatchUp():
            return rejoin.adopt(state, request)
        case (
            requests.StartLogSegment()
            | requests.Journal()
            | requests.Heartbeat()
            | requests.FinalizeLogSegment()
            | requests.PrepareRecovery()
            | requests.AcceptRecovery()
            | requests.PurgeLogs()
            | requests.PreUpgrade()
            | requests.Upgrade()
            | requests.FinalizeUpgrade()
            | requests.RollBack()
            | requests.DiscardSegments()
            | requests.ResumeSegment()
            | requests.CatchUp()
            | requests.Admit()
        ):
            return _handle_stamped(state, request)
    assert_never(request)


def _handle_stamped(state: JournalState, request: requests.Stamped) -> Step:
    """Admit the writer, then carry out its request; the admission counts even if that fails."""
    admitted = admit(state, request.stamp, promises=isinstance(request, _PROMISING))
    if admitted.refusal is not None:
        return Step(admitted.state, admitted.effects, admitted.refusal)
    admitted = _keep_read_lease(admitted, request)
    try:
        done = _carry_out(admitted.state, request)
    except (Rejected, InvariantBroken, StorageFailed) as refusal:
        # StorageFailed: our copy is damaged, but the disk works and the journal goes on.
        return Step(admitted.state, admitted.effects, refusal)
    return Step(done.state, (*admitted.effects, *done.effects), done.reply)


def _keep_read_lease(admitted: Admitted, request: requests.Stamped) -> Admitted:
    """Keep the longest read lease that a writer may hold, for which the next writer must wait.

    A writer that writes has waited for the leases of its predecessors, so its own lease replaces a
    longer one.
    """
    lease, known = request.stamp.read_lease_micros, admitted.state.read_lease_micros
    if lease == known or (lease < known and not isinstance(request, _WRITING)):
        return admitted
    state = replace(admitted.state, read_lease_micros=lease)
    return replace(admitted, state=state, effects=(*admitted.effects, PersistReadLease(lease)))


def _carry_out(state: JournalState, request: requests.Stamped) -> Step:  # noqa: C901 - flat dispatch
    if isinstance(request, requests.PrepareRecovery | requests.AcceptRecovery):
        require_vote(state)
    match request:
        case requests.StartLogSegment():
            return learner.start_segment_with_vote(state, request)
        case requests.Journal():
            return segments.journal(state, request)
        case requests.Heartbeat():
            return learner.strip_vote(state, Step(state, (), Done()))
        case requests.FinalizeLogSegment():
            return learner.strip_vote(state, segments.finalize(state, request))
        case requests.Admit():
            return learner.admit_learner(state, request)
        case requests.PrepareRecovery():
            return recovery.prepare(state, request.first)
        case requests.AcceptRecovery():
            return recovery.accept(state, request)
        case requests.PurgeLogs():
            return purge.purge(state, request)
        case (
            requests.PreUpgrade()
            | requests.Upgrade()
            | requests.FinalizeUpgrade()
            | requests.RollBack()
            | requests.DiscardSegments()
        ):
            return upgrade.step(state, request)
        case requests.ResumeSegment():
            return rejoin.resume(state, request)
        case requests.CatchUp():
            return rejoin.catch_up(state, request)
    assert_never(request)


def _format(state: JournalState, request: requests.Format) -> Step:
    """Format the journal; with ``force``, only if it is still as the operator saw it."""
    if request.namespace.namespace_id == 0 or not request.namespace.cluster_id:
        raise BadRequest("cannot format for a namespace without an id and a cluster id")
    if (state.namespace is not None or state.occupied) and not request.force:
        raise BadRequest(
            "Can't format the storage directory because the current directory is not empty."
        )
    if state.namespace is not None:
        _require_same_journal(state, state.namespace, request)
    fresh = JournalState(
        namespace=request.namespace,
        incarnation=request.incarnation,
        learner=not request.founding,
    )
    effect = FormatStorage(request.namespace, request.incarnation, request.founding)
    return Step(fresh, (effect,), Done())


def _require_same_journal(
    state: JournalState, ours: NamespaceInfo, request: requests.Format
) -> None:
    """Raise unless the request names this journal's file system and its present promise."""
    if request.seen_promised is None:
        raise BadRequest(
            "a format by force must say which promise its caller has seen here; nothing was changed"
        )
    if request.seen_namespace_id != ours.namespace_id:
        raise BadRequest(
            f"a format by force must name the file system of the journal that it destroys; it says "
            f"{request.seen_namespace_id}; nothing was changed"
        )
    if state.promised > request.seen_promised:
        raise Fenced(
            f"epoch {state.promised} was promised since the caller looked and saw "
            f"{request.seen_promised}: a writer is at work here",
            promised=state.promised,
        )


def manifest(state: JournalState, request: requests.GetEditLogManifest) -> Manifest:
    """Return the segments that hold ``since`` or later edits.

    An abandoned in-progress segment is listed only while it is the newest: an older one was
    recovered without us, and its tail may never have been acknowledged.

    See docs/reference/journal-node.md#manifest.
    """
    listed: list[Segment] = [
        segment
        for segment in state.segments.values()
        if segment.finalized and segment.last >= request.since
    ]
    if request.in_progress_ok:
        newest = _newest_in_progress(state)
        if newest is not None and newest.last >= request.since:
            listed.append(newest)
    return Manifest(tuple(listed), state.committed, state.purged)


def _newest_in_progress(state: JournalState) -> Segment | None:
    if state.open is not None:
        return None if state.open.empty else state.open.as_segment()
    newest = None if state.newest is None else state.find(state.newest)
    return None if newest is None or newest.finalized else newest
