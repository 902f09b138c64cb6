"""What a learner does, what it refuses, and what it must hold before it votes again."""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core import requests
from journal.core.effects import PersistAdmission
from journal.core.machine import step
from journal.core.replies import Done
from journal.core.state import JournalState, OpenSegment
from journal.errors import BadRequest, JournalError, NotAdmitted, OutOfSync
from journal.model import NO_TXID, Epoch, Segment, TxId
from journal.storage.files import RealFiles
from journal.storage.incarnation import Incarnation, read_incarnation, write_incarnation
from tests.journal.core import requests_of
from tests.journal.core.requests_of import digest, segment

FINAL = segment(1, 3, finalized=True)
NEXT = segment(4, 6, finalized=True)
BEHIND = segment(7, 9, finalized=True)
WHOLE = segment(1, 9, finalized=True)
LEARNER = JournalState(namespace=requests_of.NAMESPACE, incarnation=requests_of.LIFE, learner=True)


def learner(
    *segments: Segment, first: int = 0, last: int = 0, purged: int = NO_TXID
) -> JournalState:
    state = replace(LEARNER, promised=Epoch(1), writer=Epoch(1), purged=TxId(purged))
    for held in segments:
        state = state.with_segment(held)
    if first:
        opened = OpenSegment(TxId(first), TxId(last + 1), digest(first, last), Epoch(1))
        state = replace(state, open=opened)
    return state


def admit(
    *required: Segment, committed: int = 0, incarnation: str = requests_of.LIFE
) -> requests.Admit:
    return requests.Admit(requests_of.Writer(1).stamp(), incarnation, required, TxId(committed))


def refusal(state: JournalState, request: requests.Request) -> JournalError | None:
    found = requests_of.outcome(state, request)
    reply = found if isinstance(found, JournalError) else found.reply
    return reply if isinstance(reply, JournalError) else None


VOTES: dict[str, requests.Request] = {
    "what was promised": requests.GetJournalState(),
    "a promise": requests_of.Writer(2).new_epoch(),
    "the newest segment's state": requests.PrepareRecovery(requests_of.Writer(1).stamp(), TxId(1)),
    "a recovery": requests.AcceptRecovery(requests_of.Writer(1).stamp(), segment(1, 3)),
    "a segment's start": requests_of.Writer(1).start(7),
    "a list for readers": requests.GetEditLogManifest(TxId(1)),
}


@pytest.mark.parametrize("request_", VOTES.values(), ids=list(VOTES))
def test_a_learner_refuses_whatever_counts(request_: requests.Request) -> None:
    state = learner(FINAL)
    assert isinstance(refusal(state, request_), NotAdmitted)
    assert refusal(replace(state, learner=False), request_) is None


def test_a_refused_call_teaches_a_learner_the_writers_epoch() -> None:
    found = step(learner(FINAL), requests_of.Writer(5).start(4))
    assert isinstance(found.reply, NotAdmitted)
    assert found.state.promised == 5
    assert found.state.open is None


def test_a_learner_is_fed() -> None:
    done = step(learner(first=4, last=4), requests_of.Writer(1, 0).batch(4, 5, 6))
    assert done.reply == Done()
    assert done.state.last_written == 6


def test_a_learner_hears_a_heartbeat_and_renews_no_lease() -> None:
    """Refuse: it may have promised a newer writer before it forgot, so its yes proves nothing."""
    done = step(learner(FINAL), requests.Heartbeat(requests_of.Writer(1, committed=3).stamp()))
    assert isinstance(done.reply, NotAdmitted)
    assert done.state.committed == 3


def test_a_learner_finalizes_and_does_not_say_yes() -> None:
    """Answer no, so that no writer, not even a Java one, counts it."""
    done = step(learner(segment(4, 6)), requests_of.Writer(1).finalize(4, 6))
    assert isinstance(done.reply, NotAdmitted)
    assert done.state.segments[TxId(4)].finalized
    assert done.effects
    other = step(learner(segment(4, 6)), requests_of.Writer(1).finalize(4, 6, 2))
    assert isinstance(other.reply, OutOfSync)


