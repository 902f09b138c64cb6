"""What a recovery by some majority would find: the oracle's own rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tests.simulation.engine.verdict import Violated
from tests.simulation.journal.tags import Run, Tag
from tests.simulation.journal.views import View, digest

Log = dict[int, Tag]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One node's copy of the newest segment, by the order of recovery."""

    finalized: bool
    standing: int
    last: int
    run: Run

    def rank(self) -> tuple[bool, int, int]:
        return (self.finalized, self.standing, self.last)


def majorities(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return every group of more than half of the nodes."""
    least = len(names) // 2 + 1
    return tuple(
        group for size in range(least, len(names) + 1) for group in combinations(names, size)
    )


def recovered(group: Sequence[str], views: dict[str, View], since: int) -> Log:
    """Return the log behind ``since`` that a recovery by exactly these nodes would give.

    Finalized segments below the newest one are read from any node that has them; the newest one is
    chosen: finalized, else the highest of accepted epoch and the segment's writer, else the
    longest.
    """
    log: Log = {}
    starts = [first for node in group if (first := views[node].newest) is not None]
    if not starts:
        return log
    newest = max(starts)
    for node in group:
        for run in views[node].finalized.values():
            if run.first < newest and run.last > since:
                log.update(zip(range(run.first, run.last + 1), run.tags, strict=True))
    candidates = [
        candidate
        for node in group
        if (candidate := _candidate(node, views[node], newest)) is not None
    ]
    best = max(candidates, key=_Candidate.rank)
    for other in candidates:
        if other.rank() == best.rank() and other.run.tags != best.run.tags:
            raise Violated(
                "I6" if best.finalized else "I4",
                f"{group} hold equally good copies of segment {newest} with different edits:"
                f" {best.run.tags} and {other.run.tags}",
            )
    log.update(zip(range(newest, best.run.last + 1), best.run.tags, strict=True))
    return log


def _candidate(node: str, view: View, first: int) -> _Candidate | None:
    if first in view.finalized:
        run = view.finalized[first]
        return _Candidate(True, 0, run.last, run)
    run_or_none = view.live.get(first)
    decision = view.accepted.get(first)
    if decision is not None:
        if run_or_none is None or digest(run_or_none) != decision.digest:
            held = "nothing" if run_or_none is None else f"{run_or_none.tags}"
            raise Violated(
                "I18",
                f"{node} accepted {first}-{decision.last} in epoch {decision.epoch},"
                f" and its disk holds {held}",
            )
        standing = max(decision.epoch, view.writers[first])
        return _Candidate(decision.finalized, 0 if decision.finalized else standing,
                          decision.last, run_or_none)  # fmt: skip
    if run_or_none is None:
        return None
    return _Candidate(False, view.writers[first], run_or_none.last, run_or_none)


def common(logs: Sequence[Log], txids: range, when: str) -> Log:
    """Return what a recovery has found: the same edits, whichever majority of voters it asked.

    Raises:
        Violated: majorities differ, or there is none.
    """
    if not logs:
        raise Violated("I21", f"{when}, and no majority of voters is left")
    found = Log()
    for txid in txids:
        tag = logs[0].get(txid)
        if tag is None or any(log.get(txid) != tag for log in logs):
            raise Violated("I13", f"{when}, but majorities differ about {txid}")
        found[txid] = tag
    return found
