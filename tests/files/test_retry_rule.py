"""When a call to NameNodes is made again, and where."""

import pytest

from files import errors
from files.retry_rule import Again, Failure, Tries, again, failure_of
from ha.rpc import java_names
from ha.rpc.errors import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    MalformedFrame,
    RemoteFault,
    RpcError,
)

FAILURES: dict[str, tuple[RpcError | RemoteFault, Failure]] = {
    "no connection": (ConnectFailed("refused"), Failure.NOT_CONNECTED),
    "a lost one": (ConnectionLost("closed by the peer"), Failure.UNANSWERED),
    "no answer": (DeadlineExceeded("within 1 s"), Failure.UNANSWERED),
    "no sense": (MalformedFrame("garbage"), Failure.UNANSWERED),
    "a standby": (RemoteFault(java_names.STANDBY_EXCEPTION, "no"), Failure.NOT_ACTIVE),
    "not yet": (RemoteFault(java_names.RETRIABLE, "later"), Failure.LATER),
}
REFUSALS = {
    java_names.FILE_NOT_FOUND: errors.NotFound,
    java_names.FILE_ALREADY_EXISTS: errors.AlreadyExists,
    java_names.ALREADY_BEING_CREATED: errors.AlreadyExists,
    java_names.ACCESS_CONTROL: errors.Denied,
    java_names.NAMESPACE_QUOTA_EXCEEDED: errors.QuotaExceeded,
    java_names.SPACE_QUOTA_EXCEEDED: errors.QuotaExceeded,
    java_names.TYPE_QUOTA_EXCEEDED: errors.QuotaExceeded,
    java_names.SAFE_MODE_EXCEPTION: errors.InSafeMode,
    java_names.LEASE_EXPIRED: errors.LeaseLost,
    java_names.IO_EXCEPTION: errors.Refused,
}
STEPS = {
    "the other at once": (Failure.NOT_ACTIVE, Tries(), Again(Tries(1), move=True, seconds=0.0)),
    "both asked": (Failure.NOT_ACTIVE, Tries(1), Again(Tries(2), move=True, seconds=0.1)),
    "twice as long": (Failure.NOT_CONNECTED, Tries(2), Again(Tries(3), move=True, seconds=0.2)),
    "a limit": (Failure.NOT_CONNECTED, Tries(40), Again(Tries(41), move=True, seconds=3.0)),
    "for ever": (Failure.NOT_ACTIVE, Tries(10**6), Again(Tries(10**6 + 1), True, 3.0)),
    "it may be done": (
        Failure.UNANSWERED, Tries(), Again(Tries(1, unanswered=True), move=True, seconds=0.0)
    ),
    "it still may": (
        Failure.NOT_ACTIVE, Tries(1, unanswered=True),
        Again(Tries(2, unanswered=True), move=True, seconds=0.1),
    ),
    "later, there": (Failure.LATER, Tries(1), Again(Tries(1, 1), move=False, seconds=0.1)),
    "later still": (
        Failure.LATER, Tries(0, 3, unanswered=True),
        Again(Tries(0, 4, unanswered=True), move=False, seconds=0.8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure(name: str) -> None:
    problem, expected = FAILURES[name]
    assert failure_of(problem) is expected


@pytest.mark.parametrize("java_class", REFUSALS)
def test_a_refusal_has_its_class_and_one_line(java_class: str) -> None:
    found = failure_of(RemoteFault(java_class, "not you\nmore\n\tat java.Stack"))
    assert type(found) is REFUSALS[java_class]
    assert (found.java_class, str(found)) == (java_class, "not you")


@pytest.mark.parametrize("name", STEPS)
def test_a_step(name: str) -> None:
    failure, tries, expected = STEPS[name]
    assert again(failure, tries, namenodes=2, chance=0.5) == expected


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 0.05), (1.0, 0.15)])
def test_waits_are_spread(chance: float, seconds: float) -> None:
    assert again(Failure.LATER, Tries(), namenodes=2, chance=chance).seconds == pytest.approx(
        seconds
    )
