"""When a learner may vote by the voters' word: every condition, and what fails without it."""

from dataclasses import replace

import pytest

from journal.core import voters
from journal.core.effects import PersistAdmission, PurgeFiles
from journal.core.machine import step
from journal.core.replies import Done
from journal.core.requests import AdmitByVoters
from journal.core.state import JournalState
from journal.core.voters import Voter, VoterBaseline
from journal.errors import BadRequest, Fenced, JournalError, NotAdmitted, OutOfSync, Unavailable
from journal.model import NO_TXID, Epoch, Segment, TxId
from tests.journal.core.requests_of import LIFE, NAMESPACE, Writer, outcome, segment

FINAL = segment(1, 3, finalized=True)
NEXT = segment(4, 6, finalized=True)
BEHIND = segment(7, 9, finalized=True)
NODES = 3


def learner(*held: Segment, heard: int = 1) -> JournalState:
    state = JournalState(
        namespace=NAMESPACE,
        incarnation=LIFE,
        learner=True,
        promised=Epoch(1),
        start_heard=Epoch(heard),
    )
    for one in held:
        state = state.with_segment(one)
    return state


def asked(*required: Segment, reached: int, epoch: int = 1, life: str = LIFE) -> AdmitByVoters:
    return AdmitByVoters(life, Epoch(epoch), required, TxId(reached))


ADMITTED = {
    "it holds what the voters have finalized": (
        learner(FINAL, NEXT),
        asked(FINAL, NEXT, reached=6),
    ),
    "and more": (learner(FINAL, NEXT, BEHIND), asked(FINAL, NEXT, reached=5)),
    "nobody has an edit": (learner(), asked(reached=NO_TXID)),
    "voters of Hadoop's tell no digests": (
        learner(FINAL, NEXT),
        asked(replace(FINAL, digest=b""), replace(NEXT, digest=b""), reached=6),
    ),
}
REFUSED = {
    "the mark lies in a segment that is open yet": (
        learner(FINAL, NEXT),
        asked(FINAL, reached=5),
        OutOfSync,
    ),
    "its own open copy is no proof": (
        learner(FINAL, segment(4, 6)),
        asked(FINAL, reached=5),
        OutOfSync,
    ),
    "it lacks a segment": (learner(FINAL), asked(FINAL, NEXT, reached=6), OutOfSync),
    "it has other edits": (
        learner(FINAL, segment(4, 6, 2, finalized=True)),
        asked(FINAL, NEXT, reached=6),
        OutOfSync,
    ),
    "it ends elsewhere, and digests are not told": (
        learner(FINAL, segment(4, 5, finalized=True)),
        asked(FINAL, replace(NEXT, digest=b""), reached=6),
        OutOfSync,
    ),
    "the voters list a hole": (
        learner(FINAL, NEXT, BEHIND),
        asked(FINAL, BEHIND, reached=9),
        BadRequest,
    ),
    "no writer has begun a segment since": (
        learner(FINAL, NEXT, heard=0),
        asked(FINAL, NEXT, reached=6),
        NotAdmitted,
    ),
    "another writer has": (
        replace(learner(FINAL, NEXT, heard=1), promised=Epoch(2)),
        asked(FINAL, NEXT, reached=6, epoch=2),
        NotAdmitted,
    ),
    "a newer writer was promised here": (
        replace(learner(FINAL, NEXT), promised=Epoch(2)),
        asked(FINAL, NEXT, reached=6),
        Fenced,
    ),
    "another incarnation is meant": (
        learner(FINAL),
        asked(FINAL, reached=3, life="1" * 32),
        NotAdmitted,
    ),
}


@pytest.mark.parametrize(("state", "request_"), ADMITTED.values(), ids=list(ADMITTED))
def test_a_learner_that_depends_on_nothing_forgotten_votes(
    state: JournalState, request_: AdmitByVoters
) -> None:
    done = step(state, request_)
    assert done.reply == Done()
    assert not done.state.learner
    assert done.effects == (PersistAdmission(LIFE, Epoch(1)),)


@pytest.mark.parametrize(("state", "request_", "why"), REFUSED.values(), ids=list(REFUSED))
def test_a_learner_stays_one_because(
    state: JournalState, request_: AdmitByVoters, why: type[JournalError]
) -> None:
    found = outcome(state, request_)
    assert isinstance(found if isinstance(found, JournalError) else found.reply, why)


def test_what_a_voter_has_let_go_of_is_not_waited_for() -> None:
    """Let a voter purge behind its newest edits; a purge spares those."""
    asked_for = replace(asked(FINAL, NEXT, reached=6), purged=TxId(10))
    done = step(learner(FINAL, NEXT), asked_for)
    assert done.reply == Done()
    assert done.effects == (PurgeFiles(TxId(10), (), ()), PersistAdmission(LIFE, Epoch(1)))


def test_a_learner_remembers_who_began_a_segment_and_begins_none() -> None:
    found = step(learner(FINAL, heard=0), Writer(4).start(4))
    assert isinstance(found.reply, NotAdmitted)
    assert (found.state.start_heard, found.state.promised) == (4, 4)
    assert found.state.open is None


def voter(
    name: str, *segments: Segment, promised: int = 1, last: int = 6, purged: int = NO_TXID
) -> Voter:
    return Voter(name, Epoch(promised), segments, TxId(last), TxId(purged))


def test_the_mark_is_the_highest_edit_that_a_voter_has() -> None:
    assert voters.set_baseline(
        [voter("a", last=5), voter("b", last=9)], Epoch(1), NODES
    ) == VoterBaseline(Epoch(1), TxId(9))


NO_MAJORITY = {
    "one voter of three": ([("a", Epoch(1))], Unavailable),
    "one disk under two names": ([("a", Epoch(1)), ("a", Epoch(1))], Unavailable),
    "one that missed the writer's claim": ([("a", Epoch(1)), ("b", Epoch(0))], Unavailable),
    "one that has promised a newer writer": ([("a", Epoch(1)), ("b", Epoch(2))], Fenced),
    "nobody": ([], Unavailable),
}


@pytest.mark.parametrize(("promises", "why"), NO_MAJORITY.values(), ids=list(NO_MAJORITY))
def test_a_majority_of_voters_must_hold_the_same_promise(
    promises: list[tuple[str, Epoch]], why: type[JournalError]
) -> None:
    with pytest.raises(why):
        voters.require_majority(promises, Epoch(1), NODES)
    with pytest.raises(why):
        voters.set_baseline(
            [voter(name, promised=promised) for name, promised in promises], Epoch(1), NODES
        )


def test_the_word_is_what_any_of_them_has_finalized() -> None:
    marked = VoterBaseline(Epoch(1), TxId(5))
    bare = replace(NEXT, digest=b"")
    answers = [voter("a", FINAL, bare), voter("b", NEXT, purged=2)]
    for told in (answers, answers[::-1]):
        said = voters.admission_request(marked, told, LIFE, NODES)
        assert said == AdmitByVoters(LIFE, Epoch(1), (FINAL, NEXT), TxId(5), TxId(2))
    with pytest.raises(Unavailable):
        voters.admission_request(marked, [voter("a", FINAL)], LIFE, NODES)
    with pytest.raises(Unavailable):
        voters.admission_request(marked, [voter("a", FINAL), voter("a", FINAL)], LIFE, NODES)
    shorter = segment(4, 5, finalized=True)
    for other in (shorter, replace(shorter, digest=b""), segment(4, 6, 2, finalized=True)):
        with pytest.raises(OutOfSync):
            voters.admission_request(
                marked, [voter("a", FINAL, NEXT), voter("b", other)], LIFE, NODES
            )
