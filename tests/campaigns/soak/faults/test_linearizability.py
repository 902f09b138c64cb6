"""The checker of histories finds each planted wrong one, and takes each right one."""

from dataclasses import replace
from random import Random

import pytest

from tests.campaigns.soak.faults import linearizability
from tests.campaigns.soak.faults.history import (
    ABSENT,
    TAKEN,
    UNKNOWN,
    Ask,
    Call,
    calls_of,
    line_of,
)
from tests.campaigns.soak.faults.linearizability import MAKER, Judgement, after, judge

MAKE, OWN, DELETE, READ, MOVE = Ask.MAKE, Ask.OWN, Ask.DELETE, Ask.READ, Ask.MOVE
Row = tuple[float, float, Ask, str, str]


def history(*rows: Row, path: str = "/p") -> list[Call]:
    """Make calls of begin, end, what, value, answer; each by a client of its own."""
    return [
        Call(client, path, ask, value, began, ended, answer)
        for client, (began, ended, ask, value, answer) in enumerate(rows)
    ]


NOTHING = Judgement((), ())
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
    assert judge(calls) == NOTHING


@pytest.mark.parametrize("calls", WRONG.values(), ids=WRONG)
def test_a_wrong_history_is_found(calls: list[Call]) -> None:
    (found,) = judge(calls).violations
    assert found.path == "/p"
    assert found.stuck


def test_only_the_wrong_path_is_named() -> None:
    mixed = [
        *history(MADE, (2, 3, READ, "", MAKER), path="/right"),
        *history(MADE, (2, 3, READ, "", ABSENT), path="/wrong"),
    ]
    assert [found.path for found in judge(mixed).violations] == ["/wrong"]


def test_a_search_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearizability, "MOST_STEPS", 100)
    rows: list[Row] = [(0, 100, OWN, str(number), "") for number in range(12)]
    slow = history((-2, -1, MAKE, "", ""), *rows, (101, 102, READ, "", "none of them"))
    wrong = history(MADE, (2, 3, READ, "", ABSENT), path="/wrong")
    judged = judge([*slow, *wrong])
    (undecided,) = judged.undecided
    assert undecided.startswith("/p: 14 calls")
    assert [found.path for found in judged.violations] == ["/wrong"]


