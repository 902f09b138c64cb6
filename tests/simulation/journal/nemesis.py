"""The planned faults of a seed: what is cut off, killed, frozen or hurt, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.journal.swarm import EVENT_KINDS, WEAR_KINDS, Swarm


@dataclass(frozen=True, slots=True)
class Event:
    """One planned fault.  ``lasts`` is until it is mended, in seconds."""

    at: float
    kind: str
    victim: int
    other: int
    lasts: float
    after: int

    @property
    def name(self) -> str:
        """What a replay chooses it by."""
        return f"{self.kind}@{self.at:.4f}"


def plan(swarm: Swarm, rng: Random, horizon: float) -> tuple[Event, ...]:
    events = []
    for kind in (*EVENT_KINDS, *WEAR_KINDS):
        rate = swarm.events.get(kind, 0.0)
        for _ in range(int(rate + rng.random()) if rate else 0):
            events.append(
                Event(
                    at=rng.uniform(0, horizon),
                    kind=kind,
                    victim=rng.randrange(1000),
                    other=rng.randrange(1000),
                    lasts=rng.choice((0.01, 0.1, 1.0, 3.0)) * (0.5 + rng.random()),
                    after=rng.randint(1, 25),
                )
            )
    return tuple(sorted(events, key=lambda event: event.at))


def cuts(event: Event, nodes: Sequence[str], others: Sequence[str]) -> tuple[tuple[str, str], ...]:
    everyone = [*nodes, *others]
    victim = nodes[event.victim % len(nodes)]
    match event.kind:
        case "isolate":
            return tuple(
                link
                for peer in everyone
                if peer != victim
                for link in ((victim, peer), (peer, victim))
            )
        case "one-way":
            peer = others[event.other % len(others)] if others else nodes[0]
            return ((victim, peer),) if event.other % 2 else ((peer, victim),)
        case _:
            rng = Random(event.other)
            side = {name: rng.random() < 0.5 for name in everyone}
            return tuple((a, b) for a in everyone for b in everyone if side[a] != side[b])
