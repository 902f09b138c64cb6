"""Aimed worlds: faults and wishes wait for a place in a takeover, and come there.

Between a promotion and the record that it has succeeded, or in a pause in which the active was
asked to cede, nothing drawn by the clock comes often enough.  Seeds from ``FIRST`` on are such
worlds; the others are what they always were.
"""

from contextvars import Context
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from ha.notices.store import pause_path
from tests.simulation.failover.cluster import ZOOKEEPER
from tests.simulation.failover.nemesis import Event, Swarm
from tests.simulation.failover.zk_tree import Change, Create, Delete, SetData

if TYPE_CHECKING:
    from tests.simulation.failover.strikes import Strikes
    from tests.simulation.failover.world import World

FIRST: Final = 1_000_000_000
"""The first seed of an aimed world."""

_ZNODES: Final = {
    ZOOKEEPER.lock: "lock",
    ZOOKEEPER.breadcrumb: "breadcrumb",
    ZOOKEEPER.term: "record",
    pause_path(ZOOKEEPER): "pause",
}
PLACES: Final = (
    "lock made",
    "lock deleted",
    "breadcrumb written",
    "record written",
    "pause written",
    "asked transitionToActive",
    "asked transitionToStandby",
    "asked cedeActive",
    "asked gracefulFailover",
    "answered TransitionToActiveRequestProto",
    "answered TransitionToStandbyRequestProto",
    "answered CedeActiveRequestProto",
)
STRIKES: Final = (
    "kill-zkfc",
    "kill-namenode",
    "freeze-zkfc",
    "freeze-host",
    "power",
    "expire",
    "unwell",
    "cut-zookeeper",
    "isolate",
    "unlock",
    "cede",
    "switchover",
    "pause",
    "drain",
)
_WISHES: Final = frozenset({"cede", "switchover", "pause", "drain"})
_BUSY: Final = {"expire": 1.0, "switchover": 1.5, "cede": 1.0, "pause": 0.5}
"""So that there are takeovers and pauses to strike in."""


def drawn(seed: int) -> Swarm:
    """Draw what an aimed world is about: operators at work, and mostly no other faults."""
    rng = Random(f"{seed} places")
    base = Swarm.drawn(seed - FIRST)
    calm = rng.random() < 0.7
    events = _BUSY if calm or base.calm else {**base.events, **_BUSY}
    return replace(
        base,
        rates=dict.fromkeys(base.rates, 0.0) if calm else base.rates,
        events=events,
        calm=False,
        orderly=False,
        rivals=False,
        restarts=True,
        placed=True,
    )


@dataclass(slots=True)
class _Chain:
    """A strike at each of some places, one after another."""

    links: list[tuple[str, str, Event]]
    skip: int
    elsewhere: bool
    """Strike another NameNode than that which the place is about."""


class Places:
    """All that wait in one world."""

    def __init__(self, world: "World", strikes: "Strikes") -> None:
        self._world = world
        self._strikes = strikes
        rng = world.faults.random("places")
        self._chains = [self._drawn(rng, number) for number in range(rng.randint(1, 5))]
        ensemble, board = world.cluster.ensemble, world.board
        self._on_commit, ensemble.on_commit = ensemble.on_commit, self._committed
        self._on_call, board.on_call = board.on_call, self._called
        self._on_end, board.on_end = board.on_end, self._ended

    def _drawn(self, rng: Random, number: int) -> _Chain:
        links = []
        for turn in range(rng.choice((1, 1, 2, 3))):
            place, strike = rng.choice(PLACES), rng.choice(STRIKES)
            lasts = rng.choice((0.1, 0.5, 2.0, 6.0)) * (0.5 + rng.random())
            name = f"{strike} at {place.replace(' ', '-')} {number}.{turn}"
            event = Event(0.0, name, rng.randrange(1000), rng.randrange(1000), lasts)
            links.append((place, strike, event))
        return _Chain(links, rng.choice((0, 0, 1, 2)), rng.random() < 0.25)

    def _committed(self, change: Change, number: int, who: str) -> None:
        self._on_commit(change, number, who)
        match change:
            case Create(path=path) | SetData(path=path) if path in _ZNODES:
                made = "made" if path == ZOOKEEPER.lock else "written"
                self._reached(f"{_ZNODES[path]} {made}", who)
            case Delete(path=path) if path == ZOOKEEPER.lock:
                self._reached("lock deleted", who)
            case _:
                pass

    def _called(
        self, sender: str, receiver: str, method: str, request: Message, number: int
    ) -> None:
        self._on_call(sender, receiver, method, request, number)
        self._reached(f"asked {method}", receiver)

    def _ended(self, who: str, request: Message, number: int, sent_at: float | None) -> None:
        self._on_end(who, request, number, sent_at)
        self._reached(f"answered {type(request).__name__}", who)

    def _reached(self, place: str, who: str) -> None:
        if self._world.faults.over:
            return
        for chain in list(self._chains):
            waited_for, strike, event = chain.links[0]
            if waited_for != place:
                continue
            if chain.skip:
                chain.skip -= 1
                continue
            chain.links.pop(0)
            if not chain.links:
                self._chains.remove(chain)
            names = self._world.swarm.names
            name = who if who in names else self._world.cluster.lock_owner() or names[0]
            if chain.elsewhere:
                name = next(one for one in names if one != name)
            delay = (0.0, 0.0005, 0.003, 0.05)[event.other % 4]
            # Not in the context of the process that has come there: it may be dead by then.
            when = self._world.loop.now + delay
            Context().run(self._world.loop.at, when, self._strike, strike, event, name)

    def _strike(self, strike: str, event: Event, name: str) -> None:
        world, strikes = self._world, self._strikes
        if not world.faults.allowed(event.name):
            return
        event = replace(event, at=world.loop.now)
        world.trace.add("aim", f"{event.kind}: {name}")
        if strike in _WISHES:
            strikes.operate(event, strike, name)
        elif strike in {"cut-zookeeper", "isolate"}:
            strikes.cut(replace(event, kind=strike), name)
        elif strike == "unlock":
            if world.cluster.lock_owner() is not None:
                world.cluster.ensemble.commit(Delete(ZOOKEEPER.lock), "oper")
        else:
            strikes.trouble_host(replace(event, kind=strike), name)
