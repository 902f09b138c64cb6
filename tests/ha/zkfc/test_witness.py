"""When another's lock may be removed: each case is what happened in turn, and what came of it."""

from collections.abc import Sequence

import pytest

from ha.elector.model import Removal
from ha.service.model import WriterSilence
from ha.zkfc.witness import core
from ha.zkfc.witness.core import limit_seconds, step

LOOK = 0.15
LOCK, NEXT = core.Lock(77, "nn1"), core.Lock(99, "nn3")


def asked(answer: core.Answer, lock: core.Lock = LOCK, barred: str = "") -> core.OwnerAsked:
    return core.OwnerAsked(lock, answer, barred)


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


def told(
    what: WriterSilence | None, lock: core.Lock | None = LOCK, barred: str = ""
) -> core.WriterReported:
    return core.WriterReported(lock, what, barred)


SILENT, ANSWERS, UNCLEAR = (
    asked(core.Answer.SILENT),
    asked(core.Answer.ANSWERS),
    asked(core.Answer.UNCLEAR),
)
SAYS = told(silence())
LOOKS = (SILENT, SAYS)
REMOVED = core.RemovalEnded(Removal.REMOVED)

# What happens, whether the lock is removed at the end of it and never before, and the verdict.
CASES: dict[str, tuple[Sequence[core.Event], bool, core.SilenceVerdict]] = {
    "three times in vain, and told each time": ((*LOOKS * 3,), True, core.SilenceVerdict.REMOVING),
    "twice in vain": ((*LOOKS * 2,), False, core.SilenceVerdict.CONFIRMING),
    "told once": ((SILENT, SILENT, *LOOKS), False, core.SilenceVerdict.CONFIRMING),
    "told twice, in vain four times": (
        (SILENT, SILENT, *LOOKS * 2),
        True,
        core.SilenceVerdict.REMOVING,
    ),
    "it answers in between": (
        (*LOOKS * 2, ANSWERS, *LOOKS),
        False,
        core.SilenceVerdict.CONFIRMING,
    ),
    "we were late ourselves": (
        (*LOOKS * 2, UNCLEAR, UNCLEAR),
        False,
        core.SilenceVerdict.CONFIRMING,
    ),
    "our own delay takes nothing back": (
        (*LOOKS * 2, UNCLEAR, *LOOKS),
        True,
        core.SilenceVerdict.REMOVING,
    ),
    "the writer was heard in between": (
        (*LOOKS, SILENT, told(silence(0.2)), *LOOKS),
        False,
        core.SilenceVerdict.CONFIRMING,
    ),
    "silent for exactly as long as is asked for": (
        (SILENT, told(silence(1.2))) * 5,
        False,
        core.SilenceVerdict.UNPROVEN,
    ),
    "silent, but its lease is longer": (
        (SILENT, told(silence(2.0, lease=2.0))) * 5,
        False,
        core.SilenceVerdict.UNPROVEN,
    ),
    "its longer lease is over": (
        (SILENT, told(silence(2.11, lease=2.0))) * 3,
        True,
        core.SilenceVerdict.REMOVING,
    ),
    "half of the nodes are no majority": (
        (SILENT, told(silence(9.0, witnesses=2, nodes=4))) * 5,
        False,
        core.SilenceVerdict.UNPROVEN,
    ),
    "a writer without a lease": (
        (SILENT, told(silence(60.0, lease=0.0))) * 5,
        False,
        core.SilenceVerdict.UNPROVEN,
    ),
    "our NameNode cannot tell": ((SILENT, told(None)) * 5, False, core.SilenceVerdict.UNPROVEN),
    "another writer each time": (
        tuple(one for epoch in (5, 6, 7, 8) for one in (SILENT, told(silence(epoch=epoch)))),
        False,
        core.SilenceVerdict.CONFIRMING,
    ),
    "we may not": (
        (asked(core.Answer.SILENT, barred="paused"),) * 9,
        False,
        core.SilenceVerdict.BARRED,
    ),
    "we may not any more": (
        (*LOOKS * 2, SILENT, told(silence(), barred="paused")),
        False,
        core.SilenceVerdict.BARRED,
    ),
    "the lock went while we asked": (
        (*LOOKS * 2, SILENT, told(silence(), None)),
        False,
        core.SilenceVerdict.CALM,
    ),
    "another lock came while we asked": (
        (*LOOKS * 2, SILENT, told(silence(), NEXT)),
        False,
        core.SilenceVerdict.CALM,
    ),
    "another lock begins anew": (
        (*LOOKS * 2, asked(core.Answer.SILENT, NEXT), told(silence(), NEXT)),
        False,
        core.SilenceVerdict.CONFIRMING,
    ),
    "there is no lock": (
        (*LOOKS * 2, core.NoOwner(), *LOOKS),
        False,
        core.SilenceVerdict.CONFIRMING,
    ),
    "a second time without success": (
        (*LOOKS * 3, REMOVED, *((asked(core.Answer.SILENT, NEXT),) * 9)),
        False,
        core.SilenceVerdict.SPENT,
    ),
    "the removal had no answer": (
        (*LOOKS * 3, core.RemovalEnded(Removal.UNKNOWN), *(SILENT,) * 9),
        False,
        core.SilenceVerdict.SPENT,
    ),
    "again behind a success": (
        (*LOOKS * 3, REMOVED, core.BecameActive(), *LOOKS * 3),
        True,
        core.SilenceVerdict.REMOVING,
    ),
    "the next owner answers, and is not active yet": (
        (
            *LOOKS * 3,
            REMOVED,
            asked(core.Answer.ANSWERS, NEXT),
            *(asked(core.Answer.SILENT, NEXT),) * 9,
        ),
        False,
        core.SilenceVerdict.SPENT,
    ),
    "ZooKeeper was too slow to be asked": (
        (*LOOKS * 3, core.RemovalEnded(Removal.TOO_LATE), *LOOKS * 3),
        True,
        core.SilenceVerdict.REMOVING,
    ),
    "again, as the next owner was active": (
        (
            *(*LOOKS * 3, REMOVED, asked(core.Answer.SERVES, NEXT)),
            *(asked(core.Answer.SILENT, NEXT), told(silence(), NEXT)) * 3,
        ),
        True,
        core.SilenceVerdict.REMOVING,
    ),
    "the owner of the lock that we removed answers": (
        (*LOOKS * 3, REMOVED, ANSWERS, *(SILENT,) * 9),
        False,
        core.SilenceVerdict.SPENT,
    ),
    "we had no right": (
        (*LOOKS * 3, core.RemovalEnded(Removal.FORBIDDEN), core.BecameActive(), *(SILENT,) * 9),
        False,
        core.SilenceVerdict.FORBIDDEN,
    ),
    "told, and nobody was asked": ((SAYS, SAYS), False, core.SilenceVerdict.CALM),
}


