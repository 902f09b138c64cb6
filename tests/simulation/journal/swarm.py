"""Which faults a seed has: a random subset of kinds, each with its own rate (swarm testing)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

MESSAGE_KINDS: Final = (
    "lose-request",
    "lose-answer",
    "delay-request",
    "delay-answer",
    "duplicate",
    "http-cut",
    "http-flip",
    "slow-disk",
)
EVENT_KINDS: Final = (
    "partition",
    "one-way",
    "isolate",
    "kill",
    "kill-at-disk",
    "power",
    "power-at-disk",
    "power-all",
    "eio",
    "enospc",
    "freeze-node",
    "freeze-writer",
    "kill-writer",
)
RESTART_KINDS: Final = ("twin",)
"""What a node meets as soon as it is up again: requests that it was sent before."""
WEAR_KINDS: Final = ("wipe", "copy-folder", "rot")
"""What becomes of disks over the years; only ever of a minority, so that good copies stay."""
LIFE_KINDS: Final = ("blind", "fade")
"""A writer that never reaches a minority; one whose last messages reach only some nodes."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many edits a segment has at most, and a batch, and for how long a writer waits at most
    behind a batch, in seconds, one of these for each segment.

    There are ``rolls`` times as many of them as usual, and each has ``least`` edits at least.
    """

    edits: int = 4
    batch: int = 3
    idle: Sequence[float] = (0, 0, 0.05, 2.5)
    rolls: int = 1
    least: int = 1


USUAL: Final = Pace()


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What goes on in the background, and how well clocks run.  Seconds of 0 are never.

    ``hadoop_like`` is the share of writers that admit no learner.  With ``byzantine`` somebody says
    to every node what no writer would.
    """

    sync_seconds: float = 0.0
    scrub_seconds: float = 0.0
    lease_seconds: float = 0.0
    drift: float = 0.0
    purging: float = 0.0
    hadoop_like: float = 0.0
    byzantine: bool = False


@dataclass(frozen=True, slots=True)
class Swarm:
    """What this seed is about.

    What is behind ``lanes`` is other than this in aimed worlds only: faults wait for places, every
    three writers leave copies behind that differ (``relay``), faults meet batches and returns into
    segments alone (``long``), or old requests do, too (``late``), or plots of several steps do
    (``rejoin`` says what about), and a writer keeps ``window_bytes`` for a slow node (0: the
    usual).
    """

    nodes: int
    rates: Mapping[str, float]
    events: Mapping[str, float]
    lives: Mapping[str, float]
    writers: int
    readers: int
    crowd: float
    held: bool
    unclosed: float
    upkeep: Upkeep = Upkeep()
    lanes: bool = False
    beside: bool = False
    """Lanes are opened next to a stream, as with certificates."""
    aimed: bool = False
    relay: bool = False
    long: bool = False
    late: bool = False
    rejoin: str = ""
    pace: Pace = USUAL
    window_bytes: int = 0

    @classmethod
    def drawn(cls, seed: int) -> "Swarm":
        """Draw the options of a seed.  In every fourth one the nodes take write lanes."""
        return replace(cls._drawn(seed), lanes=seed % 4 == 0, beside=seed % 8 == 4)

    @classmethod
    def _drawn(cls, seed: int) -> "Swarm":
        rng = Random(seed)
        rates = {
            kind: rng.choice((0.01, 0.04, 0.15)) if rng.random() < 0.4 else 0.0
            for kind in MESSAGE_KINDS
        }
        for kind in ("http-cut", "http-flip"):  # these have few occasions
            rates[kind] = min(0.5, 5 * rates[kind])
        events = {kind: rng.uniform(0.5, 2) if rng.random() < 0.4 else 0.0 for kind in EVENT_KINDS}
        lives = {kind: rng.choice((0.0, 0.4, 0.9)) for kind in LIFE_KINDS}
        # A third of the seeds is about one thing: short lives that leave copies behind which
        # differ from node to node.  Recovery earns its keep there.
        relay = rng.random() < 0.33
        swarm = cls(
            nodes=5 if rng.random() < 0.2 and not relay else 3,
            rates=dict.fromkeys(rates, 0.0) if relay and rng.random() < 0.7 else rates,
            events=dict.fromkeys(events, 0.0) if relay and rng.random() < 0.7 else events,
            lives=dict.fromkeys(LIFE_KINDS, 0.7) if relay else lives,
            writers=rng.choice((5, 6, 7)) if relay else rng.choice((2, 3, 4, 6)),
            readers=rng.choice((0, 1, 1)),
            crowd=0.3 if relay else rng.choice((0.2, 0.6, 1.5)),
            held=rng.random() < 0.5,
            unclosed=0.9 if relay else rng.choice((0.1, 0.4)),
        )
        return swarm._in_the_long_run(seed)

    def _in_the_long_run(self, seed: int) -> "Swarm":
        """Give half of the seeds some of what a journal meets in years, and does about it."""
        rng = Random(f"{seed} in the long run")
        if rng.random() < 0.5:
            return self
        upkeep = Upkeep(
            sync_seconds=rng.choice((0.0, 0.0, 0.7, 3.0)),
            scrub_seconds=rng.choice((0.0, 0.0, 1.5)),
            lease_seconds=rng.choice((0.0, 0.0, 0.0, 0.4, 1.0)),
            drift=rng.choice((0.0, 0.0, 0.02)),
            purging=rng.choice((0.0, 0.0, 0.5)),
        )
        rates = {**self.rates, "twin": rng.choice((0.0, 0.4, 0.9))}
        wear = {k: rng.uniform(0.5, 2) if rng.random() < 0.35 else 0.0 for k in WEAR_KINDS}
        if Random(f"{seed} byzantine").random() < 0.2:
            upkeep = replace(upkeep, byzantine=True)
        grown = replace(self, upkeep=upkeep, rates=rates, events={**self.events, **wear})
        if rng.random() < 0.75:
            return grown
        # Few writers that live on while their nodes restart again and again.
        events = {**grown.events, "kill": 8.0, "power": 2.0, "kill-writer": 0.0}
        rates = {**rates, "twin": 0.9}
        grown = replace(grown, writers=2, crowd=1.5, unclosed=0.05, events=events, rates=rates)
        return grown._under_hadoop(seed)

    def _under_hadoop(self, seed: int) -> "Swarm":
        """Give some of these writers that live long, admit no node, and lose disks."""
        rng = Random(f"{seed} under Hadoop's writers")
        if rng.random() < 0.5:
            return self
        upkeep = replace(
            self.upkeep, sync_seconds=0.5, hadoop_like=rng.choice((0.5, 1.0)), purging=0.0
        )
        calm = rng.random() < 0.6
        rates = dict.fromkeys(self.rates, 0.0) if calm else self.rates
        events = dict.fromkeys(self.events, 0.0) if calm else self.events
        lives = dict.fromkeys(self.lives, 0.0) if calm else self.lives
        events = {**events, "kill": 0.5, "power": 0.3, "wipe": 1.5, "copy-folder": 0.7}
        return replace(
            self,
            rates={**rates, "lose-request": rng.choice((0.0, 0.01, 0.04))},
            events=events,
            lives=lives,
            upkeep=upkeep,
            writers=3,
            crowd=10.0,
            unclosed=0.05,
        )
