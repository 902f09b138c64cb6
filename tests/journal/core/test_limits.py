"""What one request may not do to a journal, whoever sends it: each limit, at it and beyond."""

from dataclasses import replace

import pytest

from journal.core import requests
from journal.core.limits import MAX_COMMITTED_LEAP, MAX_SERIAL, MAX_SERIAL_LEAP, require_short_lease
from journal.core.machine import step
from journal.core.state import NO_SERIAL, SERIAL_UNKNOWN, JournalState
from journal.errors import BadRequest, JournalError, OutOfSync, WrongNamespace
from journal.model import LAYOUT_VERSION, MAX_EPOCH_LEAP, Epoch, TxId
from tests.journal.core.requests_of import LIFE, NAMESPACE, digest, outcome, records, segment

HELD = JournalState(
    namespace=NAMESPACE,
    incarnation=LIFE,
    promised=Epoch(5),
    writer=Epoch(5),
    serial=10,
    committed=TxId(3),
    claimed=TxId(3),
).with_segment(segment(1, 3, 5, finalized=True))


def refusal(state: JournalState, request: requests.Request) -> JournalError | None:
    found = outcome(state, request)
    reply = found if isinstance(found, JournalError) else found.reply
    return reply if isinstance(reply, JournalError) else None


def beat(epoch: int = 5, serial: int = 11, **more: object) -> requests.Heartbeat:
    return requests.Heartbeat(replace(requests.Stamp(Epoch(epoch), serial), **more))  # type: ignore[arg-type]


REFUSED: dict[str, tuple[JournalState, requests.Request, type[JournalError]]] = {
    "a newEpoch far above the promise": (
        HELD,
        requests.NewEpoch(NAMESPACE, Epoch(6 + MAX_EPOCH_LEAP)),
        BadRequest,
    ),
    "a start far above the promise": (
        HELD,
        requests.StartLogSegment(requests.Stamp(Epoch(2**62), 0), TxId(4), LAYOUT_VERSION),
        BadRequest,
    ),
    "a heartbeat above the promise": (HELD, beat(epoch=6), OutOfSync),
    "a serial far ahead": (HELD, beat(serial=11 + MAX_SERIAL_LEAP), OutOfSync),
    "a first serial far ahead": (
        replace(HELD, serial=NO_SERIAL),
        beat(serial=MAX_SERIAL_LEAP),
        OutOfSync,
    ),
    "a serial that nobody reaches, after a restart": (
        replace(HELD, serial=SERIAL_UNKNOWN),
        beat(serial=MAX_SERIAL + 1),
        OutOfSync,
    ),
    "a committed txid far beyond": (HELD, beat(committed=4 + MAX_COMMITTED_LEAP), BadRequest),
    "another file system": (HELD, beat(namespace_id=1), WrongNamespace),
}
TAKEN: dict[str, tuple[JournalState, requests.Request]] = {
    "the largest leap": (HELD, requests.NewEpoch(NAMESPACE, Epoch(5 + MAX_EPOCH_LEAP))),
    "the largest step of a serial": (HELD, beat(serial=10 + MAX_SERIAL_LEAP)),
    "any serial of an old writer after a restart": (
        replace(HELD, serial=SERIAL_UNKNOWN),
        beat(serial=MAX_SERIAL),
    ),
    "the farthest claim": (HELD, beat(committed=3 + MAX_COMMITTED_LEAP)),
    "a node without edits lags by any number": (
        JournalState(namespace=NAMESPACE, promised=Epoch(5)),
        beat(committed=2**50),
    ),
    "our file system": (HELD, beat(namespace_id=NAMESPACE.namespace_id)),
    "a writer that does not name its file system": (HELD, beat()),
}


@pytest.mark.parametrize(("state", "request_", "why"), REFUSED.values(), ids=list(REFUSED))
def test_it_is_refused_and_changes_nothing(
    state: JournalState, request_: requests.Request, why: type[JournalError]
) -> None:
    found = outcome(state, request_)
    assert isinstance(found if isinstance(found, JournalError) else found.reply, why)
    if not isinstance(found, JournalError):
        assert (found.state, found.effects) == (state, ())


@pytest.mark.parametrize(("state", "request_"), TAKEN.values(), ids=list(TAKEN))
def test_it_is_taken(state: JournalState, request_: requests.Request) -> None:
    assert refusal(state, request_) is None


LATE = requests.Stamp(Epoch(6), 0)
PROMISING: dict[type[requests.Request], bool] = {}
REQUESTS: tuple[tuple[requests.Stamped, bool], ...] = (
    (requests.StartLogSegment(LATE, TxId(4), LAYOUT_VERSION), True),
    (requests.PrepareRecovery(LATE, TxId(1)), True),
    (requests.AcceptRecovery(LATE, segment(4, 6, 6)), True),
    (requests.ResumeSegment(LATE, TxId(4), LAYOUT_VERSION), True),
    (requests.CatchUp(LATE, segment(4, 6, 6), LAYOUT_VERSION), True),
    (requests.Heartbeat(LATE), False),
    (requests.Journal(LATE, TxId(4), TxId(4), 1, records(4, 4, 6)), False),
    (requests.FinalizeLogSegment(LATE, TxId(1), TxId(3), digest(1, 3, 5)), False),
    (requests.PurgeLogs(LATE, TxId(2)), False),
    (requests.Admit(LATE, LIFE, (), TxId(0)), False),
    (requests.PreUpgrade(LATE), False),
    (requests.Upgrade(LATE, NAMESPACE), False),
    (requests.FinalizeUpgrade(LATE), False),
    (requests.RollBack(LATE), False),
    (requests.DiscardSegments(LATE, TxId(2)), False),
)


@pytest.mark.parametrize(
    ("request_", "promises"), REQUESTS, ids=[type(request).__name__ for request, _ in REQUESTS]
)
def test_only_what_a_new_writer_begins_with_promises_its_epoch(
    request_: requests.Stamped, promises: bool
) -> None:
    found = outcome(HELD, request_)
    promised = HELD.promised if isinstance(found, JournalError) else found.state.promised
    assert promised == (6 if promises else 5)


def test_every_request_of_a_writer_is_in_that_table() -> None:
    assert {type(request) for request, _ in REQUESTS} == set(requests.Stamped.__args__)


def test_a_claim_beyond_the_edits_here_decides_nothing() -> None:
    claimed = step(HELD, beat(committed=2**31))
    assert (claimed.state.committed, claimed.state.claimed) == (3, 2**31)
    assert claimed.effects == ()
    told = step(claimed.state, beat(serial=12, committed=3))
    assert not isinstance(told.reply, JournalError)
    assert told.state.claimed == 3


def test_a_read_lease_has_a_limit() -> None:
    require_short_lease(beat(read_lease_micros=60_000_000), 60_000_000)
    with pytest.raises(BadRequest, match="grants at most 60 s"):
        require_short_lease(beat(read_lease_micros=60_000_001), 60_000_000)
