"""Is a history of calls linearizable?  Wing and Gong's search, object by object.

A history is linearizable if each call can be given an instant between its begin and its end so
that all answers are those of one path without concurrency.  Linearizability is local (Herlihy and
Wing 1990, theorem 1): a history is linearizable if and only if the part of each object is.  A path
is an object, and so are all paths together between which something was to be moved: a move is one
operation on both.  The search is Wing and Gong's (1993) with Lowe's (2017) memory of what it has
tried: a pair of calls done and state reached is never entered twice.

A call without an answer has no end: it may take effect at any later time, or never.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias, assert_never

from tests.campaigns.soak.faults.history import ABSENT, TAKEN, Ask, Call

MOST_STEPS: Final = 2_000_000
"""Of one path; a search that takes more is undecided, and reported as such."""
MAKER: Final = "root"
"""The owner of what was just made."""


class Undecided(Exception):
    """The search took more steps than it may; the message names the paths."""


State: TypeAlias = tuple[str, ...]
"""Of each path of an object the owner, or ABSENT."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Paths whose answers no order explains: one, or those between which something was moved."""

    path: str
    """All of them."""
    calls: tuple[Call, ...]
    """All of them, in the order of their begins."""
    stuck: tuple[Call, ...]
    """Those of which one had to be next where the longest order ended, and none could be."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found of all objects; an undecided one hides nothing of the others."""

    violations: tuple[Violation, ...]
    undecided: tuple[str, ...]
    """Why the search of an object ended without an answer."""


def judge(calls: Iterable[Call]) -> Judgement:
    telling = _telling(list(calls))
    of_path = objects(telling)
    histories: defaultdict[tuple[str, ...], list[Call]] = defaultdict(list)
    for call in telling:
        histories[of_path[call.path]].append(call)
    violations, undecided = [], []
    for paths, of_object in sorted(histories.items()):
        try:
            if violation := judge_object(paths, of_object):
                violations.append(violation)
        except Undecided as reason:
            undecided.append(str(reason))
    return Judgement(tuple(violations), tuple(undecided))


def _telling(calls: Sequence[Call]) -> list[Call]:
    """Drop calls that any order may do without: unanswered ones that no other call shows.

    A read; and an owner that no read has seen: until the next one no call reads at all.
    """
    seen = {call.answer for call in calls if call.ask is Ask.READ}
    return [
        call
        for call in calls
        if call.known
        or (call.ask is not Ask.READ and not (call.ask is Ask.OWN and call.value not in seen))
    ]


def objects(calls: Iterable[Call]) -> Mapping[str, tuple[str, ...]]:
    together: dict[str, set[str]] = {}
    for call in calls:
        for path in call.paths:
            together.setdefault(path, {path})
        one, *others = call.paths
        for other in others:
            if together[one] is not together[other]:
                together[one] |= together[other]
                for path in together[other]:
                    together[path] = together[one]
    return {path: tuple(sorted(paths)) for path, paths in together.items()}


def judge_object(paths: Sequence[str], calls: Sequence[Call]) -> Violation | None:
    """Search one object's history for an order; None where there is one.

    At first there is nothing.

    Raises:
        Undecided: the search took too long.
    """
    ordered = sorted(calls, key=lambda call: call.began)
    ends = [call.ended if call.known else inf for call in ordered]
    answered = sum(1 << index for index, call in enumerate(ordered) if call.known)
    places = [tuple(map(paths.index, call.paths)) for call in ordered]
    twins = _twins(ordered)
    longest, stuck = -1, 0
    tried: set[tuple[int, State]] = set()
    waiting: list[tuple[int, State]] = [(0, (ABSENT,) * len(paths))]
    while waiting:
        done, state = waiting.pop()
        if done & answered == answered:
            return None
        if len(tried) > MOST_STEPS:
            raise Undecided(f"{' and '.join(paths)}: {len(ordered)} calls, {MOST_STEPS} steps")
        open_calls = _next(ordered, ends, done)
        if done.bit_count() > longest:
            longest, stuck = done.bit_count(), sum(1 << index for index in open_calls)
        # Of calls that ask the same, and have no end, the first to begin may as well come first.
        able = [index for index in open_calls if not twins[index] & ~done]
        for index, reached in _steps(ordered, able, state, places):
            step = (done | 1 << index, reached)
            if step not in tried:
                tried.add(step)
                waiting.append(step)
    return Violation(
        " and ".join(paths),
        tuple(ordered),
        tuple(call for index, call in enumerate(ordered) if stuck & 1 << index),
    )


