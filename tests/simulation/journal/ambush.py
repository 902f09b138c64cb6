"""Aimed worlds: faults wait for a place in the protocol, and strike there.

Faults at drawn times seldom meet what lasts for two messages: the time between the rounds of a
claim, a recovery that one node has accepted, a batch that one node alone has.  Seeds from ``FIRST``
on are such worlds; the others are what they always were.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.engine.network import Action, Link
from tests.simulation.journal import swarm
from tests.simulation.journal.contender import Life
from tests.simulation.journal.nemesis import Event
from tests.simulation.journal.strikes import Strikes
from tests.simulation.journal.wear import fragile

if TYPE_CHECKING:
    from tests.simulation.journal.world import World

FIRST: Final = 1_000_000_000
"""The first seed of an aimed world."""
FIRST_LONG: Final = 1_500_000_000
"""The first seed of one with long segments and little kept of them."""
FIRST_LATE: Final = 1_700_000_000
"""The first seed of one like these, in which a node gets requests once more, long after it did."""

PLACES: Final = {
    "claim": ("NewEpoch", "answer NewEpoch", "answer NewEpoch", "GetJournalState"),
    "recovery": (
        "answer PrepareRecovery",
        "AcceptRecovery",
        "answer AcceptRecovery",
        "answer AcceptRecovery",
        "FinalizeLogSegment",
        "answer FinalizeLogSegment",
    ),
    "start": ("StartLogSegment", "answer StartLogSegment"),
    "batch": ("Write", "answer Write"),
    "return": ("ResumeSegment", "answer ResumeSegment", "CatchUp", "Admit", "answer Admit"),
}
"""Messages, by what they are about.  A strike falls just behind the arrival of one of them."""
STRIKES: Final = (
    "wipe",
    "wipe-alone",
    "kill",
    "power",
    "isolate",
    "freeze-node",
    "kill-writer",
    "freeze-writer",
    "lone",
    "lone",
    "rival",
    "rival",
    "power-all",
)
"""``twins``: the node gets requests that it got before.  ``unfetched``: it reaches no other node.
``alone``: for now the writer reaches this node only.  ``lone``: that, and then the writer ends.
``rival``: another one begins at once."""
_IN_LONG_SEGMENTS: Final = (
    *("kill", "power", "isolate", "isolate", "freeze-node", "wipe", "rot", "rot"),
    *("rival", "freeze-writer", "kill-writer"),
)
_LATE: Final = (
    *("twins", "twins", "twins", "twins", "rival", "rival", "isolate", "unfetched", "unfetched"),
    *("kill", "freeze-node", "freeze-writer", "rot", "wipe"),
)


def drawn(seed: int) -> swarm.Swarm:
    """Draw what an aimed world is about: mostly calm, or no message would come to the places."""
    if seed >= FIRST_LATE:
        return _late(seed)
    return drawn_long(seed) if seed >= FIRST_LONG else _aimed(seed)


def _late(seed: int) -> swarm.Swarm:
    """Draw worlds where segments change while a node fetches one, and old requests come."""
    rng, base = Random(f"{seed} late requests"), drawn_long(seed)
    return replace(
        base,
        writers=rng.choice((2, 3, 4)),
        rates=dict.fromkeys(base.rates, 0.0)
        | {"twin": 0.9, "slow-disk": rng.choice((0.02, 0.1, 0.3))},
        pace=swarm.Pace(rng.choice((8, 20, 60)), 4, (0.02, 0.1, 0.1, 0.4)),
        unclosed=rng.choice((0.05, 0.5)),
        window_bytes=rng.choice((60, 100, 100, 400)),
        late=True,
    )


def drawn_long(seed: int) -> swarm.Swarm:
    """Draw few writers with long segments of which they keep little: a missed part is fetched."""
    rng = Random(f"{seed} long segments")
    base = swarm.Swarm.drawn(seed - FIRST_LONG)
    rates = base.rates if rng.random() < 0.4 else dict.fromkeys(base.rates, 0.0)
    events = dict.fromkeys((*swarm.EVENT_KINDS, *swarm.WEAR_KINDS), 0.0)
    if rng.random() < 0.4:  # what was fetched, or is to be sent again, is torn or decays
        events |= {"power-at-disk": 4.0, "kill-at-disk": 1.0, "rot": 1.5, "kill": 2.0}
    return replace(
        base,
        nodes=rng.choice((3, 3, 3, 5)),
        writers=rng.choice((1, 2, 2)),
        readers=rng.choice((0, 1)),
        rates={**rates, "slow-disk": rng.choice((0.0, 0.02, 0.1)), "twin": rng.choice((0.0, 0.9))},
        events=events,
        lives=dict.fromkeys(swarm.LIFE_KINDS, 0.0),
        lanes=rng.random() < 0.3,
        crowd=rng.choice((3.0, 10.0)),
        unclosed=0.05,
        upkeep=replace(base.upkeep, hadoop_like=0.0, byzantine=rng.random() < 0.3),
        aimed=True,
        long=True,
        pace=swarm.Pace(rng.choice((60, 60, 200)), 4, (0.02, 0.1, 0.1, 0.4)),
        window_bytes=rng.choice((100, 100, 400, 1500, 0)),
    )


def _aimed(seed: int) -> swarm.Swarm:
    rng = Random(f"{seed} aimed")
    base = swarm.Swarm.drawn(seed - FIRST)
    calm, untroubled, steady = (rng.random() < share for share in (0.7, 0.8, 0.6))
    relay = rng.random() < 0.5
    long = not relay and rng.random() < 0.1
    nodes = 3 if relay else rng.choice((3, 3, 3, 3, 4, 5, 7))
    return replace(
        base,
        nodes=nodes,
        writers=rng.choice((3, 4, 6)) if relay else base.writers,
        rates=dict.fromkeys(base.rates, 0.0) if calm else base.rates,
        events=dict.fromkeys((*swarm.EVENT_KINDS, *swarm.WEAR_KINDS), 0.0)
        if untroubled
        else base.events,
        lives=dict.fromkeys(swarm.LIFE_KINDS, 0.0) if relay or steady else base.lives,
        lanes=rng.random() < (0.1 if relay else 0.5),
        crowd=4.0 if relay else base.crowd,
        unclosed=0.05 if long else base.unclosed,
        aimed=True,
        relay=relay,
        pace=swarm.Pace(rng.choice((60, 300)), 20) if long else swarm.USUAL,
        window_bytes=rng.choice((400, 4000)) if rng.random() < 0.2 else 0,
    )


@dataclass(slots=True)
class _Ambush:
    """Lies at a place from ``event.at`` on, and lets ``skip`` messages pass."""

    event: Event
    what: str
    strike: str
    skip: int
    delay: float


class Ambushes:
    """All that lie in wait in one world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._strikes = Strikes(world)
        self._waiting: list[_Ambush] = []
        self._rivals = 0
        self._relay: dict[str, Callable[[], None]] = {}
        self._order = list(world.machines)
        world.faults.random("relay").shuffle(self._order)
        world.network.script = self._seen

    def lie(self, horizon: float) -> None:
        rng = self._world.faults.random("ambushes")
        families = list(PLACES.values())
        strikes: Sequence[str] = STRIKES
        if self._world.swarm.long:
            families = [PLACES["start"], PLACES["batch"], PLACES["return"], PLACES["return"]]
            strikes = _IN_LONG_SEGMENTS
        if self._world.swarm.late:
            strikes = _LATE
        most = rng.randint(0, 2) if self._world.swarm.relay else rng.randint(2, 8)
        for number in range(most):
            what, strike = rng.choice(rng.choice(families)), rng.choice(strikes)
            event = Event(
                at=rng.choice((0.01, horizon)) * rng.random(),
                kind=f"{strike} at {what.replace(' ', '-')} {number}",
                victim=rng.randrange(1000),
                other=rng.randrange(1000),
                lasts=rng.choice((0.02, 0.1, 0.5, 2.0)) * (0.5 + rng.random()),
                after=0,
            )
            delay = rng.choice((0.0, 0.0, 0.0005, 0.003))
            ambush = _Ambush(event, what, strike, rng.choice((0, 0, 1, 2, 4)), delay)
            self._world.loop.call_at(event.at, self._waiting.append, ambush)

    def begins(self, name: str) -> None:
        """Begin a writer; in a relay it leaves its first batch with one node, as its turn is.

        One after another leaves other bytes under the same numbers, where the one before is not
        reached; the third one sees both.
        """
        if not self._world.swarm.relay or name.startswith("w8"):
            return
        turn = (int(name[1:]) - 1) % 3
        first, second, third = self._order[:3]
        event = Event(self._world.loop.now, f"relay by {name}", 0, 0, 0.0, 0)
        if not self._world.faults.allowed(event.name):
            return
        unseen = (None, first, third)[turn]
        if unseen is not None:
            self._strikes.cut(name, [unseen])
        if turn < 2:
            self._relay[name] = partial(self._alone, event, name, (first, second)[turn], ends=0.05)

    def _seen(self, link: Link, what: str, arrive: Action, lost: Action) -> tuple[Action, Action]:
        """Return what becomes of a message: it arrives, and something strikes."""
        if what == "Write" and link[0] in self._relay:
            self._relay.pop(link[0])()
        for ambush in self._waiting:
            if ambush.what != what or self._world.faults.over:
                continue
            if ambush.skip:
                ambush.skip -= 1
                continue
            node, writer = link if what.startswith("answer") else (link[1], link[0])
            if not self._fits(ambush, node):
                continue
            self._waiting.remove(ambush)
            return self._struck(ambush, node, writer, arrive), lost
        return arrive, lost

    def _struck(self, ambush: _Ambush, node: str, writer: str, arrive: Action) -> Action:
        def arrive_and_strike() -> None:
            arrive()
            self._strikes.later(ambush.delay, self._strike, ambush, node, writer)

        return arrive_and_strike

    def _fits(self, ambush: _Ambush, node: str) -> bool:
        """Return whether a disk may go: a minority's only, and not where one of two has a word."""
        if not ambush.strike.startswith(("wipe", "rot")):
            return node in self._world.machines
        return node in fragile(self._world)

    def _strike(self, ambush: _Ambush, node: str, writer: str) -> None:
        world, event = self._world, ambush.event
        machine = world.machines[node]
        if ambush.strike.startswith("wipe"):
            if ambush.strike == "wipe-alone":
                self._alone(event, writer, node, heals=event.lasts + 0.3)
            self._strikes.wear("wipe", event, node)
            return
        if not world.faults.allowed(event.name):
            return
        world.trace.add("aim", f"{event.kind}: {node}, {writer}", event.name)
        match ambush.strike:
            case "kill" | "power" | "rot":
                self._strikes.end(ambush.strike, event, node)
            case "power-all":
                self._cut_all_power(event)
            case "isolate" | "unfetched":
                writers = world.writers if ambush.strike == "isolate" else ()
                others = [name for name in (*world.machines, *writers) if name != node]
                self._strikes.cut_for(event.lasts, node, others)
            case "freeze-node":
                self._strikes.freeze(machine.process, event)
            case "twins":
                world.network.send_twins(node)
            case "rival":
                self._rivals += 1
                rng = world.faults.random("rival", event.name)
                world.begin(Life.drawn(79 + self._rivals, 0.0, 0.5, rng))
            case _:
                self._strike_writer(ambush, node, writer)

    def _cut_all_power(self, event: Event) -> None:
        for machine in self._world.machines.values():
            machine.cut_power("everywhere", event.name)
            self._strikes.later(event.lasts, self._world.restart, machine)

    def _strike_writer(self, ambush: _Ambush, node: str, writer: str) -> None:
        process = self._world.writers.get(writer)
        if process is None:
            return  # a syncer, or a stranger
        match ambush.strike:
            case "kill-writer":
                process.kill()
            case "freeze-writer":
                self._strikes.freeze(process, ambush.event)
            case _:
                self._alone(ambush.event, writer, node, ends=ambush.event.lasts)

    def _alone(
        self, event: Event, writer: str, node: str, *, heals: float = 0.0, ends: float | None = None
    ) -> None:
        world = self._world
        if writer not in world.writers:
            return
        others = [name for name in world.machines if name != node]
        world.trace.add("aim", f"{writer} reaches {node} only", event.name)
        if ends is None:
            self._strikes.cut_for(heals, writer, others)
            return
        self._strikes.cut(writer, others)
        self._strikes.later(ends, world.writers[writer].kill)
