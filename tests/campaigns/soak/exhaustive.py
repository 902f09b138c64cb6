"""`./run soak journal --exhaustive pairs`: every pair (or triple) of faults at chosen calls."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from tests.campaigns.workers import workers
from tests.simulation.journal.exhaustive import Explorer, Scope, Tally, first_strikes
from tests.simulation.journal.scripted import Strike

DEPTHS: Final = {"singles": 1, "pairs": 2, "triples": 3}

_explorer: Explorer | None = None
"""Each worker process has one, so that it knows the pauses of all its trees."""


def explore_all(
    scope: Scope,
    jobs: int,
    *,
    roots: Sequence[Strike] | None = None,
    progress: Callable[[Tally, int, int], None] = lambda _tally, _done, _of: None,
) -> Tally:
    """Play every tree of the scope, or those with these roots, in ``jobs`` processes."""
    firsts = first_strikes(scope) if roots is None else list(roots)
    whole = Tally()
    with workers(jobs, _begin, scope) as pool:
        for done, part in enumerate(pool.map(_explore, firsts), start=1):
            whole.add(part)
            progress(whole, done, len(firsts))
    return whole


def facts(tally: Tally, scope: Scope, began: float) -> dict[str, object]:
    seconds = time.monotonic() - began
    runs = sum(tally.worlds.values())
    return {
        "depth": scope.depth,
        "nodes": scope.nodes,
        "symmetric": scope.symmetric,
        "worlds_by_strikes": {str(depth): count for depth, count in tally.worlds.items()},
        "worlds": runs,
        "played_to_the_end": tally.whole,
        "with_a_strike_at_a_dead_node": tally.spent,
        "states_checked": tally.checks,
        "edits_acknowledged": tally.acknowledged,
        "failed": len(tally.failures),
        "failures": [{"strikes": names, "why": why} for names, why in tally.failures[:10]],
        "worlds_per_second": round(runs / seconds, 1),
        "seconds": round(seconds, 1),
    }


def _begin(scope: Scope) -> None:
    global _explorer
    _explorer = Explorer(scope)


def _explore(first: Strike) -> Tally:
    assert _explorer is not None
    return _explorer.explore(first)