def test_what_was_asked_often_and_never_answered_takes_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lose hundreds of makes and deletes while none serves; each may come at any time."""
    monkeypatch.setattr(linearizability, "MOST_STEPS", 2_000)
    lost: list[Row] = [(n, n + 1, (MAKE, DELETE)[n % 2], "", UNKNOWN) for n in range(40)]
    assert judge(history(*lost, (50, 51, READ, "", "nobody"))).violations
    assert judge(history(*lost, (50, 51, READ, "", MAKER))) == NOTHING


def test_calls_are_the_same_after_a_file() -> None:
    calls = WRONG["a stale read"]
    assert list(calls_of(map(line_of, calls))) == calls
    assert list(calls_of([line_of(calls[0]), line_of(calls[1])[:9]])) == calls[:1]


def moves(*rows: tuple[float, float, Ask, str, str, str]) -> list[Call]:
    """Make calls of begin, end, what, path, value, answer; each by a client of its own."""
    return [
        Call(client, path, ask, value, began, ended, answer)
        for client, (began, ended, ask, path, value, answer) in enumerate(rows)
    ]


A, B, C = "/a", "/b", "/c"
A_MADE = (0.0, 1.0, MAKE, A, "", "")
B_MADE = (0.0, 1.0, MAKE, B, "", "")
OWNED = (2.0, 3.0, OWN, A, "x", "")
MOVED = (4.0, 5.0, MOVE, A, B, "")
RIGHT_MOVES = {
    "a value moves": moves(
        A_MADE, OWNED, MOVED, (6, 7, READ, A, "", ABSENT), (8, 9, READ, B, "", "x")
    ),
    "nothing moves from where nothing is": moves(
        (0, 1, MOVE, A, B, ABSENT), (2, 3, READ, B, "", ABSENT)
    ),
    "nothing moves to where something is": moves(
        A_MADE, B_MADE, (2, 3, MOVE, A, B, TAKEN), (4, 5, READ, A, "", MAKER)
    ),
    "a source that is absent is told first": moves(B_MADE, (2, 3, MOVE, A, B, ABSENT)),
    "reads beside a move see before and behind it": moves(
        A_MADE, OWNED, (4, 9, MOVE, A, B, ""), (5, 6, READ, A, "", "x"), (7, 8, READ, B, "", "x")
    ),
    "an unanswered move is carried out late": moves(
        A_MADE, (2, 3, MOVE, A, B, UNKNOWN), (4, 5, READ, A, "", MAKER), (6, 7, READ, B, "", MAKER)
    ),
    "one of two moves finds it": moves(
        A_MADE, (2, 5, MOVE, A, B, ABSENT), (3, 4, MOVE, A, C, ""), (6, 7, READ, C, "", MAKER)
    ),
}
WRONG_MOVES = {
    "a value is at both places": moves(
        A_MADE, MOVED, (6, 7, READ, A, "", MAKER), (6, 7, READ, B, "", MAKER)
    ),
    "a value is at neither place": moves(
        A_MADE, MOVED, (6, 7, READ, A, "", ABSENT), (8, 9, READ, B, "", ABSENT)
    ),
    "a value changes on its way": moves(A_MADE, OWNED, MOVED, (6, 7, READ, B, "", MAKER)),
    "the second half of a move is seen first": moves(
        A_MADE, (2, 9, MOVE, A, B, ""), (3, 4, READ, B, "", MAKER), (5, 6, READ, A, "", MAKER)
    ),
    "a move was carried out twice": moves(A_MADE, MOVED, (6, 7, MOVE, A, B, "")),
    "a retried move forgets its answer": moves(A_MADE, (2, 5, MOVE, A, B, ABSENT)),
    "a retried move meets itself": moves(A_MADE, (2, 5, MOVE, A, B, TAKEN)),
    "a move tramples what is there": moves(A_MADE, B_MADE, (2, 3, MOVE, A, B, "")),
    "two moves take one thing": moves(
        A_MADE, (2, 5, MOVE, A, B, ""), (3, 4, MOVE, A, C, "")
    ),
    "a late move takes what was made since": moves(
        A_MADE, MOVED, (6, 7, MAKE, A, "", ""), (8, 9, READ, A, "", ABSENT)
    ),
}  # fmt: skip


@pytest.mark.parametrize("calls", RIGHT_MOVES.values(), ids=RIGHT_MOVES)
def test_a_right_move_is_taken(calls: list[Call]) -> None:
    assert judge(calls) == NOTHING


@pytest.mark.parametrize("calls", WRONG_MOVES.values(), ids=WRONG_MOVES)
def test_a_wrong_move_is_found(calls: list[Call]) -> None:
    (found,) = judge(calls).violations
    assert found.path in ("/a and /b", "/a and /b and /c")
    assert found.stuck


def drawn(rng: Random, clients: int, length: int, paths: tuple[str, ...]) -> list[Call]:
    """Draw a right history by construction: each call takes effect at an instant of its own."""
    calls, instants = [], []
    for client in range(clients):
        now = rng.random()
        for number in range(length):
            began, at = now, now + rng.random()
            now = at + rng.random()
            ask = rng.choice([ask for ask in Ask if ask is not MOVE or len(paths) > 1])
            path, *others = rng.sample(paths, len(paths))
            value = f"{client}.{number}" if ask is OWN else others[0] if ask is MOVE else ""
            calls.append(Call(client, path, ask, value, began, now, ""))
            instants.append(at)
            now += rng.random() / 10
    state, told = (ABSENT,) * len(paths), list(calls)
    for index in sorted(range(len(calls)), key=instants.__getitem__):
        call = calls[index]
        places = [paths.index(path) for path in call.paths]
        call = replace(call, answer=_answer(call, *(state[place] for place in places)))
        reached = after(call, state, places)
        assert reached is not None
        state = reached
        told[index] = replace(call, answer=UNKNOWN) if rng.random() < 0.1 else call
    return told


def _answer(call: Call, here: str, there: str = ABSENT) -> str:
    if call.ask is READ:
        return here
    if here == ABSENT and call.ask is not MAKE:
        return ABSENT
    return TAKEN if there != ABSENT else ""


@pytest.mark.parametrize("paths", [("/p",), ("/p", "/q"), ("/p", "/q", "/r")])
@pytest.mark.parametrize("seed", range(60))
def test_drawn_histories_are_taken_and_spoilt_ones_are_found(
    seed: int, paths: tuple[str, ...]
) -> None:
    rng = Random(seed)
    calls = drawn(rng, clients=4, length=20, paths=paths)
    assert judge(calls) == NOTHING
    reads = [index for index, call in enumerate(calls) if call.ask is READ and call.known]
    index = rng.choice(reads)
    calls[index] = replace(calls[index], answer="nobody ever wrote this")
    (found,) = judge(calls).violations
    assert calls[index].path in found.path.split(" and ")


def explained(calls: list[Call], paths: tuple[str, ...]) -> bool:
    """Return whether some order explains all answers: every one is tried, by the definition."""

    def goes_on(left: frozenset[int], state: tuple[str, ...]) -> bool:
        known = [index for index in left if calls[index].known]
        if not known:
            return True
        first_end = min(calls[index].ended for index in known)
        for index in left:
            if calls[index].began <= first_end:
                reached = after(calls[index], state, [paths.index(p) for p in calls[index].paths])
                if reached is not None and goes_on(left - {index}, reached):
                    return True
        return False

    return goes_on(frozenset(range(len(calls))), (ABSENT,) * len(paths))


@pytest.mark.parametrize("paths", [("/p",), ("/p", "/q")])
def test_it_judges_small_histories_by_the_definition(paths: tuple[str, ...]) -> None:
    rng, verdicts = Random(len(paths)), [0, 0]
    for _ in range(400):
        calls = drawn(rng, clients=3, length=2, paths=paths)
        answers = ["", ABSENT, TAKEN, UNKNOWN, MAKER, "0.0", "1.1"]
        for index in rng.sample(range(len(calls)), rng.randrange(3)):
            calls[index] = replace(calls[index], answer=rng.choice(answers))
        right = explained(calls, paths)
        verdicts[right] += 1
        assert (judge(calls) == NOTHING) is right, calls
    assert min(verdicts) > 40


def test_unanswered_calls_that_ask_the_same_are_judged_by_the_definition() -> None:
    rng, verdicts = Random(7), [0, 0]
    changes = [(MAKE, ""), (DELETE, ""), (OWN, "a"), (OWN, "b")]
    for _ in range(600):
        instants = [rng.random() for _ in range(8)]
        lost: list[Row] = [(at, at + 1, *rng.choice(changes), UNKNOWN) for at in instants[:4]]
        answers = [*((READ, "", read) for read in (MAKER, ABSENT, "a", "b")), (MAKE, "", "")]
        told: list[Row] = [(at, at + rng.random(), *rng.choice(answers)) for at in instants[4:]]
        calls = history(*lost, *told)
        right = explained(calls, ("/p",))
        verdicts[right] += 1
        assert (judge(calls) == NOTHING) is right, calls
    assert min(verdicts) > 40
