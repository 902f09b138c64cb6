"""Derives the cause of a takeover in one sentence, and its kind.  Pure."""

from collections.abc import Iterable

from ha.elector import events
from ha.notices.model import FailoverKind, FailoverResult, HistoryEntry, Member
from ha.zkfc.record.takeover_record import AttemptRecord


def cause_of(attempt: AttemptRecord, own: str, former: Member | None) -> str:
    """Return the cause as far as it is known.

    ``former`` is the member that the former active's controller published after the failover; None
    if it does not run, or is Hadoop's, which publishes none.
    """
    if attempt.asked is not None and attempt.asked.by_itself:
        return attempt.asked.reason
    if attempt.asked is not None:
        why = f": {attempt.asked.reason}" if attempt.asked.reason else ""
        return f"asked for by {attempt.asked.user} from {attempt.asked.host}{why}"
    if attempt.witnessed:
        return f"witnessed: {attempt.witnessed}"
    previous = attempt.previous
    if attempt.unreadable:
        return "the lock was free, and what is recorded of an earlier active cannot be read"
    if not previous:
        return "the lock was free, and no earlier active is recorded: it ceded, or there was none"
    if previous == own:
        return f"the lock was free, and {own} itself was the last active"
    if attempt.seen_ended:
        return f"the process of {previous} ended, as its own zkfc saw"
    if former is None:
        return f"the lock was gone: the session of {previous} ended"
    if not former.in_election and former.out_because:
        return f"the zkfc of {previous} left the election: {former.out_because}"
    return f"the lock was gone: the session of {previous} ended, and its zkfc has a new one"


def predecessor_of(attempt: AttemptRecord, own: str, active_before: str | None) -> str:
    """Return the NameNode that was active before; empty if unknown.

    A breadcrumb of our own NameNode may be of a failed attempt.  Then it is ``active_before``, the
    NameNode that became active last by the history.
    """
    if attempt.previous == own and active_before:
        return active_before
    return attempt.previous


def kind_of(attempt: AttemptRecord, own: str, active_before: str | None) -> FailoverKind:
    """Return the kind: automatic, requested, the first election, or the same NameNode again.

    ``active_before`` is the NameNode that became active last by the history (empty: none ever did;
    None: unknown).  It is used without a breadcrumb, which a NameNode that ceded does not leave.
    """
    if attempt.kind is not FailoverKind.AUTO or not attempt.succeeded or attempt.unreadable:
        return attempt.kind
    before = attempt.previous or active_before
    if before == "":
        return FailoverKind.FIRST
    return FailoverKind.REJOINED if before == own else FailoverKind.AUTO


def newest_active(entries: Iterable[HistoryEntry]) -> str:
    """Return the NameNode that became active last by a history, newest first; empty: none did."""
    for one in entries:
        if one.record is not None and one.record.result is FailoverResult.SUCCEEDED:
            return one.record.namenode
    return ""


def why_abandoned(event: events.Event) -> str:
    """Return why a takeover was abandoned before it succeeded or failed."""
    match event:
        case events.QuitRequested():
            why = "this controller was asked to cede, or its NameNode became unfit"
        case events.SessionSuspended():
            why = "the connection to ZooKeeper was lost"
        case events.SessionExpired():
            why = "the session with ZooKeeper ended, and the lock with it"
        case events.LockGone() | events.LockSeen():
            why = "the lock was gone, or another's"
        case events.OutcomeUnknown(request=request):
            why = f"ZooKeeper did not say whether it carried out: {request}"
        case events.RequestRefused():
            why = "ZooKeeper refused a request"
        case _:
            why = type(event).__name__
    return f"abandoned: {why}"
