"""One gives way to another at a door by a few rules, and no place is left over."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.daemon.door.door import DoorLimits
from ha.daemon.door.origin import Origin, Share
from ha.daemon.door.places import Crowd, Places, Seat, Standing, Verdict

ALICE, BOB, ROOT = (
    Origin("uid 1", Share.OF_USER),
    Origin("uid 2", Share.OF_USER),
    Origin("uid 0", Share.OF_USER, trusted=True),
)
ANYBODY = Origin("127.0.0.1", Share.UNLIMITED)
UNPROVEN, PROVEN, KEPT = Standing
LIMITS = DoorLimits(most=6, unproven=4, unproven_of_origin=3, of_origin=2)

CASES: dict[str, tuple[list[tuple[Origin, Standing]], tuple[Origin, Standing], Verdict[int]]] = {
    "there is room": ([(ALICE, UNPROVEN)], (ALICE, UNPROVEN), Verdict()),
    "an origin's oldest gives way to its next": (
        [(BOB, UNPROVEN), *[(ALICE, UNPROVEN)] * 3], (ALICE, UNPROVEN),
        Verdict(gives_way=((1, "unproven_of_origin"),)),
    ),
    "of many that have proved nothing the origin with the most": (
        [(BOB, UNPROVEN), *[(ALICE, UNPROVEN)] * 3], (BOB, UNPROVEN),
        Verdict(gives_way=((1, "unproven"),)),
    ),
    "who may be anybody has no share, but does not get more than all strangers": (
        [(ANYBODY, UNPROVEN)] * 4, (ANYBODY, UNPROVEN), Verdict(gives_way=((0, "unproven"),)),
    ),
    "a proof has places of its own": ([(ALICE, UNPROVEN)] * 3, (ALICE, PROVEN), Verdict()),
    "what is proved gives way within its origin only": (
        [(BOB, PROVEN), *[(ALICE, PROVEN)] * 2], (ALICE, PROVEN),
        Verdict(gives_way=((1, "of_origin"),)),
    ),
    "a stranger gives way to a client": (
        [(BOB, PROVEN), (ALICE, PROVEN), *[(ALICE, UNPROVEN)] * 2, *[(BOB, UNPROVEN)] * 2],
        (BOB, PROVEN), Verdict(gives_way=((2, "places"),)),
    ),
    "no client gives way to a stranger": (
        [(ROOT, KEPT)] * 4 + [(ALICE, PROVEN), (BOB, PROVEN)], (ANYBODY, UNPROVEN),
        Verdict(refused="places"),
    ),
    "clients give way to root, which has no share": (
        [(ROOT, UNPROVEN)] * 5 + [(ALICE, PROVEN)], (ROOT, UNPROVEN),
        Verdict(gives_way=((5, "places"),)),
    ),
    "one is enough for two limits": (
        [(ROOT, KEPT)] * 3 + [(ALICE, UNPROVEN)] * 3, (ALICE, UNPROVEN),
        Verdict(gives_way=((3, "unproven_of_origin"),)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_who_gives_way(case: str) -> None:
    present, newcomer, expected = CASES[case]
    places: Places[int] = Places()
    for key, (origin, standing) in enumerate(present):
        assert places.take(key, LIMITS.seat(origin, standing)) == Verdict(), "all found room"
    assert places.take(99, LIMITS.seat(*newcomer)) == expected
    assert (99 in places) is (expected.refused == "")
    assert set(places) - {99} == set(range(len(present))) - {key for key, _ in expected.gives_way}


def test_who_is_being_served_does_not_give_way() -> None:
    since: dict[int, float | None] = {0: None, 1: 5.0, 2: 3.0}
    places = Places(since.get)
    for key in since:
        places.take(key, LIMITS.seat(ALICE, UNPROVEN))
    assert places.take(3, LIMITS.seat(ALICE, UNPROVEN)).gives_way[0][0] == 2, "the longest idle"
    since[1] = since[3] = None
    assert places.take(4, LIMITS.seat(ALICE, UNPROVEN)) == Verdict(refused="unproven_of_origin")
    assert set(places) == {0, 1, 3}


def test_none_gives_way_for_a_newcomer_that_another_limit_turns_away() -> None:
    since: dict[int, float | None] = {0: 1.0, 1: None}
    places = Places(since.get)
    mine, all_ = Crowd("mine", "a", 1), Crowd("all", "", 2)
    places.take(0, Seat(UNPROVEN, "a", (mine,)))
    places.take(1, Seat(PROVEN, "b", (all_,)))
    other = replace(all_, most=1)
    assert places.take(2, Seat(UNPROVEN, "a", (mine, other))) == Verdict(refused="all")
    assert set(places) == {0, 1}


def test_who_proves_itself_leaves_the_strangers() -> None:
    places: Places[int] = Places()
    for key in range(3):
        places.take(key, LIMITS.seat(ALICE, UNPROVEN))
    assert places.take(0, LIMITS.seat(ALICE, PROVEN)) == Verdict()
    assert places.take(3, LIMITS.seat(ALICE, UNPROVEN)) == Verdict(), "it has left a place"
    places.leave(1)
    places.leave(1)
    assert set(places) == {0, 2, 3}


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="mine: a share of nothing"):
        Crowd("mine", "", 0)


ORIGINS = (ALICE, BOB, ROOT, ANYBODY)
STEPS = st.tuples(
    st.integers(0, 14), st.sampled_from(ORIGINS), st.sampled_from([None, UNPROVEN, PROVEN, KEPT])
)


@given(st.lists(STEPS, max_size=80), st.sets(st.integers(0, 14), max_size=4))
def test_no_limit_is_exceeded_and_no_place_is_left_over(
    steps: list[tuple[int, Origin, Standing | None]], busy: set[int]
) -> None:
    places: Places[int] = Places(lambda key: None if key in busy else 0.0)
    seats: dict[int, Seat] = {}
    for key, origin, standing in steps:
        seats.pop(key, None)
        if standing is None:
            places.leave(key)
        else:
            seat = LIMITS.seat(origin, standing)
            verdict = places.take(key, seat)
            for other, limit in verdict.gives_way:
                gone = seats.pop(other)
                assert gone.standing <= seat.standing
                assert other not in busy
                assert limit in {crowd.limit for crowd in gone.crowds}
            if not verdict.refused:
                seats[key] = seat
        assert set(places) == set(seats), "the shell closes exactly those that have left"
        counts = Counter(crowd for seat in seats.values() for crowd in seat.crowds)
        assert all(count <= crowd.most for crowd, count in counts.items())
    for key in tuple(places):
        places.leave(key)
    for key in range(100, 100 + LIMITS.most):
        assert places.take(key, LIMITS.seat(ROOT, KEPT)) == Verdict()
