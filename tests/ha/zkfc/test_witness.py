"""When another's lock may be removed: each case is what happened in turn, and what came of it."""

from collections.abc import Sequence

import pytest

from ha.elector.model import Removal
from ha.service.model import WriterSilence
from ha.zkfc.witness.core import (
    LEAST_SECONDS_BETWEEN,
    Action,
    Answer,
    AskWriter,
    BecameActive,
    Event,
    Lock,
    NoOwner,
    OwnerAsked,
    RemovalEnded,
    RemoveLock,
    State,
    Verdict,
    WitnessSettings,
    WriterTold,
    limit_seconds,
    step,
)

LOOK = 0.15
LOCK, NEXT = Lock(77, "nn1"), Lock(99, "nn3")


def asked(answer: Answer, lock: Lock = LOCK, barred: str = "") -> OwnerAsked:
    return OwnerAsked(lock, answer, barred)


def silence(
    seconds: float = 1.3, *, witnesses: int = 3, nodes: int = 3, epoch: int = 5, lease: float = 1.0
) -> WriterSilence:
    return WriterSilence(
        nodes=nodes,
        witnesses=witnesses,
        epoch=epoch,
        silent_seconds=seconds,
        lease_seconds=lease,
    )


def told(what: WriterSilence | None, lock: Lock | None = LOCK, barred: str = "") -> WriterTold:
    return WriterTold(lock, what, barred)


SILENT, ANSWERS, UNCLEAR = asked(Answer.SILENT), asked(Answer.ANSWERS), asked(Answer.UNCLEAR)
SAYS = told(silence())
LOOKS = (SILENT, SAYS)
REMOVED = RemovalEnded(Removal.REMOVED)

# What happens, whether the lock is removed at the end of it and never before, and the verdict.
CASES: dict[str, tuple[Sequence[Event], bool, Verdict]] = {
    "three times in vain, and told each time": ((*LOOKS * 3,), True, Verdict.REMOVING),
    "twice in vain": ((*LOOKS * 2,), False, Verdict.CONFIRMING),
    "told once": ((SILENT, SILENT, *LOOKS), False, Verdict.CONFIRMING),
    "told twice, in vain four times": ((SILENT, SILENT, *LOOKS * 2), True, Verdict.REMOVING),
    "it answers in between": (
        (*LOOKS * 2, ANSWERS, *LOOKS),
        False,
        Verdict.CONFIRMING,
    ),
    "we were late ourselves": ((*LOOKS * 2, UNCLEAR, UNCLEAR), False, Verdict.CONFIRMING),
    "our own delay takes nothing back": (
        (*LOOKS * 2, UNCLEAR, *LOOKS),
        True,
        Verdict.REMOVING,
    ),
    "the writer was heard in between": (
        (*LOOKS, SILENT, told(silence(0.2)), *LOOKS),
        False,
        Verdict.CONFIRMING,
    ),
    "silent for exactly as long as is asked for": (
        (SILENT, told(silence(1.2))) * 5,
        False,
        Verdict.UNPROVEN,
    ),
    "silent, but its lease is longer": (
        (SILENT, told(silence(2.0, lease=2.0))) * 5,
        False,
        Verdict.UNPROVEN,
    ),
    "its longer lease is over": (
        (SILENT, told(silence(2.11, lease=2.0))) * 3,
        True,
        Verdict.REMOVING,
    ),
    "half of the nodes are no majority": (
        (SILENT, told(silence(9.0, witnesses=2, nodes=4))) * 5,
        False,
        Verdict.UNPROVEN,
    ),
    "a writer without a lease": (
        (SILENT, told(silence(60.0, lease=0.0))) * 5,
        False,
        Verdict.UNPROVEN,
    ),
    "our NameNode cannot tell": ((SILENT, told(None)) * 5, False, Verdict.UNPROVEN),
    "another writer each time": (
        tuple(one for epoch in (5, 6, 7, 8) for one in (SILENT, told(silence(epoch=epoch)))),
        False,
        Verdict.CONFIRMING,
    ),
    "we may not": (
        (asked(Answer.SILENT, barred="paused"),) * 9,
        False,
        Verdict.BARRED,
    ),
    "we may not any more": (
        (*LOOKS * 2, SILENT, told(silence(), barred="paused")),
        False,
        Verdict.BARRED,
    ),
    "the lock went while we asked": (
        (*LOOKS * 2, SILENT, told(silence(), None)),
        False,
        Verdict.CALM,
    ),
    "another lock came while we asked": (
        (*LOOKS * 2, SILENT, told(silence(), NEXT)),
        False,
        Verdict.CALM,
    ),
    "another lock begins anew": (
        (*LOOKS * 2, asked(Answer.SILENT, NEXT), told(silence(), NEXT)),
        False,
        Verdict.CONFIRMING,
    ),
    "there is no lock": ((*LOOKS * 2, NoOwner(), *LOOKS), False, Verdict.CONFIRMING),
    "a second time without success": (
        (*LOOKS * 3, REMOVED, *((asked(Answer.SILENT, NEXT),) * 9)),
        False,
        Verdict.SPENT,
    ),
    "the removal had no answer": (
        (*LOOKS * 3, RemovalEnded(Removal.UNKNOWN), *(SILENT,) * 9),
        False,
        Verdict.SPENT,
    ),
    "again behind a success": (
        (*LOOKS * 3, REMOVED, BecameActive(), *LOOKS * 3),
        True,
        Verdict.REMOVING,
    ),
    "the next owner answers, and is not active yet": (
        (*LOOKS * 3, REMOVED, asked(Answer.ANSWERS, NEXT), *(asked(Answer.SILENT, NEXT),) * 9),
        False,
        Verdict.SPENT,
    ),
    "ZooKeeper was too slow to be asked": (
        (*LOOKS * 3, RemovalEnded(Removal.TOO_LATE), *LOOKS * 3),
        True,
        Verdict.REMOVING,
    ),
    "again, as the next owner was active": (
        (
            *(*LOOKS * 3, REMOVED, asked(Answer.SERVES, NEXT)),
            *(asked(Answer.SILENT, NEXT), told(silence(), NEXT)) * 3,
        ),
        True,
        Verdict.REMOVING,
    ),
    "the owner of the lock that we removed answers": (
        (*LOOKS * 3, REMOVED, ANSWERS, *(SILENT,) * 9),
        False,
        Verdict.SPENT,
    ),
    "we had no right": (
        (*LOOKS * 3, RemovalEnded(Removal.FORBIDDEN), BecameActive(), *(SILENT,) * 9),
        False,
        Verdict.FORBIDDEN,
    ),
    "told, and nobody was asked": ((SAYS, SAYS), False, Verdict.CALM),
}


