"""Worlds of comebacks: nodes return into the writer's segment, and to their vote, amid trouble.

One strike seldom leads there: it takes a node that lacks edits, then something that happens while
it fetches them.  So these worlds have plots of several steps, each of which waits for a message.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.engine.network import Action, Link
from tests.simulation.journal import ambush
from tests.simulation.journal.contender import Life
from tests.simulation.journal.nemesis import Event
from tests.simulation.journal.plots import DELAYED, PLOTS, WEARING, Plot, Step
from tests.simulation.journal.strikes import Strikes
from tests.simulation.journal.swarm import EVENT_KINDS, WEAR_KINDS, Pace, Swarm, Upkeep
from tests.simulation.journal.wear import fragile

if TYPE_CHECKING:
    from tests.simulation.journal.machine import Machine
    from tests.simulation.journal.world import World

FIRST_REJOIN: Final = 3_000_000_000
"""The first seed of such a world."""
_MOST: Final = 12
_MOST_RIVALS: Final = 10
_PATIENCE_SECONDS: Final = 5.0
_ALONE_SECONDS: Final = 0.3
_MUCH_LATER_SECONDS: Final = 2.5
_RESTART_SECONDS: Final = 0.005
_BACK_SECONDS: Final = 0.009


_ABOUT: Final = (
    *("segment", "segment", "segment", "segment", "torn", "torn", "strays", "strays", "decided"),
    *("vote", "vote", "vote", "vote", "peers", "peers", "peers", "peers", "voters"),
)


def drawn(seed: int) -> Swarm:
    """Draw what such a world is about: few writers that live long, and plots of one kind only."""
    rng = Random(f"{seed} comebacks")
    base = ambush.drawn_long(seed - FIRST_REJOIN + ambush.FIRST_LONG)
    about = rng.choice(_ABOUT)
    short = about in {"vote", "peers", "voters", "strays"}
    upkeep = Upkeep(
        sync_seconds=rng.choice((0.2, 0.5) if short else (0.0, 0.0, 0.4)),
        scrub_seconds=rng.choice((0.1, 0.3) if about == "peers" else (0.0, 0.0, 0.5)),
        purging=rng.choice((0.5, 0.9)) if short else 0.0,
        hadoop_like=1.0 if about == "voters" else 0.0,
        byzantine=rng.random() < (0.5 if about == "strays" else 0.2),
    )
    rates = {"twin": rng.choice((0.0, 0.9)), "slow-disk": rng.choice((0.0, 0.0, 0.02))}
    return replace(
        base,
        nodes=rng.choice((3, 3, 3, 3, 3, 5)),
        writers=rng.choice((1, 1, 2)),
        rates=dict.fromkeys(base.rates, 0.0) | rates,
        events=dict.fromkeys((*EVENT_KINDS, *WEAR_KINDS), 0.0),
        held=rng.random() < 0.5 and about not in {"strays", "decided"},
        crowd=8.0,
        unclosed=rng.choice((0.05, 0.2)),
        upkeep=upkeep,
        rejoin=about,
        pace=_pace(about, rng),
        window_bytes=0 if about in {"torn", "strays", "decided"} else rng.choice((100, 150, 300)),
    )


def _pace(about: str, rng: Random) -> Pace:
    """Keep segments open while nodes come back into them; short ones where votes matter."""
    match about:
        case "segment":
            return Pace(200, 4, (0.2, 0.2, 0.4), least=100)
        case "torn":
            # Of a node's first segment nothing decays: what of it is safe is not known yet.
            shorter = Pace(80, 8, (0.2, 0.2, 0.4), least=30, rolls=2)
            return rng.choice((Pace(200, 8, (0.2, 0.2, 0.4), least=100), shorter))
        case "strays":
            return Pace(30, 8, (0.1, 0.4, 0.4), least=4, rolls=2)
        case "decided":
            return Pace(40, 8, (0.1, 0.2), least=10)
        case _:
            return Pace(rng.choice((12, 30, 60)), 4, (0.1, 0.2, 0.4), least=6, rolls=3)


@dataclass(slots=True, eq=False)
class _Running:
    """A plot whose next step waits; ``it`` is the node that it is about, once one is known."""

    number: int
    plot: Plot
    rng: Random
    at: int = 0
    skip: int = 0
    it: str = ""

    @property
    def step(self) -> Step:
        return self.plot.steps[self.at]


@dataclass(frozen=True, slots=True)
class _Hold:
    """Messages of this kind of a writer and all nodes but one are delayed, or with None lost."""

    what: str
    writer: str
    spared: str
    seconds: float | None
    until: float


@dataclass(slots=True)
class _Strike:
    """One step, as it happens to a node and to whoever it spoke with."""

    event: Event
    node: str
    other: str
    rng: Random
    again: list[Action] = field(default_factory=list)


class Comebacks:
    """All plots of one world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._strikes = Strikes(world)
        self._rivals = 0
        world.network.script = self._seen
        world.network.silence = 0.0
        self._to_come: deque[_Running] = deque()
        self._now: _Running | None = None
        self._holds: list[_Hold] = []
        self._until_released: list[Action] = []
        self._does: dict[str, Callable[[_Strike], None]] = {
            "pass": lambda _strike: None,
            "kill": partial(self._ends, "kill"),
            "power": partial(self._ends, "power"),
            "rot": self._rot,
            "wipe": partial(self._wear, "wipe"),
            "rot-alive": partial(self._wear, "rot-newest"),
            "release": self._release,
            "torn": partial(self._end_at_disk, "power", (1, 2, 2, 2)),
            "kill-at-disk": partial(self._end_at_disk, "kill", range(3, 14)),
            "hang": self._hang,
            "isolate": self._isolate,
            "rival": self._begin_rival,
            "stray": self._leave_stray,
            "hand-over": self._hand_over,
            "others-write-late": partial(self._hold, "answer Write"),
            "others-promise-late": partial(self._hold, "NewEpoch"),
            "others-accept-never": partial(self._hold, "AcceptRecovery", never=True),
            "again": partial(self._end_and_repeat, "kill"),
            "again-rotten": partial(self._end_and_repeat, "rot"),
            "again-rotting": partial(self._end_and_repeat, "kill", rots=True),
        }

    def lie(self, horizon: float) -> None:
        """Draw the plots; one begins when the one before is over, or leads nowhere."""
        rng = self._world.faults.random("plots")
        plots = PLOTS[self._world.swarm.rejoin]
        for number in range(_MOST):
            self._to_come.append(_Running(number, rng.choice(plots), Random(rng.random())))
        self._world.loop.call_at(rng.choice((0.01, 0.3)) * rng.random(), self._next, (None, 0))

    def begins(self, name: str) -> None:
        """Do nothing: no plot waits for a writer to begin."""

    def _next(self, before: tuple[_Running | None, int]) -> None:
        if before != (self._now, 0 if self._now is None else self._now.at):
            return
        self._now = self._to_come.popleft() if self._to_come else None
        if self._now is not None:
            self._now.skip = self._now.rng.choice(self._now.step.skip)
            self._wait(self._now)

    def _wait(self, running: _Running) -> None:
        self._strikes.later(_PATIENCE_SECONDS, self._next, (running, running.at))

    def _seen(self, link: Link, what: str, arrive: Action, lost: Action) -> tuple[Action, Action]:
        place, node, other = self._named(link, what)
        arrive = self._held_up((place, other), node, arrive, lost)
        running = self._now
        if running is None or running.step.what != place or not self._meant(running, node):
            return arrive, lost
        if running.skip:
            running.skip -= 1
            return arrive, lost
        step = running.step
        strike = self._advance(running, node, other)
        if self._world.faults.over or not self._allowed(step, strike):
            return arrive, lost
        return self._struck_by(step, strike, arrive, lost)

    def _named(self, link: Link, what: str) -> tuple[str, str, str]:
        """Return how plots call a message, the node that it is about, and the peer of that node.

        What a node fetches, or asks a peer, is about itself.
        """
        answers = what.startswith("answer")
        node, other = link if answers else (link[1], link[0])
        if "GET " in what:
            return ("answer GET" if answers else "GET"), other, node
        if other in self._world.machines:
            return f"{what} of a peer", other, node
        return what, node, other

    def _meant(self, running: _Running, node: str) -> bool:
        if node not in self._world.machines:
            return False
        if not running.it:
            return node in fragile(self._world)
        return (node == running.it) == (running.step.who == "it")

    def _advance(self, running: _Running, node: str, other: str) -> _Strike:
        step, rng = running.step, running.rng
        name = f"{step.does} at {step.what.replace(' ', '-')} {running.number}.{running.at}"
        lasts = rng.choice(step.lasts) * (0.5 + rng.random())
        event = Event(self._world.loop.now, name, 0, rng.randrange(1000), lasts, 0)
        running.it = running.it or node
        running.at += 1
        if running.at < len(running.plot.steps):
            running.skip = rng.choice(running.step.skip)
            self._wait(running)
        else:
            self._now = None
            self._strikes.later(lasts + rng.choice((0.3, 0.8)), self._next, (None, 0))
        return _Strike(event, node, other, rng)

    def _allowed(self, step: Step, strike: _Strike) -> bool:
        event, world = strike.event, self._world
        if step.does in WEARING:
            return True  # what wears a disk asks for itself
        if step.does == "pass":
            return True
        if not world.faults.allowed(event.name):
            return False
        world.trace.add("aim", f"{event.kind}: {strike.node}, {strike.other}", event.name)
        return True

    def _struck_by(
        self, step: Step, strike: _Strike, arrive: Action, lost: Action
    ) -> tuple[Action, Action]:
        match step.does:
            case "hold":
                return partial(self._strikes.later, strike.event.lasts, arrive), lost
            case "hold-for-rival":
                self._begin_rival(strike)
                return partial(self._strikes.later, strike.event.lasts, arrive), lost
            case "hold-for-release":
                self._until_released.append(arrive)
                return (lambda: None), lost
            case "twice":
                return partial(_both, arrive, arrive), lost
            case "break":
                return partial(_both, arrive, lost), lost
            case _:
                pass
        if "-before" in step.does:
            return self._struck_before(step, strike, arrive, lost), lost
        return partial(self._arrive_and_strike, step, strike, arrive), lost

    def _struck_before(self, step: Step, strike: _Strike, arrive: Action, lost: Action) -> Action:
        """Deliver the message to its node's next life; its sender may hear that it broke."""
        if step.does.endswith("break"):
            lost()
        strike.event = replace(strike.event, lasts=_RESTART_SECONDS)
        does = partial(self._unless_over, self._does[step.does.partition("-")[0]], strike)
        return partial(_both, does, partial(self._strikes.later, _BACK_SECONDS, arrive))

    def _arrive_and_strike(self, step: Step, strike: _Strike, arrive: Action) -> None:
        arrive()
        if step.does.startswith("again"):
            strike.again = self._since(strike, step.what)
        delay = strike.rng.choice(DELAYED.get(step.does, (0.0, 0.0, 0.0005, 0.003)))
        self._strikes.later(delay, self._unless_over, self._does[step.does], strike)

    def _unless_over(self, does: Callable[[_Strike], None], strike: _Strike) -> None:
        if not self._world.faults.over:
            does(strike)

    # ---- what happens ----

    def _ends(self, how: str, strike: _Strike) -> None:
        self._strikes.end(how, strike.event, strike.node)

    def _rot(self, strike: _Strike) -> None:
        """Kill it, and let what it holds of the newest segment decay before it is back."""
        self._strikes.end("kill", strike.event, strike.node)
        self._wear("rot-newest", strike)

    def _wear(self, kind: str, strike: _Strike) -> None:
        self._strikes.wear(kind, strike.event, strike.node)

    def _end_at_disk(self, how: str, after: Sequence[int], strike: _Strike) -> None:
        machine = self._world.machines[strike.node]
        machine.strike(strike.rng.choice(after), how, strike.event.name)
        self._strikes.later(strike.event.lasts, self._world.restart, machine)

    def _hang(self, strike: _Strike) -> None:
        """Let one of its disk's next operations take long, while another writer begins."""
        self._world.hangs[strike.node] = [0.0] * strike.rng.randrange(4) + [strike.event.lasts]
        self._begin_rival(strike)

    def _isolate(self, strike: _Strike) -> None:
        everyone = (*self._world.machines, *self._world.writers)
        others = [name for name in everyone if name != strike.node]
        self._strikes.cut_for(strike.event.lasts, strike.node, others)

    def _begin_rival(self, strike: _Strike) -> None:
        if self._rivals == _MOST_RIVALS:
            return
        self._rivals += 1
        rng, pace = self._world.faults.random("rival", strike.event.name), self._world.swarm.pace
        drawn = partial(Life.drawn, 79 + self._rivals, 0.0, 0.2, rng)
        self._world.begin(drawn(rolls=pace.rolls, pace=pace))

    def _release(self, _strike: _Strike) -> None:
        for arrive in self._until_released:
            self._strikes.later(0.0, arrive)
        self._until_released.clear()

    def _leave_stray(self, strike: _Strike) -> None:
        """Leave what its writer wrote last on this node alone; the next goes on without it."""
        self._hold("Write", replace(strike, event=replace(strike.event, lasts=_MUCH_LATER_SECONDS)))
        self._strikes.later(_ALONE_SECONDS, self._unless_over, self._hand_over, strike)

    def _hand_over(self, strike: _Strike) -> None:
        """End the writer, and begin another one where this node is not reached."""
        if strike.other in self._world.writers:
            self._world.writers[strike.other].kill()
        self._begin_rival(strike)
        self._isolate(strike)

    def _hold(self, what: str, strike: _Strike, *, never: bool = False) -> None:
        seconds = None if never else strike.event.lasts
        until = self._world.loop.now + 1.0
        self._holds.append(_Hold(what, strike.other, strike.node, seconds, until))

    def _held_up(self, said: tuple[str, str], node: str, arrive: Action, lost: Action) -> Action:
        now = self._world.loop.now
        for hold in () if self._world.faults.over else self._holds:
            if (hold.what, hold.writer) == said and hold.spared != node and now < hold.until:
                if hold.seconds is None:
                    return lost
                return partial(self._strikes.later, hold.seconds, arrive)
        return arrive

    def _end_and_repeat(self, how: str, strike: _Strike, *, rots: bool = False) -> None:
        """Restart the node: it gets some of the requests of that time before any new one."""
        machine = self._world.machines[strike.node]
        event = replace(strike.event, lasts=_RESTART_SECONDS)
        if how == "rot":
            self._rot(replace(strike, event=event))
        else:
            self._strikes.end(how, event, strike.node)
        repeat = partial(self._repeat, machine, strike, rots=rots)
        self._strikes.later(_RESTART_SECONDS + 0.0001, repeat)

    def _repeat(self, machine: "Machine", strike: _Strike, *, rots: bool) -> None:
        if not machine.up or self._world.faults.over:
            return
        if rots:
            self._wear("rot-newest", strike)
        count = strike.rng.choice((1, 1, 2, 3))
        self._world.trace.add("net", f"{machine.name} gets {count} again", strike.event.name)
        for twin in strike.again[:count]:
            self._strikes.later(0.0, twin)

    def _since(self, strike: _Strike, what: str) -> list[Action]:
        """Return the requests from this one on that the node has been sent, as far as kept."""
        return self._world.network.sent_since(strike.node, f"{strike.other}'s {what}")


def _both(one: Action, other: Action) -> None:
    one()
    other()
