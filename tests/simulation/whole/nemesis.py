"""Which faults a seed has, and the planned ones among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

HOSTS: Final = ("nn1", "nn2", "nn3")
JOURNALS: Final = ("jn1", "jn2", "jn3")
ZOOKEEPERS: Final = ("zk1", "zk2", "zk3")
CLIENTS: Final = ("c1", "c2", "c3")
READER: Final = "c4"
"""It only reads."""
DATANODES: Final = ("dn1", "dn2", "dn3")
WRITERS: Final = ("w1", "w2")
"""They write files to the DataNodes."""
DATANODE_KINDS: Final = ("kill-datanode", "freeze-datanode")
MESSAGE_KINDS: Final = ("lose-request", "lose-answer", "delay-request", "delay-answer")
ZOOKEEPER_KINDS: Final = ("zk-drop-after", "zk-expire-after", "zk-slow", "late-watch")
EVENT_KINDS: Final = (
    "kill-namenode",
    "kill-zkfc",
    "kill-journal",
    "power-host",
    "power-journal",
    "power-all",
    "freeze-namenode",
    "freeze-zkfc",
    "freeze-host",
    "freeze-journal",
    "isolate",
    "orphan",
    "deposed",
    "cut-journal",
    "cut-clients",
    "expire",
    "zk-away",
    "disk",
    "switchover",
    "ambush",
)
WITH_DATANODES: Final = 0.5
"""This share of the worlds has DataNodes."""
AIMED_KINDS: Final = ("ambush", "deposed", "orphan")
"""Where a slip in one part is not caught by another: they come four times as often."""
REPLACED_SECONDS: Final = 8.0
"""The lock of an active that is not heard goes to another one within this number of seconds."""


@dataclass(frozen=True, slots=True)
class Event:
    """One planned fault: when, whom, for how long."""

    name: str
    kind: str
    at: float
    lasts: float
    victim: int


@dataclass(frozen=True, slots=True)
class Swarm:
    """What a seed is about.

    ``follows``: standbys read the open segment as well.  ``synced``: JournalNodes fetch from each
    other what they lack.
    """

    hosts: tuple[str, ...]
    rates: Mapping[str, float]
    events: Mapping[str, float]
    fencing: str
    horizon: float
    held: bool
    lanes: bool
    beside: bool
    """Lanes are opened next to a stream, as with certificates."""
    follows: bool
    synced: bool
    datanodes: bool
    roll_seconds: float
    """Rarely: an active that writes nothing does not find that it was replaced."""

    @classmethod
    def drawn(cls, seed: int) -> "Swarm":
        rng = Random(f"{seed} whole")
        rates = {
            kind: rng.choice((0.002, 0.01, 0.03)) if rng.random() < 0.35 else 0.0
            for kind in (*MESSAGE_KINDS, *ZOOKEEPER_KINDS)
        }
        rates["slow-disk"] = rng.choice((0.0, 0.0, 0.0, 0.01))
        events = {kind: rng.uniform(0.5, 2) if rng.random() < 0.4 else 0.0 for kind in EVENT_KINDS}
        for kind in AIMED_KINDS:
            events[kind] *= 4
        lanes = rng.random() < 0.5
        return cls(
            hosts=HOSTS[: rng.choice((2, 2, 3))],
            rates=rates,
            events=events,
            fencing=rng.choice(("epoch", "ssh+epoch", "ssh+epoch", "power")),
            horizon=rng.choice((12.0, 20.0, 30.0)),
            held=rng.random() < 0.5,
            lanes=lanes,
            beside=lanes and rng.random() < 0.5,
            follows=rng.random() < 0.7,
            synced=rng.random() < 0.3,
            datanodes=Random(f"{seed} datanodes").random() < WITH_DATANODES,
            roll_seconds=rng.choice((4.0, 60.0)),
        )


def plan(swarm: Swarm, rng: Random, begins: float) -> list[Event]:
    kinds = [kind for kind, weight in swarm.events.items() if weight]
    if not kinds:
        return []
    weights = [swarm.events[kind] for kind in kinds]
    count = rng.choice((1, 2, 4, 7))
    drawn = rng.choices(kinds, weights, k=count)
    if swarm.datanodes:
        drawn += rng.choices(DATANODE_KINDS, k=rng.choice((0, 1, 3, 6)))
    return [
        Event(
            name=f"{kind}@{number}",
            kind=kind,
            at=begins + rng.uniform(0.5, swarm.horizon - 2.0),
            lasts=rng.choice((0.2, 1.0, 3.0, 8.0)) * rng.uniform(0.5, 1.5),
            victim=rng.randrange(1000),
        )
        for number, kind in enumerate(drawn)
    ]
