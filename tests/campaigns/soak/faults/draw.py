"""Draws faults from a seed before anything runs, so that a run can be played again."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.campaigns.soak.faults.faults import (
    ACTIVE,
    ALL,
    ROLES,
    STANDBYS,
    ZKFCS,
    Clock,
    Cut,
    Drain,
    Fault,
    Freeze,
    FullDisk,
    Kill,
    Loss,
    Narrow,
    Pause,
    ReadOnlyDisk,
    Revenant,
    RollingRestart,
    SlowDisk,
    Switchover,
    What,
    Wipe,
    ways_between,
)
from tests.campaigns.soak.faults.hosts import (
    CLIENTS,
    DATANODES,
    FILE_CLIENTS,
    JOURNALNODES,
    ZOOKEEPERS,
)


def _seconds(rng: Random, least: float, most: float) -> float:
    """Draw short ones as often as long ones: each power of ten weighs the same."""
    return round(least * float((most / least) ** rng.random()), 2)


def _victims(rng: Random) -> tuple[str, ...]:
    """Draw what a kill or a freeze meets: a process, a host, or most of a kind."""
    return rng.choice(
        (
            (ACTIVE,), (ACTIVE,), (ACTIVE, "zkfc-active"), (ACTIVE, "zkfc-active"),
            ("zkfc-active",), (rng.choice(STANDBYS),), (ACTIVE, rng.choice(STANDBYS)), ZKFCS,
            (rng.choice(JOURNALNODES),), (rng.choice(JOURNALNODES),),
            tuple(sorted(rng.sample(JOURNALNODES, 2))), JOURNALNODES,
            (rng.choice(ZOOKEEPERS),), (rng.choice(ZOOKEEPERS),),
            tuple(sorted(rng.sample(ZOOKEEPERS, 2))), ZOOKEEPERS,
            (ACTIVE, rng.choice(JOURNALNODES)), (ACTIVE, rng.choice(ZOOKEEPERS)),
            (ACTIVE, "zkfc-active", *JOURNALNODES),
        )
    )  # fmt: skip


def _cut(rng: Random) -> Cut:
    flaps = rng.choice((1, 1, 1, 3, 8))
    shape = rng.choice(("host", "host", "halves", "one-way", "bridge", "pair"))
    match shape:
        case "host":
            host = rng.choice((ACTIVE, ACTIVE, rng.choice(ALL)))
            return Cut(ways_between((host,), [one for one in ALL if one != host]), shape, flaps)
        case "halves":
            first, second = _halves(rng)
            return Cut(ways_between(first, second), shape, flaps)
        case "one-way":
            host = rng.choice((ACTIVE, ACTIVE, *ALL))
            others = [one for one in ALL if one != host]
            hears = rng.random() < 0.5
            ways = tuple((host, one) if hears else (one, host) for one in others)
            return Cut(ways, shape, flaps)
        case "bridge":
            first, second = _halves(rng)
            bridge = rng.choice((*first, *second))
            sides = [[one for one in side if one != bridge] for side in (first, second)]
            return Cut(ways_between(*sides), shape, flaps)
        case _:
            host = rng.choice((ACTIVE, *STANDBYS))
            some: tuple[str, ...] = rng.choice([ZOOKEEPERS, JOURNALNODES, ROLES, (CLIENTS,)])
            return Cut(ways_between((host,), [one for one in some if one != host]), shape, flaps)


_OTHER_SERVERS: Final = (*ZOOKEEPERS, *JOURNALNODES, *STANDBYS)


def _halves(rng: Random) -> tuple[list[str], list[str]]:
    mixed = rng.sample(ALL, len(ALL))
    at = rng.randint(3, len(ALL) - 3)
    return mixed[:at], mixed[at:]


def _disk(rng: Random) -> str:
    return rng.choice((*JOURNALNODES, *JOURNALNODES, *ROLES))


def _short(rng: Random) -> float:
    return _seconds(rng, 0.5, 12)


def _clock(rng: Random) -> Clock:
    size = rng.choice((0.5, 30.0, 4000.0, 90000.0))
    return Clock(rng.choice((*JOURNALNODES, *ROLES)), rng.choice((-1, 1)) * size)


def _narrow(rng: Random) -> Narrow:
    return Narrow(rng.choice(ALL), rng.choice((64, 256)), rng.choice((100, 800)))


def _deposed(rng: Random) -> Cut:
    """Cut so that clients which still hear the old active could be misled by it.

    An active holds reads back behind a write that it cannot finish, so that only clients that read
    and hear no writer see how it answers.
    """
    others = rng.choice((_OTHER_SERVERS, (*_OTHER_SERVERS, CLIENTS)))
    return Cut(ways_between((ACTIVE,), others), "deposed", rng.choice((1, 1, 1, 3)))


def _unheard(_rng: Random) -> Cut:
    """Lose the active's answers: what it is asked is done, and asked again."""
    return Cut(((ACTIVE, CLIENTS),), "unheard")


