"""Which faults a seed has (swarm testing), and the planned ones among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

MESSAGE_KINDS: Final = ("lose-request", "lose-answer", "delay-request", "delay-answer")
ZOOKEEPER_KINDS: Final = (
    "zk-drop-before",
    "zk-drop-after",
    "zk-expire-before",
    "zk-expire-after",
    "zk-slow",
    "late-watch",
)
NODE_KINDS: Final = (
    "promote-slow",
    "promote-fail",
    "demote-slow",
    "demote-fail",
    "fence-fail",
    "fence-hang",
    "fence-lie",
)
EVENT_KINDS: Final = (
    "kill-namenode",
    "kill-zkfc",
    "freeze-namenode",
    "freeze-zkfc",
    "freeze-host",
    "power",
    "isolate",
    "partition",
    "cut-zookeeper",
    "unwell",
    "expire",
    "zk-away",
    "zk-restart",
    "zk-lag",
    "unready",
    "wall-step",
    "orphan",
)
OPERATOR_KINDS: Final = ("switchover", "two-switchovers", "cede", "pause", "drain")
AIMED_KINDS: Final = ("unlock", "relay", "stall", "half-way", "overtake", "deaf")
"""They have streams of their own, and draw nothing from the others'.

Some strike at the next promotion, wherever that is: there a takeover is most easily hurt, and
faults at drawn times seldom meet it.
"""
SILENT_KINDS: Final = (
    "stop-journal",
    "restart-journal",
    "cut-writer",
    "cut-asker",
    "short-stall",
    "lose-host",
    "cut-both",
)
"""What befalls JournalNodes, and makes an owner of the lock silent; of worlds that witness it."""
CALM_KINDS: Final = ("zk-away", "zk-restart", "zk-lag")
"""What a healthy active must not notice: no role may change for it."""


@dataclass(frozen=True, slots=True)
class Swarm:
    """What this seed is about."""

    names: tuple[str, ...]
    rates: Mapping[str, float]
    events: Mapping[str, float]
    aimed: Mapping[str, float]
    calm: bool
    held: bool
    aborts: bool
    fencing: str
    restarts: bool
    """A supervisor starts processes that have ended."""
    keeps: bool
    """A controller goes on in the session of the one before it, which has ended, or ends it."""
    drift: float
    horizon: float
    orderly: bool
    """Nothing goes wrong: operators only, one at a time."""
    rivals: bool
    """Nothing goes wrong either, but that operators want different actives, two at a time."""
    ranked: bool
    """nn1 has the highest priority, and so on."""
    witnessed: bool
    """The journal has three nodes, and the lock of a silent owner may be removed."""
    java: bool
    """There, the writers are Hadoop's, whose silence proves nothing."""
    placed: bool = False
    """Faults and wishes wait for places: aimed worlds."""

    @property
    def reliable(self) -> bool:
        """No message is lost or late but by cuts, and no process closes its port."""
        return not any(self.rates[kind] for kind in MESSAGE_KINDS) and not self.aimed.get("deaf")

    @classmethod
    def drawn(cls, seed: int) -> "Swarm":
        rng = Random(f"{seed} failover")
        calm = rng.random() < 0.08
        quiet = not calm and rng.random() < 0.06
        rivals = quiet and Random(f"{seed} rivals").random() < 0.5
        few = 0.35
        rates = {
            kind: rng.choice((0.005, 0.02, 0.08)) if rng.random() < few else 0.0
            for kind in (*MESSAGE_KINDS, *ZOOKEEPER_KINDS)
        }
        rates |= {
            kind: rng.choice((0.15, 0.4, 0.8)) if rng.random() < few else 0.0 for kind in NODE_KINDS
        }
        rates["late-watch"] *= 5  # it has few occasions
        events = {kind: rng.uniform(0.5, 2) if rng.random() < few else 0.0 for kind in EVENT_KINDS}
        events |= {
            kind: rng.uniform(0.5, 2.5) if rng.random() < few else 0.0 for kind in OPERATOR_KINDS
        }
        if rng.random() < 0.3:
            events["orphan"] = rng.uniform(1, 2)
        if calm:
            rates = dict.fromkeys(rates, 0.0)
            events = {kind: rng.uniform(0.5, 2) for kind in CALM_KINDS}
        if quiet:
            rates = dict.fromkeys(rates, 0.0)
            events = {}
        return cls(
            names=("nn1", "nn2", "nn3") if rng.random() < 0.5 else ("nn1", "nn2"),
            rates=rates,
            events=events,
            aimed={} if calm or quiet else _aimed(Random(f"{seed} aimed")),
            calm=calm,
            held=rng.random() < 0.5,
            aborts=rng.random() < 0.7,
            fencing=rng.choice(("ssh", "power", "ssh+power", "epoch", "ssh+epoch")),
            restarts=rng.random() < 0.7,
            keeps=Random(f"{seed} keeps").random() < 0.25,
            drift=rng.choice((0.0, 0.0, 0.02)),
            horizon=rng.choice((15.0, 25.0, 35.0)),
            orderly=quiet and not rivals,
            rivals=rivals,
            ranked=rng.random() < 0.25,
            witnessed=(witnessed := Random(f"{seed} witnessed")).random() < 0.5,
            java=witnessed.random() < 0.1,
        )


