"""Which faults a seed has (swarm testing), and the planned ones among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

MESSAGE_KINDS: Final = ("lose-request", "lose-answer", "delay-request", "delay-answer")
NAMENODE_KINDS: Final = ("kill-namenode", "freeze-namenode", "switch", "cut-journal", "safe-mode")
DATANODE_KINDS: Final = ("kill-datanode", "freeze-datanode", "cut-datanode", "wipe-volume")
WIDE_KINDS: Final = ("restart-all", "shrink")
"""Everything restarts; or every file wants one replica, and the active goes soon after."""
NEVER: Final = 1e9
EVENT_KINDS: Final = (*NAMENODE_KINDS, *DATANODE_KINDS, *WIDE_KINDS)


@dataclass(frozen=True, slots=True)
class Swarm:
    """What this seed is about.

    ``java``: how many of the DataNodes are like Java's, whose deletions take up to
    ``deletion_seconds``.  ``report_seconds`` are between full reports that nobody has asked for;
    in most worlds there is none.  ``fenced``: who takes over kills whom it follows.
    """

    datanodes: int
    java: int
    volumes: int
    clients: int
    replication: int
    deletion_seconds: float
    report_seconds: float
    fenced: bool
    held: bool
    horizon: float
    rates: Mapping[str, float]
    events: Mapping[str, float]

    @classmethod
    def drawn(cls, seed: int) -> "Swarm":
        """The options of a seed."""
        rng = Random(f"{seed} blocks")
        few = 0.4
        datanodes = rng.choice((3, 3, 4, 5))
        return cls(
            datanodes=datanodes,
            java=0,
            volumes=rng.choice((1, 1, 2)),
            clients=rng.choice((1, 2, 3)),
            replication=rng.choice((1, 2, 3, 3)),
            deletion_seconds=rng.choice((0.5, 5.0, 20.0)),
            report_seconds=rng.choice((60.0, NEVER, NEVER)),
            fenced=rng.random() < 0.4,
            held=rng.random() < 0.5,
            horizon=rng.choice((30.0, 60.0)),
            rates={
                kind: rng.choice((0.005, 0.02, 0.08)) if rng.random() < few else 0.0
                for kind in MESSAGE_KINDS
            },
            events={
                kind: rng.uniform(0.5, 2.5) if rng.random() < few else 0.0 for kind in EVENT_KINDS
            },
        )


@dataclass(frozen=True, slots=True)
class Event:
    """One planned fault."""

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
    """Draw the events."""
    events = [
        Event(
            at=begins + rng.uniform(0, swarm.horizon),
            kind=kind,
            victim=rng.randrange(1000),
            other=rng.randrange(1000),
            lasts=rng.choice((0.5, 3.0, 8.0, 20.0)) * (0.5 + rng.random()),
        )
        for kind in EVENT_KINDS
        for rate in (swarm.events[kind],)
        for _ in range(int(rate + rng.random()) if rate else 0)
    ]
    return tuple(sorted(events, key=lambda event: event.at))
