"""Every combination of a few strikes over the scripted workload.

Strikes are ordered by when their calls are sent.  A run shows which calls follow its last strike;
each of them, with each kind of fault, is a run with one strike more, and there are no others.

Two reductions, each optional.  *Symmetry*: nodes are interchangeable, so that of the nodes that no
strike has hit yet only the first can be hit next.  *Rest*: at two pauses of the script no message
is under way; runs with equal disks, memories and histories there go on alike, but for chance in
the latencies, and only the first of them does.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from journal.core.state import NO_SERIAL
from tests.simulation.journal.scripted import Call, Kind, Played, Strike, play
from tests.simulation.journal.world import World

_STRIKE: Final = re.compile(r"([a-z-]+)@(jn\d+)#(\d+)\Z")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is explored: how many strikes, on how many nodes."""

    depth: int
    nodes: int = 3
    symmetric: bool = False
    rest: bool = False
    silent: bool = False
    """Lost messages show as nothing at all, not as a broken connection."""


@dataclass(slots=True)
class Tally:
    """What a part of the tree gave."""

    worlds: dict[int, int] = field(default_factory=dict)
    """Runs, by their number of strikes."""
    whole: int = 0
    """Runs that were played to the end, because they never became the same as an earlier one."""
    spent: int = 0
    """Runs in which a strike had no effect: its node was down already."""
    steps: int = 0
    checks: int = 0
    acknowledged: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def count(self, played: Played) -> None:
        depth, outcome = len(played.strikes), played.outcome
        self.worlds[depth] = self.worlds.get(depth, 0) + 1
        self.whole += played.whole
        self.spent += len(outcome.fired) < depth
        self.steps += outcome.steps
        self.checks += outcome.checks
        self.acknowledged += outcome.acknowledged
        if outcome.violation is not None:
            self.failures.append((named(played.strikes), str(outcome.violation)))

    def add(self, other: "Tally") -> None:
        for depth, count in other.worlds.items():
            self.worlds[depth] = self.worlds.get(depth, 0) + count
        self.whole += other.whole
        self.spent += other.spent
        self.steps += other.steps
        self.checks += other.checks
        self.acknowledged += other.acknowledged
        self.failures += other.failures


def named(strikes: tuple[Strike, ...]) -> str:
    """Return what ``parsed`` reads."""
    return ",".join(map(str, strikes))


def parsed(names: str) -> tuple[Strike, ...]:
    """Strikes by name.

    Raises:
        ValueError: if a name is none.
    """
    strikes = []
    for name in filter(None, names.split(",")):
        found = _STRIKE.match(name)
        if found is None:
            raise ValueError(f"{name!r} is no strike, as in crash-before@jn2#7")
        strikes.append(Strike(Call(found[2], int(found[3])), Kind(found[1])))
    return tuple(strikes)


def first_strikes(scope: Scope) -> list[Strike]:
    """Return every single strike over an undisturbed run: the roots of as many trees."""
    return list(_next_strikes(play(nodes=scope.nodes), scope))


class Explorer:
    """Plays trees of runs; it knows the pauses that it has seen in all of them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._seen: set[bytes] = set()

    def explore(self, first: Strike) -> Tally:
        tally, scope = Tally(), self.scope
        waiting: list[tuple[Strike, ...]] = [(first,)]
        while waiting:
            played = play(
                waiting.pop(), nodes=scope.nodes, silent=scope.silent, familiar=self._familiar
            )
            tally.count(played)
            if len(played.strikes) < scope.depth:
                waiting += [(*played.strikes, s) for s in _next_strikes(played, scope)]
        return tally

    def _familiar(self, pause: str, world: World, more: object) -> bool:
        """Return whether a run can end here.  One that others branch off from cannot."""
        if not self.scope.rest or len(world.faults.fired) < self.scope.depth:
            return False
        state = _state(pause, world, more)
        known = state in self._seen
        self._seen.add(state)
        return known


def _next_strikes(played: Played, scope: Scope) -> Iterator[Strike]:
    hit = {strike.call.node for strike in played.strikes}
    untouched = [f"jn{n}" for n in range(1, scope.nodes + 1) if f"jn{n}" not in hit]
    for call in played.calls_after:
        if not scope.symmetric or call.node in hit or call.node == untouched[0]:
            for kind in Kind:
                yield Strike(call, kind)


def _state(pause: str, world: World, more: object) -> bytes:
    """Return all that the rest of a run depends on, but for chance."""
    parts: list[object] = [pause, more]
    for machine in world.machines.values():
        platter = machine.platter
        for names in (platter.cached, platter.durable):
            for path in sorted(names):
                inode = names[path]
                parts.append((str(path), bytes(inode.cached), inode.durable))
        parts.append(machine.up)
        if machine.up and machine.owner is not None:
            parts.append(replace(machine.owner.state, serial=NO_SERIAL))
    oracle = world.oracle
    parts.append((oracle.settled, sorted(oracle.must.items()), sorted(oracle.history.items())))
    parts.append(sorted(oracle._decided.items()))
    return hashlib.sha256(repr(parts).encode()).digest()
