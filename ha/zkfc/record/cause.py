"""Why a failover happened, in one sentence, from what the former active's controller shows."""

from ha.elector.events import (
    Event,
    LockGone,
    LockSeen,
    OutcomeUnknown,
    QuitRequested,
    RequestRefused,
    SessionExpired,
    SessionSuspended,
)
from ha.notices.model import Member
from ha.zkfc.record.takeover_record import AttemptRecord


def cause_of(attempt: AttemptRecord, own: str, former: Member | None) -> str:
    """The cause as far as anybody knows it.

    ``former`` is what the former active's controller says of itself after the failover; None when
    no controller of it is running, or none that says anything, as Hadoop's does not.
    """
    if attempt.asked is not None and attempt.asked.by_itself:
        return attempt.asked.reason
    if attempt.asked is not None:
        why = f": {attempt.asked.reason}" if attempt.asked.reason else ""
        return f"asked for by {attempt.asked.user} from {attempt.asked.host}{why}"
    previous = attempt.previous
    if attempt.unreadable:
        return "the lock was free, and what is recorded of an earlier active cannot be read"
    if not previous:
        return "the lock was free, and no earlier active is recorded: it ceded, or there was none"
    if previous == own:
        return f"lock vanished; {own} itself was the last active"
    if attempt.seen_ended:
        return f"the process of {previous} ended, as its own zkfc saw"
    if former is None:
        return f"lock vanished: session of {previous} ended"
    if not former.in_election and former.out_because:
        return f"the zkfc of {previous} left the election: {former.out_because}"
    return f"lock vanished: session of {previous} ended, and its zkfc has a new one"


def why_abandoned(event: Event) -> str:
    """Why a takeover was given up before it had succeeded or failed."""
    match event:
        case QuitRequested():
            why = "this controller was asked to cede, or its NameNode became unfit"
        case SessionSuspended():
            why = "the connection to ZooKeeper was lost"
        case SessionExpired():
            why = "the session with ZooKeeper ended, and the lock with it"
        case LockGone() | LockSeen():
            why = "the lock was gone, or another's"
        case OutcomeUnknown(request=request):
            why = f"ZooKeeper did not say whether it carried out: {request}"
        case RequestRefused():
            why = "ZooKeeper refused a request"
        case _:
            why = type(event).__name__
    return f"abandoned: {why}"