def _revenant(rng: Random) -> Revenant:
    majority = tuple(sorted(rng.sample(JOURNALNODES, 2)))
    return rng.choice(
        (Revenant(), Revenant(cut_off=True), Revenant(majority), Revenant(JOURNALNODES))
    )


def _datanode(rng: Random) -> What:
    """Strike DataNodes; one always lives: a starting NameNode waits for a replica of each block."""
    host, other, _ = rng.sample(DATANODES, 3)
    return rng.choice(
        (
            Kill((host,)), Kill(tuple(sorted((host, other)))), Kill((ACTIVE, host)),
            Freeze((host,)), Freeze(tuple(sorted((host, other)))),
            Cut(ways_between((host,), ROLES), "datanode"),
            Cut(ways_between((host,), (ACTIVE,)), "datanode"),
            Cut(ways_between((host,), (other, FILE_CLIENTS)), "datanode"),
        )
    )  # fmt: skip


def _at_once(_rng: Random) -> float:
    return 0.0


DATANODE: Final = "datanode"
_KINDS: Final[dict[str, tuple[int, Callable[[Random], What], Callable[[Random], float]]]] = {
    "kill": (22, lambda rng: Kill(_victims(rng)), _short),
    "freeze": (18, lambda rng: Freeze(_victims(rng)), lambda rng: _seconds(rng, 0.1, 60)),
    "cut": (22, _cut, lambda rng: _seconds(rng, 0.5, 25)),
    "deposed": (5, _deposed, lambda rng: _seconds(rng, 1, 25)),
    # Longer than a client waits for an answer.
    "unheard": (3, _unheard, lambda rng: _seconds(rng, 3.5, 9)),
    "revenant": (4, _revenant, lambda rng: _seconds(rng, 1, 8)),
    "loss": (6, lambda rng: Loss(rng.choice(ALL), rng.choice((5, 20, 50))), _short),
    "narrow": (3, _narrow, _short),
    "full": (4, lambda rng: FullDisk(_disk(rng)), _short),
    "read-only": (2, lambda rng: ReadOnlyDisk(rng.choice(JOURNALNODES)), _short),
    "slow": (4, lambda rng: SlowDisk(_disk(rng), rng.choice((20, 200, 1500))), _short),
    "wipe": (2, lambda rng: Wipe(rng.choice(JOURNALNODES)), _at_once),
    "clock": (3, _clock, _short),
    "switchover": (8, lambda rng: Switchover(rng.choice(STANDBYS)), _at_once),
    "pause": (2, lambda rng: Pause(rng.random() < 0.5), _short),
    "drain": (2, lambda rng: Drain(rng.choice(ROLES)), _short),
    "rolling": (
        1,
        lambda rng: RollingRestart(rng.choice((JOURNALNODES, ROLES, ZKFCS, ZOOKEEPERS))),
        _at_once,
    ),
    DATANODE: (24, _datanode, _short),
}
"""How often each is drawn, what it is, and how many seconds it lasts."""