def played(events: Sequence[Event], pause: float = LOOK) -> tuple[State, list[tuple[Action, ...]]]:
    state, now, actions = State(settings=WitnessSettings()), 100.0, []
    for event in events:
        if isinstance(event, OwnerAsked):
            now += pause
        result = step(state, event, now=now)
        state = result.state
        actions.append(result.actions)
    return state, actions


@pytest.mark.parametrize("case", CASES)
def test_the_lock_is_removed_when_and_only_when(case: str) -> None:
    events, removed, verdict = CASES[case]
    state, actions = played(events)
    last = [action for action in actions[-1] if isinstance(action, RemoveLock)]
    assert bool(last) is removed
    assert state.verdict is verdict
    before = [one for each in actions[:-1] for one in each if isinstance(one, RemoveLock)]
    assert len(before) == sum(isinstance(event, RemovalEnded) for event in events)


def test_what_is_asked_in_one_moment_is_told_once() -> None:
    state, actions = played(LOOKS * 9, pause=0.01)
    assert not [one for each in actions for one in each if isinstance(one, RemoveLock)]
    assert state.verdict is Verdict.CONFIRMING


def test_the_journal_is_asked_only_while_the_owner_does_not_answer() -> None:
    _, actions = played((ANSWERS, UNCLEAR, SILENT, ANSWERS))
    assert actions == [(), (), (AskWriter(),), ()]


def test_exactly_the_lock_that_was_seen_is_named_with_the_reason() -> None:
    _, actions = played(LOOKS * 3)
    (removal,) = actions[-1]
    assert isinstance(removal, RemoveLock)
    assert removal.lock == LOCK
    assert removal.because == (
        "neither the NameNode nor the zkfc of nn1 answered 3 times in a row, and a majority of 3 "
        "JournalNodes has not heard the writer of epoch 5 for 1.30 s"
    )


@pytest.mark.parametrize(("lease", "limit"), [(0.5, 1.2), (1.0, 1.2), (2.0, 2.1)])
def test_silence_is_longer_than_the_lease_and_than_what_is_configured(
    lease: float, limit: float
) -> None:
    assert limit_seconds(WitnessSettings(), lease) == pytest.approx(limit)


def test_a_writer_that_stalls_for_a_second_is_left_alone() -> None:
    """Hear it every quarter of a lease of 1 s: a stall of a second shows as 1.25 s at most.

    The first look beyond the limit is then the last in vain: by the next one it has gone on.
    """
    settings = WitnessSettings()
    assert 1.25 - limit_seconds(settings, 1.0) < LOOK


def test_two_answers_count_that_lie_exactly_so_far_apart() -> None:
    state = step(State(), SILENT, now=0.0).state
    for now in (0.0, LEAST_SECONDS_BETWEEN):
        state = step(state, SAYS, now=now).state
    assert state.suspicion.told == 2