def _twins(ordered: Sequence[Call]) -> list[int]:
    """Return of each unanswered call those before it that ask the same, unanswered too."""
    alike: defaultdict[tuple[Ask, str, str], int] = defaultdict(int)
    found = []
    for index, call in enumerate(ordered):
        what = call.ask, call.path, call.value
        found.append(0 if call.known else alike[what])
        if not call.known:
            alike[what] |= 1 << index
    return found


def _steps(
    ordered: Sequence[Call],
    open_calls: Sequence[int],
    state: State,
    places: Sequence[Sequence[int]],
) -> list[tuple[int, State]]:
    """Return which of them may be next, and the states that they leave.

    One that can be next and changes nothing whenever it comes is the only one: an order in which it
    comes later is as good with it first.  One without an answer that would change nothing now is
    not among them: it may as well never be carried out.
    """
    steps = []
    for index in open_calls:
        reached = after(ordered[index], state, places[index])
        if reached is None or (reached == state and not ordered[index].known):
            continue
        if _changes_nothing(ordered[index]):
            return [(index, reached)]
        steps.append((index, reached))
    return steps


def _changes_nothing(call: Call) -> bool:
    """Judge by the answer, in every state; a make's does not say whether something was there."""
    match call.ask:
        case Ask.MAKE:
            return False
        case Ask.READ:
            return True
        case Ask.OWN | Ask.DELETE:
            return call.answer == ABSENT
        case Ask.MOVE:
            return call.answer in (ABSENT, TAKEN)
    assert_never(call.ask)


def _next(ordered: Sequence[Call], ends: Sequence[float], done: int) -> list[int]:
    """Return those that may come next: begun before any other that is not done has ended."""
    first_end = inf
    found = []
    for index in range((done ^ done + 1).bit_length() - 1, len(ordered)):
        call = ordered[index]
        if call.began > first_end:
            break  # and so have all that follow
        if not done & 1 << index:
            found.append(index)
            first_end = min(first_end, ends[index])
    return found


def after(call: Call, state: State, places: Sequence[int]) -> State | None:
    """Return the state that a call leaves at its ``places``; None if its answer cannot be there."""
    if call.ask is Ask.MOVE:
        return _after_move(call, state, *places)
    (place,) = places
    here = _after(call, state[place])
    return None if here is None else _with(state, place, here)


def _after(call: Call, here: str) -> str | None:
    there = here != ABSENT
    match call.ask:
        case Ask.MAKE:
            return here if there else MAKER
        case Ask.OWN:
            if call.known and (call.answer == ABSENT) == there:
                return None
            return call.value if there else ABSENT
        case Ask.DELETE:
            if call.known and (call.answer == ABSENT) == there:
                return None
            return ABSENT
        case Ask.READ:
            return here if call.answer == here else None
        case Ask.MOVE:
            raise ValueError("a move is about two paths")
    assert_never(call.ask)


def _after_move(call: Call, state: State, source: int, target: int) -> State | None:
    why_not = ABSENT if state[source] == ABSENT else TAKEN if state[target] != ABSENT else ""
    if call.known and call.answer != why_not:
        return None
    if why_not:
        return state
    return _with(_with(state, target, state[source]), source, ABSENT)


def _with(state: State, place: int, value: str) -> State:
    return state if state[place] == value else (*state[:place], value, *state[place + 1 :])
