"""What a JournalNode wants of its peers, and what may replace what it holds: case by case."""

from dataclasses import replace

import pytest

from journal.core.machine import step
from journal.core.replies import FetchFinalized
from journal.core.requests import AdoptFinalized
from journal.core.state import JournalState
from journal.core.sync import (
    Missing,
    find_missing,
    find_without_digest,
    first_txid_to_ask,
    has_hole,
)
from journal.errors import InvariantBroken
from journal.model import Segment, TxId
from tests.journal.core.requests_of import segment
from tests.journal.core.test_rules import holding, writing


def final(first: int, last: int) -> Segment:
    return segment(first, last, finalized=True)


def untold(first: int, last: int) -> Segment:
    """Return what a node of Hadoop's reports of a segment that it has finalized."""
    return replace(final(first, last), digest=b"")


def damaged(state: JournalState, first: int) -> JournalState:
    return state.with_damage(TxId(first), "rot")


WANTED: dict[str, tuple[JournalState, list[Segment], list[Segment]]] = {
    "what is not final may still change": (holding(), [segment(1, 3), final(4, 6)], [final(4, 6)]),
    "nothing is fetched without its digest": (
        holding(),
        [untold(1, 3), final(4, 6)],
        [final(4, 6)],
    ),
    "of what was let go of, an empty journal takes the newest alone": (
        holding(purged=TxId(8)),
        [final(4, 5), final(6, 7)],
        [final(6, 7)],
    ),
    "of what was let go of, the newest is the one that ends last": (
        holding(purged=TxId(8)),
        [final(4, 6), final(6, 7)],
        [final(6, 7)],
    ),
    "of what was let go of, the newest here is still finished": (
        holding(segment(4, 5), purged=TxId(6)),
        [final(4, 5)],
        [final(4, 5)],
    ),
    "a purge keeps the segment that holds its minimum": (
        holding(final(6, 7), purged=TxId(5)),
        [final(4, 5)],
        [final(4, 5)],
    ),
    "damage is repaired below the purge point as well": (
        damaged(holding(final(4, 5), final(6, 7), purged=TxId(6)), 4),
        [final(4, 5), final(6, 7)],
        [final(4, 5)],
    ),
    "what ends with the first edit of an open segment overlaps it": (
        writing(4, 5),
        [final(2, 4), final(1, 3)],
        [final(1, 3)],
    ),
    "an open segment that gets no more edits gives way to its own final copy alone": (
        writing(4, 5),
        [final(7, 9), final(4, 6)],
        [final(4, 6)],
    ),
}
STALLED_AT = TxId(6)
"""Where the open segment of these cases would go on."""


@pytest.mark.parametrize(("state", "told", "wanted"), WANTED.values(), ids=list(WANTED))
def test_what_peers_have_is_wanted_or_not(
    state: JournalState, told: list[Segment], wanted: list[Segment]
) -> None:
    reports = iter(told)  # they need not be readable twice
    assert find_missing(state, reports, STALLED_AT) == Missing(tuple(wanted), ())


def test_two_ends_of_one_segment_are_told_of_in_any_order() -> None:
    let_go, newest = final(7, 8), final(7, 9)
    for told in ([let_go, newest], [newest, let_go]):
        assert find_missing(holding(purged=TxId(10)), told) == Missing((), (TxId(7),))


def test_what_is_told_without_a_digest_is_read_once_if_it_is_not_whole_here() -> None:
    state = damaged(holding(final(1, 3), final(4, 6), segment(7, 8)), 4)
    hadoop = [untold(10, 12), untold(1, 3), untold(4, 6), untold(7, 9)]
    in_progress = replace(segment(13, 14), digest=b"")
    read = find_without_digest(state, [*hadoop, *hadoop, in_progress, final(15, 16)])
    assert read == (untold(4, 6), untold(7, 9), untold(10, 12))


def test_a_segment_of_which_two_ends_are_told_is_read_once() -> None:
    assert find_without_digest(holding(), [untold(7, 9), untold(7, 8)]) == (untold(7, 9),)