ADMITTED = {
    "an empty journal": (learner(), admit()),
    "finalized segments": (learner(FINAL, NEXT), admit(FINAL, NEXT, committed=6)),
    "and the open one": (learner(FINAL, first=4, last=6), admit(FINAL, committed=6)),
    "more than is known": (learner(FINAL, NEXT, first=7, last=9), admit(FINAL, committed=8)),
    "only the open one": (learner(first=4, last=6), admit(committed=6)),
    "purged ones are not asked for": (learner(NEXT), admit(NEXT, committed=6)),
    "an unclosed leftover": (learner(FINAL, segment(9, 9)), admit(FINAL, committed=3)),
    "an unclosed leftover inside the others": (
        learner(FINAL, NEXT, segment(5, 5)),
        admit(FINAL, NEXT, committed=6),
    ),
    "one that the voters have let go of": (learner(FINAL, NEXT), admit(NEXT, committed=6)),
    "one behind a hole": (learner(FINAL, BEHIND), admit(FINAL, committed=3)),
    "one across the others, let go of": (
        learner(WHOLE, segment(2, 5, finalized=True), purged=6),
        admit(WHOLE, committed=9),
    ),
}


@pytest.mark.parametrize(("state", "request_"), ADMITTED.values(), ids=list(ADMITTED))
def test_a_learner_that_holds_everything_is_admitted(
    state: JournalState, request_: requests.Admit
) -> None:
    done = step(state, request_)
    assert done.reply == Done()
    assert done.effects == (PersistAdmission(requests_of.LIFE, Epoch(1)),)
    assert not done.state.learner
    again = step(done.state, replace(request_, stamp=requests_of.Writer(1, 7).stamp()))
    assert (again.reply, again.effects) == (Done(), ())


MISSING: dict[str, tuple[JournalState, requests.Admit, type[JournalError]]] = {
    "another incarnation": (learner(), admit(incarnation="f" * 32), NotAdmitted),
    "a segment": (learner(FINAL), admit(FINAL, NEXT), OutOfSync),
    "its end": (learner(segment(1, 2, finalized=True)), admit(FINAL), OutOfSync),
    "its contents": (learner(segment(1, 3, 2, finalized=True)), admit(FINAL), OutOfSync),
    "its finalization": (learner(segment(1, 3)), admit(FINAL), OutOfSync),
    "its digest": (learner(replace(FINAL, digest=b"")), admit(FINAL), OutOfSync),
    "what is committed": (learner(FINAL, first=4, last=5), admit(FINAL, committed=6), OutOfSync),
    "what is committed, all of it": (learner(), admit(committed=3), OutOfSync),
    "the middle": (learner(FINAL, first=7, last=9), admit(FINAL, committed=9), OutOfSync),
    "an unclosed segment is none": (
        learner(FINAL, segment(4, 6)),
        admit(FINAL, committed=6),
        OutOfSync,
    ),
    "one history": (
        learner(FINAL, NEXT, segment(5, 6, finalized=True)),
        admit(FINAL, NEXT),
        OutOfSync,
    ),
    "one history, in its first segment": (
        learner(FINAL, NEXT, segment(2, 3, finalized=True)),
        admit(FINAL, NEXT),
        OutOfSync,
    ),
    "one history, where what is asked for begins": (
        learner(NEXT, segment(2, 4, finalized=True)),
        admit(NEXT),
        OutOfSync,
    ),
    "one history, at the purge point": (
        learner(WHOLE, segment(2, 6, finalized=True), purged=6),
        admit(WHOLE),
        OutOfSync,
    ),
    "one history, and no more than that": (
        learner(FINAL, segment(2, 5, finalized=True)),
        admit(FINAL, committed=3),
        OutOfSync,
    ),
    "damage": (learner(FINAL).with_damage(TxId(1), "a test said so"), admit(FINAL), OutOfSync),
    "a hole in what is asked for": (
        learner(FINAL, segment(5, 6, finalized=True)),
        admit(FINAL, segment(5, 6, finalized=True)),
        BadRequest,
    ),
}


