"""Make a failing seed small: leave out faults, in ever smaller groups, while it still fails."""

from collections.abc import Callable

from tests.simulation.engine.runs import Outcome

_MOST_RUNS = 400


def shrink(failing: Outcome, play: Callable[[int, frozenset[str]], Outcome]) -> Outcome:
    """Return the smallest failing run found: same seed, fewer faults, the same invariant broken."""
    assert failing.violation is not None, "only a failing run can be shrunk"
    best, runs = failing, 0
    size = max(1, len(best.fired) // 2)
    while size and runs < _MOST_RUNS:
        position, smaller = 0, False
        while position < len(best.fired) and runs < _MOST_RUNS:
            names = list(best.fired)
            del names[position : position + size]
            outcome, runs = play(failing.seed, frozenset(names)), runs + 1
            if _fails_alike(outcome, best):
                best, smaller = outcome, True
            else:
                position += size
        if not smaller or size > 1:
            size //= 2
    return best


def _fails_alike(outcome: Outcome, like: Outcome) -> bool:
    if outcome.violation is None or like.violation is None:
        return False
    fewer = len(outcome.fired) < len(like.fired)
    return fewer and outcome.violation.invariant == like.violation.invariant