FROM: dict[str, tuple[JournalState, int]] = {
    "the beginning, if nothing was let go of": (holding(final(4, 5)), 1),
    "the purge point": (holding(final(4, 5), purged=TxId(4)), 4),
    "the beginning, if all that is here lies below the purge point": (
        holding(final(4, 5), purged=TxId(6)),
        1,
    ),
    "the purge point, if the last edit here is there": (holding(final(4, 5), purged=TxId(5)), 5),
    "damage below the purge point": (
        damaged(holding(final(4, 5), final(6, 7), purged=TxId(6)), 4),
        4,
    ),
    "the purge point, if the damage is behind it": (
        damaged(holding(final(4, 5), final(6, 7), purged=TxId(4)), 6),
        4,
    ),
}


@pytest.mark.parametrize(("state", "first"), FROM.values(), ids=list(FROM))
def test_peers_are_asked_from_there_on(state: JournalState, first: int) -> None:
    assert first_txid_to_ask(state) == first


HOLES: dict[str, JournalState] = {
    "a damaged segment, and nothing else here": damaged(holding(final(1, 3)), 1),
    "whatever a learner may have forgotten": holding(final(1, 3), learner=True),
    "edits between two final segments": holding(final(1, 3), final(7, 9)),
}


@pytest.mark.parametrize("state", HOLES.values(), ids=list(HOLES))
def test_it_is_a_hole(state: JournalState) -> None:
    assert has_hole(state)


WHOLE: dict[str, JournalState] = {
    "nothing was written": holding(),
    "all that the writer claims is here": holding(final(1, 3), claimed=TxId(3)),
    "what lies below the purge point is gone": holding(
        final(4, 6), purged=TxId(4), claimed=TxId(6)
    ),
}


@pytest.mark.parametrize("state", WHOLE.values(), ids=list(WHOLE))
def test_it_is_no_hole(state: JournalState) -> None:
    assert not has_hole(state)
    assert has_hole(replace(state, claimed=TxId(state.last_written + 1)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(final(4, 6), final(1, 4)), (final(1, 4), final(4, 6))],
    ids=["at its end", "at its start"],
)
def test_one_edit_is_not_final_in_two_segments(ours: Segment, theirs: Segment) -> None:
    with pytest.raises(InvariantBroken, match="overlaps"):
        step(holding(ours), AdoptFinalized(theirs))


def test_our_edits_are_not_finalized_under_another_end() -> None:
    """Fetch whatever digest the peer reports: the bytes are compared with it."""
    theirs = replace(final(1, 5), digest=final(1, 3).digest)
    done = step(holding(segment(1, 3)), AdoptFinalized(theirs))
    assert (done.reply, done.effects) == (FetchFinalized(theirs), ())


COMMITTED = TxId(6)
LEFT = segment(3, 6)
"""What an older writer left here: 6 is committed, and 3-5 is final on a peer."""
ELSEWHERE: dict[str, JournalState] = {
    "in the open segment": writing(6, 7, 2, LEFT),
    "in a final segment": holding(LEFT, final(6, 7)),
}
HERE_ALONE: dict[str, JournalState] = {
    "nothing follows": holding(LEFT),
    "the open segment begins behind it": writing(7, 8, 2, LEFT),
    "a final segment begins behind it": holding(LEFT, final(7, 9)),
    "what follows is not final, and may be void as well": holding(LEFT, segment(6, 7, 2)),
}


@pytest.mark.parametrize("state", ELSEWHERE.values(), ids=list(ELSEWHERE))
def test_a_copy_makes_room_if_the_committed_edit_is_held_behind_it(state: JournalState) -> None:
    done = step(replace(state, committed=COMMITTED), AdoptFinalized(final(3, 5)))
    assert done.reply == FetchFinalized(final(3, 5))


@pytest.mark.parametrize("state", HERE_ALONE.values(), ids=list(HERE_ALONE))
def test_a_copy_stays_if_it_alone_may_hold_the_committed_edit(state: JournalState) -> None:
    with pytest.raises(InvariantBroken, match="already-committed"):
        step(replace(state, committed=COMMITTED), AdoptFinalized(final(3, 5)))
