"""The checker of histories finds each planted wrong one, and takes each right one."""

from random import Random

import pytest

from tests.campaigns.soak.faults import linearizability
from tests.campaigns.soak.faults.history import ABSENT, UNKNOWN, Ask, Call, calls_of, line_of
from tests.campaigns.soak.faults.linearizability import MAKER, Undecided, after, judge

MAKE, OWN, DELETE, READ = Ask.MAKE, Ask.OWN, Ask.DELETE, Ask.READ
Row = tuple[float, float, Ask, str, str]


def history(*rows: Row, path: str = "/p") -> list[Call]:
    """Begin, end, what, value, answer; each by a client of its own."""
    return [
        Call(client, path, ask, value, began, ended, answer)
        for client, (began, ended, ask, value, answer) in enumerate(rows)
    ]


MADE: Row = (0, 1, MAKE, "", "")
RIGHT = {
    "nothing was asked": history(),
    "what was made is there": history(MADE, (2, 3, READ, "", MAKER)),
    "what is asked twice is made once": history(
        MADE, (2, 3, MAKE, "", ""), (4, 5, READ, "", MAKER)
    ),
    "a value is read": history(MADE, (2, 3, OWN, "a", ""), (4, 5, READ, "", "a")),
    "a read beside a write sees the old": history(
        MADE, (2, 5, OWN, "a", ""), (3, 4, READ, "", MAKER)
    ),
    "a read beside a write sees the new": history(
        MADE, (2, 5, OWN, "a", ""), (3, 4, READ, "", "a")
    ),
    "two writes at once, one wins": history(
        MADE, (2, 6, OWN, "a", ""), (3, 5, OWN, "b", ""), (7, 8, READ, "", "a")
    ),
    "an unanswered write is carried out late": history(
        MADE, (2, 3, OWN, "a", UNKNOWN), (4, 5, READ, "", MAKER), (6, 7, READ, "", "a")
    ),
    "an unanswered write is never carried out": history(
        MADE, (2, 3, OWN, "a", UNKNOWN), (4, 5, READ, "", MAKER), (6, 7, READ, "", MAKER)
    ),
    "one of two deletes finds it": history(
        MADE, (2, 5, DELETE, "", ""), (3, 4, DELETE, "", ABSENT)
    ),
    "an unanswered delete took it": history(
        MADE, (2, 3, DELETE, "", UNKNOWN), (4, 5, DELETE, "", ABSENT), (6, 7, READ, "", ABSENT)
    ),
    "nothing can be owned where nothing is": history(
        (0, 1, OWN, "a", ABSENT), (2, 3, READ, "", ABSENT)
    ),
}
WRONG = {
    "an acknowledged make is gone": history(MADE, (2, 3, READ, "", ABSENT)),
    "an acknowledged value is gone": history(MADE, (2, 3, OWN, "a", ""), (4, 5, READ, "", MAKER)),
    "a stale read": history(
        MADE, (2, 3, OWN, "a", ""), (4, 5, OWN, "b", ""), (6, 7, READ, "", "a")
    ),
    "a read goes back": history(
        MADE, (2, 9, OWN, "a", ""), (3, 4, READ, "", "a"), (5, 6, READ, "", MAKER)
    ),
    "a value comes from nowhere": history(MADE, (2, 3, READ, "", "z")),
    "a value comes before it was written": history(
        MADE, (2, 3, READ, "", "a"), (4, 5, OWN, "a", "")
    ),
    "a delete was carried out twice": history(MADE, (2, 3, DELETE, "", ""), (4, 5, DELETE, "", "")),
    "a retried delete forgets its answer": history(MADE, (2, 5, DELETE, "", ABSENT)),
    "a deleted path comes back": history(MADE, (2, 3, DELETE, "", ""), (4, 5, READ, "", MAKER)),
    "an unanswered write takes effect twice": history(
        MADE,
        (2, 3, OWN, "a", UNKNOWN),
        (4, 5, READ, "", "a"),
        (6, 7, OWN, "b", ""),
        (8, 9, READ, "", "b"),
        (10, 11, READ, "", "a"),
    ),
    "an owner is set where nothing is": history((0, 1, OWN, "a", "")),
    "it is said to be absent but is there": history(MADE, (2, 3, OWN, "a", ABSENT)),
}


@pytest.mark.parametrize("calls", RIGHT.values(), ids=RIGHT)
def test_a_right_history_is_taken(calls: list[Call]) -> None:
    assert judge(calls) == []


@pytest.mark.parametrize("calls", WRONG.values(), ids=WRONG)
def test_a_wrong_history_is_found(calls: list[Call]) -> None:
    (found,) = judge(calls)
    assert found.path == "/p"
    assert found.stuck


def test_only_the_wrong_path_is_named() -> None:
    mixed = [
        *history(MADE, (2, 3, READ, "", MAKER), path="/right"),
        *history(MADE, (2, 3, READ, "", ABSENT), path="/wrong"),
    ]
    assert [found.path for found in judge(mixed)] == ["/wrong"]


def test_a_search_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearizability, "MOST_STEPS", 100)
    rows: list[Row] = [(0, 100, OWN, str(number), "") for number in range(12)]
    with pytest.raises(Undecided, match="/p: 14 calls"):
        judge(history((-2, -1, MAKE, "", ""), *rows, (101, 102, READ, "", "none of them")))


def test_calls_are_the_same_after_a_file() -> None:
    calls = WRONG["a stale read"]
    assert list(calls_of(map(line_of, calls))) == calls
    assert list(calls_of([line_of(calls[0]), line_of(calls[1])[:9]])) == calls[:1]


def drawn(rng: Random, clients: int, length: int) -> list[Call]:
    """A right history by construction: each call takes effect at an instant of its own."""
    calls, instants = [], []
    for client in range(clients):
        now = rng.random()
        for number in range(length):
            began, at = now, now + rng.random()
            now = at + rng.random()
            ask = rng.choice(list(Ask))
            value = f"{client}.{number}" if ask is Ask.OWN else ""
            calls.append(Call(client, "/p", ask, value, began, now, ""))
            instants.append(at)
            now += rng.random() / 10
    state, told = ABSENT, list(calls)
    for index in sorted(range(len(calls)), key=instants.__getitem__):
        call, before = calls[index], state
        absent = before == ABSENT and call.ask in (Ask.OWN, Ask.DELETE)
        answer = before if call.ask is Ask.READ else ABSENT if absent else ""
        call = Call(call.client, "/p", call.ask, call.value, call.began, call.ended, answer)
        state = after(call, before) or ABSENT
        lost = rng.random() < 0.1
        told[index] = (
            Call(call.client, "/p", call.ask, call.value, call.began, call.ended, UNKNOWN)
            if lost
            else call
        )
    return told


@pytest.mark.parametrize("seed", range(60))
def test_drawn_histories_are_taken_and_spoilt_ones_are_found(seed: int) -> None:
    rng = Random(seed)
    calls = drawn(rng, clients=4, length=20)
    assert judge(calls) == []
    reads = [index for index, call in enumerate(calls) if call.ask is READ and call.known]
    index = rng.choice(reads)
    spoilt = calls[index]
    calls[index] = Call(
        spoilt.client, "/p", READ, "", spoilt.began, spoilt.ended, "nobody ever wrote this"
    )
    assert [found.path for found in judge(calls)] == ["/p"]