def played(
    events: Sequence[core.Event], pause: float = LOOK
) -> tuple[core.State, list[tuple[core.Action, ...]]]:
    state, now, actions = core.State(settings=core.WitnessSettings()), 100.0, []
    for event in events:
        if isinstance(event, core.OwnerAsked):
            now += pause
        result = step(state, event, now=now)
        state = result.state
        actions.append(result.actions)
    return state, actions


@pytest.mark.parametrize("case", CASES)
def test_the_lock_is_removed_when_and_only_when(case: str) -> None:
    events, removed, verdict = CASES[case]
    state, actions = played(events)
    last = [action for action in actions[-1] if isinstance(action, core.RemoveLock)]
    assert bool(last) is removed
    assert state.verdict is verdict
    before = [one for each in actions[:-1] for one in each if isinstance(one, core.RemoveLock)]
    assert len(before) == sum(isinstance(event, core.RemovalEnded) for event in events)


def test_what_is_asked_in_one_moment_is_told_once() -> None:
    state, actions = played(LOOKS * 9, pause=0.01)
    assert not [one for each in actions for one in each if isinstance(one, core.RemoveLock)]
    assert state.verdict is core.SilenceVerdict.CONFIRMING


def test_the_journal_is_asked_only_while_the_owner_does_not_answer() -> None:
    _, actions = played((ANSWERS, UNCLEAR, SILENT, ANSWERS))
    assert actions == [(), (), (core.AskWriter(),), ()]


def test_exactly_the_lock_that_was_seen_is_named_with_the_reason() -> None:
    _, actions = played(LOOKS * 3)
    (removal,) = actions[-1]
    assert isinstance(removal, core.RemoveLock)
    assert removal.lock == LOCK
    assert removal.because == (
        "neither the NameNode nor the zkfc of nn1 answered 3 times in a row, and a majority of 3 "
        "JournalNodes has not heard the writer of epoch 5 for 1.30 s"
    )


@pytest.mark.parametrize(("lease", "limit"), [(0.5, 1.2), (1.0, 1.2), (2.0, 2.1)])
def test_silence_is_longer_than_the_lease_and_than_what_is_configured(
    lease: float, limit: float
) -> None:
    assert limit_seconds(core.WitnessSettings(), lease) == pytest.approx(limit)


def test_a_writer_that_stalls_for_a_second_is_left_alone() -> None:
    """Hear it every quarter of a lease of 1 s: a stall of a second shows as 1.25 s at most.

    The first look beyond the limit is then the last in vain: by the next one it has gone on.
    """
    settings = core.WitnessSettings()
    assert 1.25 - limit_seconds(settings, 1.0) < LOOK


def test_two_answers_count_that_lie_exactly_so_far_apart() -> None:
    state = step(core.State(), SILENT, now=0.0).state
    for now in (0.0, core.LEAST_SECONDS_BETWEEN):
        state = step(state, SAYS, now=now).state
    assert state.suspicion.silent_reports == 2
