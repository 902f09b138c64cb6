"""Is a history of calls linearizable?  Wing and Gong's search, path by path.

A history is linearizable if each call can be given an instant between its begin and its end so
that all answers are those of one path without concurrency.  Linearizability is local (Herlihy and
Wing 1990, theorem 1): a history is linearizable if and only if the part of each object is, so that
each path is judged alone.  The search is Wing and Gong's (1993) with Lowe's (2017) memory of what
it has tried: a pair of calls done and state reached is never entered twice.

A call without an answer has no end: it may take effect at any later time, or never.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, assert_never

from tests.campaigns.soak.faults.history import ABSENT, Ask, Call

MOST_STEPS: Final = 2_000_000
"""Of one path; a search that takes more is undecided, and told as such."""
MAKER: Final = "root"
"""Who owns what was just made."""


class Undecided(Exception):
    """The search took more steps than it may; the message names the path."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A path whose answers no order explains."""

    path: str
    calls: tuple[Call, ...]
    """All of them, in the order of their begins."""
    stuck: tuple[Call, ...]
    """Those of which one had to be next where the longest order ended, and none could be."""


def judge(calls: Iterable[Call]) -> list[Violation]:
    """The paths whose histories are not linearizable.

    Raises:
        Undecided: a path's search took too long.
    """
    paths: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.known or call.ask is not Ask.READ:  # an unanswered read says nothing
            paths[call.path].append(call)
    found = (judge_path(path, of_path) for path, of_path in sorted(paths.items()))
    return [violation for violation in found if violation is not None]


def judge_path(path: str, calls: Sequence[Call]) -> Violation | None:
    """Search one path's history for an order; None where there is one.

    A state is the owner, or ABSENT; at first there is nothing.

    Raises:
        Undecided: the search took too long.
    """
    ordered = sorted(calls, key=lambda call: call.began)
    ends = [call.ended if call.known else inf for call in ordered]
    answered = sum(1 << index for index, call in enumerate(ordered) if call.known)
    longest, stuck = -1, 0
    tried: set[tuple[int, str]] = set()
    waiting = [(0, ABSENT)]
    while waiting:
        done, state = waiting.pop()
        if done & answered == answered:
            return None
        if len(tried) > MOST_STEPS:
            raise Undecided(f"{path}: {len(ordered)} calls, {MOST_STEPS} steps")
        open_calls = _next(ordered, ends, done)
        if done.bit_count() > longest:
            longest, stuck = done.bit_count(), sum(1 << index for index in open_calls)
        for index in open_calls:
            reached = after(ordered[index], state)
            if reached is None:
                continue
            step = (done | 1 << index, reached)
            if step not in tried:
                tried.add(step)
                waiting.append(step)
    return Violation(
        path,
        tuple(ordered),
        tuple(call for index, call in enumerate(ordered) if stuck & 1 << index),
    )


def _next(ordered: Sequence[Call], ends: Sequence[float], done: int) -> list[int]:
    """Those that may come next: begun before any other that is not done has ended."""
    first_end = inf
    found = []
    for index, call in enumerate(ordered):
        if call.began > first_end:
            break  # and so have all that follow
        if not done & 1 << index:
            found.append(index)
            first_end = min(first_end, ends[index])
    return found


def after(call: Call, state: str) -> str | None:
    """The state that a call leaves, or None where its answer cannot be in this state."""
    there = state != ABSENT
    match call.ask:
        case Ask.MAKE:
            return state if there else MAKER
        case Ask.OWN:
            if call.known and (call.answer == ABSENT) == there:
                return None
            return call.value if there else ABSENT
        case Ask.DELETE:
            if call.known and (call.answer == ABSENT) == there:
                return None
            return ABSENT
        case Ask.READ:
            return state if call.answer == state else None
    assert_never(call.ask)