def _one(rng: Random, kinds: Sequence[str]) -> tuple[What, float]:
    (kind,) = rng.choices(kinds, [_KINDS[kind][0] for kind in kinds])
    _, what, seconds = _KINDS[kind]
    return what(rng), seconds(rng)


ALL_KINDS: Final = (*_KINDS, "ambush")
"""What a draw may be limited to."""
KINDS: Final = tuple(kind for kind in ALL_KINDS if kind != DATANODE)
"""Where there are no DataNodes."""
LONGEST_SECONDS: Final = 60.0
AMBUSHES: Final = 0.12
"""In this share of rounds the active is struck while its edits are on their way to no quorum."""
TOGETHER: Final = 0.3
"""In this share of rounds a second fault strikes while the first one lasts."""
_WITH_OTHERS: Final = ("kill", "freeze", "cut", "loss", "narrow", "slow", "clock", "switchover")


def _ambush(rng: Random) -> tuple[Fault, Fault]:
    """Lose what a NameNode has answered too early, or not written down."""
    majority = tuple(sorted(rng.sample(JOURNALNODES, 2)))
    first: What = rng.choice(
        (
            Freeze(majority),
            Freeze(JOURNALNODES),
            Cut(ways_between((ACTIVE,), JOURNALNODES), "pair"),
            Cut(ways_between((ACTIVE,), majority), "pair"),
            Cut(ways_between((ACTIVE,), _OTHER_SERVERS), "deposed"),
        )
    )
    second: What = rng.choice(
        (
            Kill((ACTIVE,)),
            Kill((ACTIVE, "zkfc-active")),
            # What it alone has is no part of what its successor recovers from the others.
            Kill((ACTIVE, *(one for one in JOURNALNODES if one not in majority))),
            Freeze((ACTIVE,)),
            Switchover(STANDBYS[0]),
        )
    )
    seconds = _seconds(rng, 0.3, 8)
    after = round(seconds * rng.uniform(0.3, 0.9), 2)
    return Fault(first, 0.0, seconds), Fault(second, after, _seconds(rng, 2, 8))


@dataclass(frozen=True, slots=True)
class Draw:
    """What a seed draws: ``count`` faults of these kinds alone, cut to ``longest_seconds``."""

    seed: int
    count: int
    longest_seconds: float = LONGEST_SECONDS
    only: tuple[str, ...] = KINDS

    @property
    def logs_in(self) -> bool:
        """Whether the cluster fences over the network first; else epochs alone protect it."""
        return Random(f"{self.seed} fencing").random() < 0.5

    def rounds(self) -> Iterator[tuple[Fault, ...]]:
        """Yield the faults in rounds; between two rounds the cluster gets well."""
        rng = Random(f"{self.seed} faults")
        left = self.count
        while left > 0:
            drawn = self._round(rng)[:left]
            left -= len(drawn)
            yield tuple(
                replace(
                    fault,
                    after_seconds=min(fault.after_seconds, self.longest_seconds),
                    seconds=min(fault.seconds, self.longest_seconds),
                )
                for fault in drawn
            )

    def lines(self) -> list[str]:
        """Return the whole schedule as JSON; the same for the same seed."""
        return [
            json.dumps({"round": number, "faults": [fault.line() for fault in drawn]})
            for number, drawn in enumerate(self.rounds(), 1)
        ]

    def _round(self, rng: Random) -> tuple[Fault, ...]:
        kinds = [kind for kind in _KINDS if kind in self.only]
        if "ambush" in self.only and (not kinds or rng.random() < AMBUSHES):
            return _ambush(rng)
        what, seconds = _one(rng, kinds)
        first = Fault(what, 0.0, seconds)
        others = [kind for kind in _WITH_OTHERS if kind in self.only]
        if seconds == 0 or not others or rng.random() >= TOGETHER:
            return (first,)
        what, lasts = _one(rng, others)
        return first, Fault(what, round(rng.uniform(0, seconds), 2), lasts)