def _aimed(rng: Random) -> dict[str, float]:
    if rng.random() < 0.6:
        return {}
    return {kind: rng.uniform(0.5, 1.5) if rng.random() < 0.4 else 0.0 for kind in AIMED_KINDS}


@dataclass(frozen=True, slots=True)
class Event:
    """One planned fault or wish of an operator."""

    at: float
    kind: str
    victim: int
    other: int
    lasts: float

    @property
    def name(self) -> str:
        """What a replay chooses it by."""
        return f"{self.kind}@{self.at:.4f}"


def plan(swarm: Swarm, rng: Random, begins: float) -> tuple[Event, ...]:
    """Draw the events, from the time when the first active is expected."""
    events = []
    if swarm.orderly:
        return tuple(
            Event(begins + 5.0 * number, "switchover", rng.randrange(1000), 0, 0.0)
            for number in range(1, int(swarm.horizon / 5.0))
        )
    if swarm.rivals:
        # The second comes while the first is asked, takes over, is done or lets everybody go.
        return tuple(
            Event(begins + 5.0 * number, "two-switchovers", rng.randrange(1000), 0, seconds)
            for number in range(1, int(swarm.horizon / 5.0))
            for seconds in (rng.choice((0.015, 0.03, 0.1, 0.4)) * rng.random(),)
        )
    for kind in (*EVENT_KINDS, *OPERATOR_KINDS):
        rate = swarm.events.get(kind, 0.0)
        for _ in range(int(rate + rng.random()) if rate else 0):
            events.append(_event(kind, swarm, rng, begins))
    return tuple(sorted(events, key=lambda event: event.at))


def plan_aimed(swarm: Swarm, rng: Random, begins: float) -> tuple[Event, ...]:
    """Draw those events that have streams of their own."""
    return tuple(
        _event(kind, swarm, rng, begins)
        for kind, rate in swarm.aimed.items()
        for _ in range(int(rate + rng.random()) if rate else 0)
    )


def plan_silent(swarm: Swarm, rng: Random, begins: float) -> tuple[Event, ...]:
    """Draw those of worlds in which JournalNodes count as witnesses; a stream of their own, too."""
    if not swarm.witnessed or swarm.calm or swarm.orderly or swarm.rivals:
        return ()
    rates = {kind: rng.uniform(0.5, 2.0) if rng.random() < 0.4 else 0.0 for kind in SILENT_KINDS}
    return tuple(
        _event(kind, swarm, rng, begins)
        for kind, rate in rates.items()
        for _ in range(int(rate + rng.random()) if rate else 0)
    )


def _event(kind: str, swarm: Swarm, rng: Random, begins: float) -> Event:
    return Event(
        at=begins + rng.uniform(0, swarm.horizon),
        kind=kind,
        victim=rng.randrange(1000),
        other=rng.randrange(1000),
        lasts=rng.choice((0.3, 1.0, 3.0, 6.0, 12.0)) * (0.5 + rng.random()),
    )