@pytest.mark.parametrize(("state", "request_", "kind"), MISSING.values(), ids=list(MISSING))
def test_a_learner_that_lacks_something_is_not_admitted(
    state: JournalState, request_: requests.Admit, kind: type[JournalError]
) -> None:
    assert type(refusal(state, request_)) is kind
    assert state.learner


LACKING: dict[str, tuple[JournalState, requests.Admit, int | None]] = {
    "no purge, one in the middle": (
        learner(FINAL, BEHIND),
        admit(FINAL, NEXT, BEHIND, committed=9),
        4,
    ),
    "one that ends at the purge point": (
        learner(BEHIND, purged=6),
        admit(NEXT, BEHIND, committed=9),
        4,
    ),
    "one that ends before it": (learner(BEHIND, purged=7), admit(NEXT, BEHIND, committed=9), None),
    "all, with the newest": (learner(purged=10), admit(FINAL, NEXT, committed=6), 4),
    "the newest's finalization": (learner(segment(4, 6), purged=10), admit(NEXT, committed=6), 4),
    "the newest, with edits behind it": (
        learner(first=7, last=9, purged=7),
        admit(NEXT, committed=9),
        None,
    ),
}


@pytest.mark.parametrize(("state", "request_", "first"), LACKING.values(), ids=list(LACKING))
def test_what_was_let_go_of_may_be_lacking_unless_nothing_newer_is_held(
    state: JournalState, request_: requests.Admit, first: int | None
) -> None:
    found = refusal(state, request_)
    if first is None:
        assert found is None
    else:
        assert isinstance(found, OutOfSync)
        assert found.expected_txid == first


def test_a_segment_that_was_not_read_yet_is_not_said_to_differ() -> None:
    found = refusal(learner(replace(FINAL, digest=b"")), admit(FINAL))
    assert "has not been read yet" in str(found)


def test_an_operators_word_admits_the_incarnation_that_he_means() -> None:
    done = step(learner(), requests.AdmitFounding(requests_of.LIFE))
    assert done.effects == (PersistAdmission(requests_of.LIFE, None),)
    assert isinstance(refusal(learner(), requests.AdmitFounding("f" * 32)), NotAdmitted)


@pytest.mark.parametrize("admitted", ["founding", "no", "17"])
def test_an_incarnation_is_bound_to_its_very_file(tmp_path: Path, admitted: str) -> None:
    files, incarnation = RealFiles(), Incarnation(requests_of.LIFE, admitted)
    write_incarnation(files, tmp_path, incarnation)
    assert read_incarnation(files, tmp_path) == incarnation
    path = tmp_path / "incarnation"
    text = path.read_bytes()
    moved = path.rename(tmp_path / "moved")
    path.write_bytes(text)
    assert "copied" in str(read_incarnation(files, tmp_path))
    moved.rename(path)
    assert read_incarnation(files, tmp_path) == incarnation


@pytest.mark.parametrize(
    "text", [b"", b"id=1\n", b"\xff\x00", b"id=" + b"g" * 32 + b"\nadmitted=founding\n"]
)
def test_an_incarnation_that_cannot_be_read_is_none(text: bytes) -> None:
    files, root = requests_of.MemoryFiles(), Path("/j")
    files.create(root / "current/incarnation").append(text)
    assert "cannot be read" in str(read_incarnation(files, root / "current"))


def test_learning_and_admission_outlive_a_restart(tmp_path: Path) -> None:
    journal = requests_of.LocalJournal(tmp_path)
    journal.ask(
        requests.Format(requests_of.NAMESPACE, founding=False, incarnation=requests_of.LIFE)
    )
    for _ in range(2):
        journal.close()
        journal = requests_of.LocalJournal(tmp_path)
        assert (journal.state.learner, journal.state.incarnation) == (True, requests_of.LIFE)
    with pytest.raises(NotAdmitted):
        journal.ask(requests_of.Writer(1).start(1))
    journal.close()
    journal = requests_of.LocalJournal(tmp_path)
    journal.ask(admit())
    journal.close()
    journal = requests_of.LocalJournal(tmp_path)
    assert (journal.state.learner, journal.state.incarnation) == (False, requests_of.LIFE)
    assert "admitted=1\n" in (tmp_path / "current/incarnation").read_text()
