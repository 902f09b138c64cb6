"""Messages between machines: delayed, lost, repeated, held up by partitions."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.trace import Trace

_USUAL_SECONDS: Final = 0.001
_LATE_SECONDS: Final = (0.01, 0.2, 1.5, 6.0)

_TWINS_KEPT: Final = 40
_TELLING: Final = ("ResumeSegment", "StartLogSegment", "Admit", "CatchUp")
"""Requests that open or trust something; the others are many."""

Action = Callable[[], None]
Link = tuple[str, str]
Fate = Callable[[Link, str, Action, Action], tuple[Action, Action] | None]
"""What a script makes of a message: what happens when it arrives or is lost; None loses it now."""


class Network:
    """Carries messages from machine to machine.

    A cut link holds its messages until it is healed, or loses them: a seed has one of both.
    """

    def __init__(self, loop: VirtualLoop, faults: Faults, trace: Trace, *, held: bool) -> None:
        self.loop = loop
        self.faults = faults
        self.trace = trace
        self._held = held
        self._cuts: dict[Link, int] = {}
        self._waiting: dict[Link, list[Action]] = {}
        self._jitter: dict[Link, Random] = {}
        self._sent: dict[str, int] = {}
        self._triggers: dict[tuple[str, int], Action] = {}
        self._sent_lately: dict[str, deque[tuple[str, Action]]] = {}
        self.script: Fate | None = None
        self.silence = 0.5
        """How many of the lost messages show as nothing at all, not as a broken connection."""

    def when_sending(self, machine: str, count: int, action: Action) -> None:
        """Do something just before a machine sends its n-th message."""
        self._triggers[(machine, count)] = action

    def post(
        self,
        link: Link,
        what: str,
        arrive: Action,
        *,
        lost: Action,
        answer: bool = False,
        not_before: float = 0.0,
    ) -> float:
        """Send a message; either ``arrive`` or ``lost`` is called, or it hangs in a cut link.

        Returns:
            When it is due, for messages that must keep their order.
        """
        sent = self._sent[link[0]] = self._sent.get(link[0], 0) + 1
        if (link[0], sent) in self._triggers:
            self._triggers.pop((link[0], sent))()
        place = f"{link[0]}>{link[1]}"
        kind = "answer" if answer else "request"
        if self.script is not None:
            fate = self.script(link, what, arrive, lost)
            if fate is None:
                self.loop.call_later(_USUAL_SECONDS, lost)
                return not_before
            arrive, lost = fate
        if name := self.faults.strikes(f"lose-{kind}", place):
            self.trace.add("net", f"{place} loses {what}", name)
            self.loop.call_later(_USUAL_SECONDS, lost)
            return not_before
        delay = _USUAL_SECONDS * (0.5 + self._random(link).random())
        if name := self.faults.strikes(f"delay-{kind}", place):
            magnitude = self.faults.random(name)
            delay += magnitude.choice(_LATE_SECONDS) * magnitude.random()
            self.trace.add("net", f"{place} delays {what} by {delay:.3f} s", name)
        due = max(not_before, self.loop.now + delay)
        if name is not None:
            self.faults.lasts(due)
        self.loop.at(due, self._arrive, link, what, arrive, lost)
        return due

    def remember(self, link: Link, what: str, arrive: Action) -> None:
        """Note a request; a late twin of it may arrive when the node has forgotten it."""
        lately = self._sent_lately.setdefault(link[1], deque(maxlen=_TWINS_KEPT))
        lately.append((f"{link[0]}'s {what}", arrive))

    def sent_since(self, machine: str, told: str) -> list[Action]:
        """Return the twins of the last such request that a node was sent, and of those after."""
        lately = list(self._sent_lately.get(machine, ()))
        found = [number for number, (what, _) in enumerate(lately) if what == told]
        return [twin for _, twin in lately[found[-1] :]] if found else []

    def send_twins(self, machine: str) -> None:
        """Send old requests again to a node that is up again; they may be its first ones."""
        lately = self._sent_lately.get(machine)
        name = self.faults.strikes("twin", machine)
        if not lately or name is None:
            return
        rng = self.faults.random(name)
        rare = [twin for twin in lately if twin[0].endswith(_TELLING)]
        for _ in range(rng.choice((1, 1, 2, 3))):
            what, arrive = rng.choice(rare if rare and rng.random() < 0.7 else lately)
            self.trace.add("net", f"{machine} gets {what} again", name)
            self.loop.call_soon(arrive)

    def cut(self, link: Link) -> None:
        """Let nothing through, in this direction."""
        self._cuts[link] = self._cuts.get(link, 0) + 1

    def is_cut(self, link: Link) -> bool:
        return link in self._cuts

    def heal(self, link: Link) -> None:
        """Take one cut back; what was held arrives."""
        left = self._cuts.get(link, 0) - 1
        if left > 0:
            self._cuts[link] = left
            return
        self._cuts.pop(link, None)
        for arrive in self._waiting.pop(link, []):
            self.loop.call_later(_USUAL_SECONDS, arrive)

    def heal_all(self) -> None:
        for link in list(self._cuts):
            self._cuts[link] = 1
            self.heal(link)

    def _arrive(self, link: Link, what: str, arrive: Action, lost: Action) -> None:
        if link not in self._cuts:
            arrive()
        elif self._held:
            self.trace.add("net", f"{link[0]}>{link[1]} is cut and holds {what}")
            self._waiting.setdefault(link, []).append(arrive)
        else:
            self.trace.add("net", f"{link[0]}>{link[1]} is cut and loses {what}")
            lost()

    def _random(self, link: Link) -> Random:
        if link not in self._jitter:
            self._jitter[link] = self.faults.random("jitter", *link)
        return self._jitter[link]
